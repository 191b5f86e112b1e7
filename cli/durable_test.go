//go:build unix

package cli_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/declared"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/tool"
	"github.com/stonelayer/stone/tool/fs"
)

func init() {
	programs["stages"], programs["slow"] = stages, slow
	programs["asks"], programs["asks-typed"], programs["wide"] = asks, asksTyped, wide
	programs["approves"] = approves
	programs["spill"] = func() stone.Ashlar {
		return stone.Func0("spill", word, func(context.Context) (string, error) { return "the key is " + os.Getenv("OPENAI_API_KEY"), nil })
	}
}

// done writes down in the file log that work was done.
func done(what string) error {
	f, err := os.OpenFile("log", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = fmt.Fprintln(f, what)
	return err
}

var (
	opened = dag.NewType[string]("opened")
	closed = dag.NewType[string]("closed")
)

// stages stops at a gate until a file ok exists. Two environment
// variables change the pipeline: EXTRA adds a step, VERSION sets the first step's version.
func stages(args []string) (stone.Ashlar, error) {
	flags := flag.NewFlagSet("stages", flag.ContinueOnError)
	name := flags.String("name", "nobody", "who opens")
	if err := flags.Parse(args); err != nil {
		return stone.Ashlar{}, err
	}
	steps := []stone.Ashlar{
		stone.Func0("open", opened, func(context.Context) (string, error) { return *name, done("open") },
			stone.Reusable(), stone.Version(os.Getenv("VERSION")+*name)),
		stone.Func0("gate", sum, func(context.Context) (int, error) {
			if !isFile("ok") {
				return 0, stone.Fail("not-yet", "no file ok")
			}
			return 1, done("gate")
		}),
		stone.Func("close", opened, closed, func(_ context.Context, by string) (string, error) { return "opened by " + by, done("close") }),
	}
	if os.Getenv("EXTRA") != "" {
		steps = append(steps, step("extra", word, "more"))
	}
	return stone.Seq("stages", steps...), nil
}

// slow is in its second step until there is a file go, or it is cancelled.
func slow() stone.Ashlar {
	return stone.Seq("slow",
		stone.Func0("first", opened, func(context.Context) (string, error) { return "first", done("first") }),
		stone.Func0("second", sum, func(ctx context.Context) (int, error) {
			touch("started")
			for !isFile("go") {
				select {
				case <-ctx.Done():
					return 0, ctx.Err()
				case <-time.After(10 * time.Millisecond):
				}
			}
			return 2, done("second")
		}),
		stone.Func("third", opened, closed, func(_ context.Context, s string) (string, error) { return s + " to third", done("third") }),
	)
}

// asks asks one question after work and before more of it.
func asks() stone.Ashlar {
	return stone.Seq("asks",
		stone.Func0("draft", opened, func(context.Context) (string, error) { return "a draft", done("draft") }),
		stone.Ask("may I", dag.Nothing, reply, func(struct{}) string { return "Shall it be published?" }, stone.Choices("yes", "no")),
		stone.Func("publish", reply, closed, func(_ context.Context, a stone.Answer) (string, error) {
			return "published: " + a.Response, done("publish")
		}))
}

// asksTyped asks for JSON.
func asksTyped() stone.Ashlar {
	type decision struct {
		Go  bool   `json:"go"`
		Why string `json:"why"`
	}
	return stone.Ask("decide", dag.Nothing, dag.NewType[decision]("decision"), func(struct{}) string { return "Shall it go?" })
}

// approves is an agent that writes two files with approval.
func approves() stone.Ashlar {
	write := func(name string) llm.ToolCall {
		return llm.ToolCall{ID: name, Name: "write_file", Input: json.RawMessage(`{"path":"` + name + `","content":"\u001b[31mred\n"}`)}
	}
	model := script.Func(func(n int, req *llm.Request) script.Answer {
		if err := done(fmt.Sprint("request with ", len(req.Messages))); err != nil {
			return script.Fail(err)
		}
		if len(req.Messages) == 1 {
			return script.Calls(write("a"), write("b"))
		}
		return script.Text(req.Messages[2].Text() + "; " + req.Messages[3].Text())
	})
	return agent.New("approves", dag.NewType[agent.Text]("report"), model, agent.Config{
		User: agent.Say("write"), Use: []agent.Middleware{tool.Confirm(fs.Write(fs.Root{Dir: "."}), tool.Ask)},
	})
}

// wide has many lanes, of which one is lost.
func wide() stone.Ashlar {
	return stone.Seq("wide",
		stone.Map("each", dag.ReaderFunc(func(dag.DAG) ([]int, error) { return make([]int, 30), nil }), item,
			stone.New("work", number, func(ctx context.Context, _ dag.DAG) (any, error) {
				if strings.Contains(stone.In(ctx).Path(), "[20]") {
					return nil, stone.Fail("no-luck", "one is lost")
				}
				return stone.Step(declared.With(ctx, budget.Amount{Roundtrips: 1}), "ask", nil, func(context.Context, any) (any, error) {
					return map[string]any{"usage": map[string]any{"input-tokens": 1000, "output-tokens": 10, "usd": 0.01}}, nil
				})
			})),
		stone.Reduce(stone.Func("count", dag.All(number), sum, func(_ context.Context, all []any) (int, error) { return len(all), nil })))
}

// command runs a command line in this process and returns its exit code and what
// it wrote to standard error.
func command(pipeline any, args ...string) (int, string) {
	var errs strings.Builder
	code := cli.Run(context.Background(), cli.Config{
		Parts: parts, Pipeline: pipeline, Name: "prog", Args: args, Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &errs,
	})
	return code, errs.String()
}

// TestDamage checks that a changed node is refused by the names of its run and its
// own, and that the runs beside it are well.
func TestDamage(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, id := range []string{"good", "bad"} {
		if code, errs := command(hello(), "run", "-q", "--id", id); code != cli.Done {
			t.Fatal(errs)
		}
	}
	db, err := sql.Open("sqlite", "file:.stone/stone.db")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	res, err := db.Exec(`UPDATE records SET content = CAST('"jello"' AS BLOB) WHERE seq = (SELECT max(seq) FROM records WHERE content IS NOT NULL)`)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := res.RowsAffected(); n != 1 || err != nil {
		t.Fatalf("%d rows changed, %v", n, err)
	}
	for _, args := range [][]string{{"export", "bad", "--as", "dag"}, {"show", "bad", "say-hello"}, {"resume", "bad"}} {
		code, errs := command(hello(), args...)
		if code != cli.Failed || !strings.Contains(errs, `run "bad" in `) || !strings.Contains(errs, "say-hello (node ") {
			t.Errorf("%q: exit code %d: %s", args, code, errs)
		}
	}
	if code, errs := command(hello(), "resume", "-q", "good"); code != cli.Done {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
