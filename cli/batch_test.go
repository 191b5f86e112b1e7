//go:build unix

package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/batchtest"
	"github.com/stonelayer/stone/llm/anthropic"
)

// A run that does not wait for its batches is looked at again by resume, with the flags that it was started with.
func TestBatch(t *testing.T) {
	b := batchtest.New(t, 1)
	inProject(t, "{}")
	t.Setenv("STONE_DB", filepath.Join(t.TempDir(), "stone.db"))
	item, reply, all := dag.NewType[int]("item"), dag.NewType[agent.Text]("reply"), dag.NewType[string]("all")
	model := anthropic.New(anthropic.Config{URL: b.URL, Key: "key", Model: "m", MaxTokens: 100})
	p := stone.Seq("many",
		stone.Map("each", dag.ReaderFunc(func(dag.DAG) ([]int, error) { return []int{1, 2, 3}, nil }), item,
			agent.New("ask", reply, model, agent.Config{User: agent.Prompt(item, func(i int) string { return fmt.Sprint("question ", i) })})),
		stone.Reduce(stone.Func("join", dag.All(reply), all, func(_ context.Context, texts []agent.Text) (out string, err error) {
			for _, one := range texts {
				out += one.Text + "\n"
			}
			return out, nil
		})))
	linked := parts
	run := func(args ...string) (code int, stdout, stderr string) {
		var out, errs bytes.Buffer
		code = cli.Run(t.Context(), cli.Config{
			Parts: linked, Pipeline: func([]string) (stone.Ashlar, error) { return p, nil }, Name: "many", Args: args,
			Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
		})
		return code, out.String(), errs.String()
	}
	type line struct {
		args           string
		code           int
		stdout, stderr string
	}
	prints := func(lines ...line) {
		t.Helper()
		for _, c := range lines {
			code, stdout, stderr := run(strings.Fields(c.args)...)
			if code != c.code || !strings.Contains(stdout, c.stdout) || !strings.Contains(stderr, c.stderr) {
				t.Errorf("%s: code %d, want %d\n%s\n%s", c.args, code, c.code, stdout, stderr)
			}
		}
	}
	prints(
		line{"run --no-wait", 2, "", "--no-wait needs --batch"},
		line{"run --batch --no-db", 2, "", "Error: --batch needs a journal"},
		line{"run --batch --record x", 2, "", "cannot be combined"},
		line{"run -q --id a --batch --no-wait", 3, "", "waiting: batch batch_1_ of anthropic: 0 of 3 done, expires in 24h\nto look again: many resume a\n"},
		line{"runs", 0, "waiting", ""},
		line{"show a", 0, "batch batch_1_ of anthropic", ""},
		line{"resume a -q", 0, "answer 1\nanswer 2\nanswer 3\n", ""},
		line{"runs", 0, "done", ""},
		line{"run --id b --batch", 0, "answer 3\n", "batch batch_2_ of anthropic: 0 of 3 done"},
		line{"runs last --json", 2, "", ""},
		line{"show last", 0, "each", ""},
	)
	b.Looks = 100
	prints(
		line{"run -q --id c --batch --no-wait", 3, "", "waiting: batch batch_3_"},
		line{"cancel a", 1, "", "run a is done"},
		line{"runs gc --keep 0", 0, "removed 2 runs, kept 1", ""},
		line{"resume c -q --no-wait", 3, "", "waiting: batch batch_3_"},
	)
	const missing = "Error: --batch: this program sends no batches: give cli.Main the part of package github.com/stonelayer/stone/x/batch, or "
	linked = nil
	prints(line{"run --batch", 2, "", missing}, line{"resume c", 2, "", missing}, line{"cancel c", 2, "", missing})
	linked = parts
	prints(
		line{"runs --state waiting --json", 0, `"id": "c"`, ""},
		line{"cancel c", 0, "", "run c is canceled"},
		line{"runs --state canceled --json", 0, `"id": "c"`, ""},
		line{"cancel c", 1, "", "run c is canceled: only a waiting"},
		line{"cancel", 2, "", "RUN is missing"},
	)
	if len(b.Batches) != 3 || !b.Batches[2].Canceled || b.Direct != 0 {
		t.Errorf("%d batches, canceled %t, %d direct requests", len(b.Batches), b.Batches[2].Canceled, b.Direct)
	}
	b.Looks = 1
	// All cases of an evaluation are one batch.
	if err := os.WriteFile("rows.jsonl", []byte(`{"item":1,"expected":"answer 1"}`+"\n"+`{"item":2,"expected":"answer 2"}`+"\n"+`{"item":3,"expected":"other"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p = agent.New("ask", reply, model, agent.Config{User: agent.Prompt(item, func(i int) string { return fmt.Sprint("question ", i) })})
	code, stdout, stderr := run("eval", "-q", "--data", "rows.jsonl", "--score", "exact", "--batch")
	if code != 0 || !strings.Contains(stdout, "exact  0.6667") {
		t.Errorf("eval: code %d\n%s\n%s", code, stdout, stderr)
	}
	if len(b.Batches) != 4 || len(b.Batches[3].Keys) != 3 || b.Direct != 0 {
		t.Errorf("%d batches, %d direct requests", len(b.Batches), b.Direct)
	}
}
