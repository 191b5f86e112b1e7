package cli_test

import (
	"bytes"
	"context"
	"fmt"
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

// resume all continues runs that wait for their batches alone.
func TestResumeAllBatches(t *testing.T) {
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
	run := func(args string) (code int, text string) {
		var out bytes.Buffer
		code = cli.Run(t.Context(), cli.Config{
			Parts: parts, Pipeline: func([]string) (stone.Ashlar, error) { return p, nil }, Name: "many", Args: strings.Fields(args),
			Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out,
		})
		return code, out.String()
	}
	if code, text := run("run -q --id a --batch --no-wait"); code != 3 {
		t.Fatal(code, text)
	}
	said := ""
	for range 4 { // from cron
		_, text := run("resume all -q")
		said += text
	}
	if !strings.Contains(said, "answer 3") {
		_, alone := run("resume a -q")
		t.Errorf("resume all: %s\nresumed by name: %s", said, alone)
	}
}
