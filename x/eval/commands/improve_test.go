//go:build unix

package commands_test

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/x/eval/commands"
)

// A prompt of a configuration is revised by a model, tested, accepted and written; the run is repeated and resumed for
// nothing.
func TestImprove(t *testing.T) {
	lessons := 0
	server := httptest.NewServer(script.Func(func(_ int, req *llm.Request) script.Answer {
		said := req.Messages[len(req.Messages)-1].Text()
		switch {
		case strings.Contains(said, "Write the whole new prompt"):
			if lessons++; lessons == 4 { // nothing gets better, so that the test is not looked at
				return script.JSON(map[string]string{"why": "They are bugs.", "prompt": "Sort it."})
			}
			return script.JSON(map[string]string{"why": "Bills were taken for bugs.", "prompt": "Sort the letter.\nAn invoice is billing."})
		case strings.Contains(said, "invoice") && strings.Contains(req.System, "An invoice is billing."):
			return script.Text("billing")
		}
		return script.Text("bug")
	}))
	defer server.Close()
	t.Chdir(t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("STONE_DB", filepath.Join(t.TempDir(), "stone.db"))
	t.Setenv("STONE_TRUST", "1")
	var rows strings.Builder
	for i := range 60 {
		fmt.Fprintf(&rows, `{"letter":"my %s %d","expected":"%s","split":"%s"}`+"\n", []string{"invoice", "page"}[i/2%2], i, []string{"billing", "bug"}[i/2%2], []string{"dev", "test"}[i%2])
	}
	for name, text := range map[string]string{
		"rows.jsonl": rows.String(),
		"sort.edn":   `{:id "sort" :nodes [{:op :call :intent :text/sort :input {:text {:slot/id :letter}} :as :area} {:op :emit :input {:slot/id [:area :text]}}]}`,
		"stone.edn": `{:providers {:p {:protocol :openai, :url "` + server.URL + `/v1", :key {:env "NO_KEY"}}}
 :models [{:model "m", :usd-per-mtok-in 1, :usd-per-mtok-out 1, :date "2026-11-21"}]
 :capabilities {:llm/sort {:cap/kind :llm, :provider :p, :model "m", :cap/intents [:text/sort], :prompts {:default "Sort the letter."}}
                :llm/large {:cap/kind :llm, :provider :p, :model "m", :cap/intents [:eval/revise]}}}`,
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("NO_KEY", "secret")
	run := func(args ...string) (code int, stdout, stderr string) {
		var out, errs bytes.Buffer
		code = cli.Run(t.Context(), cli.Config{Parts: []cli.Part{commands.Part}, Pipeline: cli.FromArgument, Name: "stone", Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
		return code, out.String(), errs.String()
	}
	improve := "eval improve sort.edn --config stone.edn --data rows.jsonl --score exact --out new"
	for _, c := range []struct {
		args           string
		code           int
		stdout, stderr string
	}{
		{improve, 2, "", "--by is missing: name a capability"},
		{improve + " --by llm/largo", 2, "", "llm/largo, which should revise the prompts, is not configured: did you mean llm/large?"},
		{improve + " --by llm/large --prompt llm/sorts", 2, "", `no prompt "llm/sorts" to revise; it has llm/sort: did you mean`},
		{improve + " --by llm/large --rounds 0", 2, "", "--rounds 0: want 1 or more"},
		{strings.Replace(improve, "--out new", "--out rows.jsonl", 1) + " --by llm/large", 2, "", "--out rows.jsonl is a file"},
		{improve + " --by llm/large --id a --max-usd 1", 3, "", "round 1: llm/sort of version 0, 0 → 4 on 4 cases: version 1, 1.0000 of dev"},
		{"answer a", 0, "Accept these prompts?", ""},
		{"answer a 1 accept", 0, "", ""},
		{"resume a -q", 0, "+ An invoice is billing.", filepath.Join("new", "llm", "sort.md") + ": name it in the configuration"},
		{improve + " --by llm/large --id b -q --rounds 1", 3, "", ""},
		{"resume b -q", 3, "", ""},
		{"answer b 1 refuse", 0, "", ""},
		{"resume b -q", 0, "look 2 at it", ""},
		{improve + " --by llm/large --id c -q --rounds 1", 3, "", ""},
		{"cancel c", 0, "", ""},
		{improve + " --by llm/large --id d -q --rounds 1", 0, "the test was not looked at", ""},
		{improve + " --by llm/large --id e -q --rounds 1", 3, "", ""},
		{"answer e", 0, "look 4 at it", ""},
	} {
		code, stdout, stderr := run(strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
			t.Errorf("%s: code %d, want %d\n%s\n%s", c.args, code, c.code, stdout, stderr)
		}
	}
	if text, err := os.ReadFile(filepath.Join("new", "llm", "sort.md")); err != nil || string(text) != "Sort the letter.\nAn invoice is billing.\n" {
		t.Errorf("written: %q, %v", text, err)
	}
	if lessons != 5 {
		t.Errorf("%d lessons, want one for each run", lessons)
	}
}
