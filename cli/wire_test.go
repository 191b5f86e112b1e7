package cli_test

import (
	"bytes"
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
		code := cli.Run(t.Context(), cli.Config{Pipeline: pipeline, Name: "wire", Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
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
		"--record and --replay exclude each other": {"run", "-q", "--record", file, "--replay", file},
		"no such file": {"run", "-q", "--replay", "there.jsonl"},
	} {
		if _, errs, code := run(args...); code == 0 || !strings.Contains(errs, want) {
			t.Errorf("%q: %s, exit code %d", args, errs, code)
		}
	}
}
