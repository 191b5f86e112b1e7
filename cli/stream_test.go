//go:build unix

package cli_test

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/llm/script"
)

// What a model writes is printed as it comes, before the response.
func TestActStream(t *testing.T) {
	for _, c := range []struct{ request, piece, end string }{
		{
			`{"proto":1,"trace":{"id":"r"},"task":{"intent":"text/respond"},"input":{"prompt":"?"}}`,
			`^{"path":"act/model 1","source":"model","text":".*","type":"delta"}$`, `^{"proto":1,"result":{"out":{"text":"One, two, three."},`,
		},
		{
			`{:proto 1 :trace {:id "r"} :task {:intent :text/respond} :input {:prompt "?"}}`,
			`^{:type :delta, :path "act/model 1", :source "model", :text ".*"}$`, `^{:proto 1$`,
		},
	} {
		server := httptest.NewServer(script.New(script.Text("One, two, three.")))
		defer server.Close()
		file := filepath.Join(t.TempDir(), "stone.edn")
		text := fmt.Sprintf(`{:providers {:local {:protocol :openai :url %q}}
			:capabilities {:model {:cap/kind :llm :provider :local :model "m"}}}`, server.URL)
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		var out, errs bytes.Buffer
		code := cli.Run(t.Context(), cli.Config{
			Parts: parts, Pipeline: cli.FromArgument, Args: []string{"act", "--no-db", "--stream", "--config", file},
			Stdin: strings.NewReader(c.request), Stdout: &out, Stderr: &errs,
		})
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		pieces := 0
		for len(lines) > pieces && regexp.MustCompile(c.piece).MatchString(lines[pieces]) {
			pieces++
		}
		if code != cli.Done || pieces == 0 || pieces == len(lines) || !regexp.MustCompile(c.end).MatchString(lines[pieces]) {
			t.Errorf("exit code %d\n%s%s", code, &out, &errs)
		}
	}
}

// What was printed and is refused then is declared void before the response.
func TestActStreamRetracts(t *testing.T) {
	server := httptest.NewServer(script.New(script.Text("One, two, three.")))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "stone.edn")
	text := fmt.Sprintf(`{:providers {:local {:protocol :openai :url %q}}
		:capabilities {:model {:cap/kind :llm :provider :local :model "m"}}}`, server.URL)
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code := cli.Run(t.Context(), cli.Config{
		Parts: parts, Pipeline: cli.FromArgument, Args: []string{"act", "--no-db", "--stream", "--config", file},
		Stdin: strings.NewReader(`{"proto":1,"trace":{"id":"r"},"task":{"intent":"text/respond"},"input":{"prompt":"?"},
			"constraints":{"max-chars":5},"done":{"must":["max-chars"]}}`), Stdout: &out, Stderr: &errs,
	})
	want := regexp.MustCompile(`(?s)^{"path":"act/model 1","source":"model","text":"One.*"type":"delta"}\n{"path":"act/model 1","reason":"eval/must-failed.*","source":"model","type":"retracted"}\n{"error":.*"proto":1,`)
	if code != cli.Failed || !want.MatchString(out.String()) || strings.Count(out.String(), "retracted") != 1 {
		t.Errorf("exit code %d\n%s%s", code, &out, &errs)
	}
}

// The pieces of the calls in a plan are printed by their paths, and the result after them.
func TestRunStream(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{
		"stone.edn": `{:capabilities
			{:bad  {:cap/kind :command :cap/can-produce #{:stream} :command ["/bin/sh" "-c" "echo '{\"type\":\"delta\",\"text\":\"far too long\"}'"]}
			 :good {:cap/kind :command :cap/can-produce #{:stream} :command ["/bin/sh" "-c" "echo '{\"type\":\"delta\",\"text\":\"hi\"}'"]}}}`,
		"plan.edn": `{:nodes [{:op :call :intent :text/respond :input {:prompt "?"} :constraints {:max-chars 5}
			:dispatch {:candidates [:bad :good]} :done {:must #{:max-chars}} :as :x}
			{:op :emit :input {:final :x}}]}`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var out, errs bytes.Buffer
	code := cli.Run(t.Context(), cli.Config{
		Parts: parts, Pipeline: cli.FromArgument, Stdout: &out, Stderr: &errs,
		Args: []string{"run", "plan.edn", "--no-db", "--stream", "--config", "stone.edn", "--grant", "process"},
	})
	want := regexp.MustCompile(`^{"path":"(.*)bad 1","source":"bad","text":"far too long","type":"delta"}
{"path":".*bad 1","reason":"eval/must-failed.*","source":"bad","type":"retracted"}
{"path":".*good 1","source":"good","text":"hi","type":"delta"}
{"id":.*"content":{"final":{"text":"hi"}}.*}
$`)
	if code != cli.Done || !want.MatchString(out.String()) {
		t.Errorf("exit code %d\n%s%s", code, &out, &errs)
	}
}

// What has arrived of an answer in JSON is printed as a value, if that is asked for.
func TestActStreamPartial(t *testing.T) {
	server := httptest.NewServer(script.New(script.Text(`{"title":"Slate, split and stacked","cuts":[1,22]}`)))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "stone.edn")
	text := fmt.Sprintf(`{:providers {:local {:protocol :openai :url %q}}
		:capabilities {:model {:cap/kind :llm :provider :local :model "m"}}}`, server.URL)
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ request, first, last string }{
		{`{"proto":1,"trace":{"id":"r"},"task":{"intent":"text/respond"},"input":{"prompt":"?"}}`,
			`^{"path":"act/model 1","source":"model","type":"partial","value":{("title":"S\w*")?}}$`,
			`^{"path":"act/model 1","source":"model","type":"partial","value":{"title":"Slate, split and stacked","cuts":\[1,22\]}}$`},
		{`{:proto 1 :trace {:id "r"} :task {:intent :text/respond} :input {:prompt "?"}}`,
			`^{:type :partial, :path "act/model 1", :source "model", :value {("title" "S\w*")?}}$`,
			`^{:type :partial, :path "act/model 1", :source "model", :value {"cuts" \[1 22\], "title" "Slate, split and stacked"}}$`},
	} {
		var out, errs bytes.Buffer
		server.Config.Handler = script.New(script.Text(`{"title":"Slate, split and stacked","cuts":[1,22]}`))
		cli.Run(t.Context(), cli.Config{
			Parts: parts, Pipeline: cli.FromArgument, Args: []string{"act", "--no-db", "--stream", "--partial", "--config", file},
			Stdin: strings.NewReader(c.request), Stdout: &out, Stderr: &errs,
		})
		var values []string
		for line := range strings.Lines(out.String()) {
			if line = strings.TrimSpace(line); strings.Contains(line, "partial") {
				values = append(values, line)
			}
		}
		if len(values) < 3 || !regexp.MustCompile(c.first).MatchString(values[0]) || !regexp.MustCompile(c.last).MatchString(values[len(values)-1]) {
			t.Errorf("%s%s", &out, &errs)
		}
	}
	var errs bytes.Buffer
	if code := cli.Run(t.Context(), cli.Config{Parts: parts, Pipeline: hello(), Args: []string{"run", "--partial"}, Stderr: &errs}); code != cli.Usage || !strings.Contains(errs.String(), "--partial has no effect without --stream") {
		t.Errorf("exit code %d: %s", code, &errs)
	}
}
