//go:build unix

package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/openai"
	"github.com/stonelayer/stone/llm/script"
)

// A replayed run gets the recorded answers and sends nothing. A question that was not recorded is
// an error that says where the nearest recorded one differs.
func TestRecordAndReplay(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", dir)
	var sent atomic.Int32
	model := script.Func(func(int, *llm.Request) script.Answer { return script.Text("four") })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent.Add(1)
		model.ServeHTTP(w, r)
	}))
	defer server.Close()
	question := "2 and 2?"
	said := dag.NewType[agent.Text]("said")
	run := func(args ...string) (string, string, int) {
		m := openai.New(openai.Config{Model: "m", URL: server.URL, Key: "sk-wire-key"})
		var pipeline stone.Ashlar = agent.New("talk", said, m, agent.Config{User: agent.Say(question)})
		var out, errs bytes.Buffer
		code := cli.Run(t.Context(), cli.Config{Parts: parts, Pipeline: pipeline, Name: "wire", Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
		return strings.TrimSpace(out.String()), errs.String(), code
	}
	file := filepath.Join(dir, "session.jsonl")
	if out, errs, code := run("run", "-q", "--record", file); out != "four" || code != 0 || sent.Load() != 1 {
		t.Fatalf("recorded: %q, %s, exit code %d, %d requests", out, errs, code, sent.Load())
	}
	if data, err := os.ReadFile(file); err != nil || !strings.Contains(string(data), "2 and 2?") || strings.Contains(string(data), "sk-wire-key") {
		t.Errorf("the recording: %v\n%s", err, data)
	}
	if out, errs, code := run("run", "-q", "--replay", file); out != "four" || code != 0 {
		t.Errorf("replayed: %q, %s, exit code %d", out, errs, code)
	}
	question = "2 and 3?"
	if _, errs, code := run("run", "-q", "--replay", file); code != cli.Failed || !strings.Contains(errs, "was not recorded; the nearest recorded one differs at byte") {
		t.Errorf("another question: %s, exit code %d", errs, code)
	}
	if n := sent.Load(); n != 1 {
		t.Errorf("%d requests were sent, want the recorded one alone", n)
	}
	for want, args := range map[string][]string{
		"--record and --replay cannot be combined": {"run", "-q", "--record", file, "--replay", file},
		"no such file": {"run", "-q", "--replay", "there.jsonl"},
	} {
		if _, errs, code := run(args...); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%q: %s, exit code %d", args, errs, code)
		}
	}
}

// A capability of kind http is asked with the ids of its run, which the run of a replay does not have.
func TestReplayOfCapability(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("HOME", dir)
	t.Setenv("XDG_CONFIG_HOME", dir)
	var sent atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent.Add(1)
		var asked struct{ Input struct{ Item string } }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		fmt.Fprintf(w, `{"proto": 1, "result": {"type": "value", "out": {"text": "3 of %s"}}}`, asked.Input.Item)
	}))
	defer server.Close()
	for name, text := range map[string]string{
		"config.edn": `{:capabilities {:shop/stock {:cap/kind :http, :url "` + server.URL + `", :cap/intents [:stock]}}}`,
		"plan.edn": `{:id "p", :nodes [{:op :call :intent :stock :input {:item "apples"} :as :a}
			{:op :call :intent :stock :input {:item "pears"} :as :b} {:op :emit :input [{:slot/id [:a :text]} {:slot/id [:b :text]}]}]}`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) string {
		var out, errs bytes.Buffer
		args = append([]string{"run", "-q", "--no-db", "--config", "config.edn", "--grant", "net"}, append(args, "plan.edn")...)
		if code := cli.Run(t.Context(), cli.Config{Parts: parts, Pipeline: cli.FromArgument, Name: "stone", Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs}); code != 0 {
			t.Errorf("%q: exit code %d: %s", args, code, errs.String())
		}
		return strings.TrimSpace(out.String())
	}
	for _, flag := range []string{"--record", "--replay", "--replay"} {
		if out := run(flag, "session.jsonl"); strings.Join(strings.Fields(out), " ") != `[ "3 of apples", "3 of pears" ]` {
			t.Errorf("%s: %q", flag, out)
		}
	}
	if n := sent.Load(); n != 2 {
		t.Errorf("%d requests were sent, want the 2 recorded ones", n)
	}
}
