//go:build unix

package cli_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/tool"
)

// programs are the pipelines of the scripts, each under the name of its command.
var programs = map[string]any{
	"hello":     hello(),
	"crasher":   crasher(),
	"greet":     greet,
	"shape":     func() stone.Ashlar { return step[any]("shape", number, map[string]any{"b": []int{1, 2}, "a": "<&>"}) },
	"warned":    func() stone.Ashlar { return stone.Seq("warned", step("aside", number, 1), hello()) },
	"invalid":   invalid,
	"failing":   failing,
	"lossy":     lossy,
	"clumsy":    clumsy,
	"asker":     asker,
	"echo":      echo,
	"sleeper":   func() stone.Ashlar { return sleeper(true) },
	"stubborn":  func() stone.Ashlar { return sleeper(false) },
	"every":     every,
	"keyed":     keyed,
	"many":      many,
	"crew":      crew,
	"steered":   func() stone.Ashlar { return stone.Seq("a\x1b[31m\nb", hello()) },
	"wrongtype": func() (string, error) { return "", nil },
	"nothing":   nil,
	"nilfunc":   (func() stone.Ashlar)(nil),
	"zero":      stone.Ashlar{},
	"panics":    func() stone.Ashlar { panic("no\nluck") },
}

var (
	word   = dag.NewType[string]("word")
	number = dag.NewType[any]("number")
	item   = dag.NewType[int]("item")
	sum    = dag.NewType[int]("sum")
	reply  = dag.NewType[stone.Answer]("reply")
)

func step[T any](name string, t dag.Type[T], v T) stone.Ashlar {
	return stone.Func0(name, t, func(context.Context) (T, error) { return v, nil })
}

// crasher panics where nothing recovers, with a secret.
func crasher() stone.Ashlar {
	return stone.Func0("crash", word, func(context.Context) (string, error) {
		go func() { panic("no luck with " + os.Getenv("ANTHROPIC_API_KEY")) }()
		select {}
	})
}

func hello() stone.Ashlar { return step("say-hello", word, "hello") }

// greet takes arguments.
func greet(args []string) (stone.Ashlar, error) {
	flags := flag.NewFlagSet("greet", flag.ContinueOnError)
	var usage strings.Builder
	flags.SetOutput(&usage)
	whom := flags.String("whom", "world", "who is greeted")
	if err := flags.Parse(args); err != nil {
		return stone.Ashlar{}, errors.New(usage.String())
	}
	if flags.NArg() > 0 {
		return stone.Ashlar{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return step("greet", word, "hello, "+*whom), nil
}

func invalid() stone.Ashlar {
	use := func(s string) stone.Ashlar {
		return stone.Func(s, word, sum, func(context.Context, string) (int, error) { return 0, nil })
	}
	return stone.Seq("invalid", step("aside", number, 1), use("count"), stone.Loop("endless", use("again"), nil, 2))
}

func failing() stone.Ashlar {
	return stone.Seq("failing", hello(), stone.Func0("break", sum, func(context.Context) (int, error) {
		return 0, stone.Fail("no-luck", "it broke\nin two")
	}))
}

// clumsy is an agent whose first tool call fails.
func clumsy() stone.Ashlar {
	look := tool.Func("look_up", "Looks a word up.", func(_ context.Context, in struct {
		Word string `json:"word"`
	}) (string, error) {
		if in.Word == "" {
			return "", errors.New("there is no such word:\nname one")
		}
		return "a stone", nil
	})
	model := script.Func(func(n int, _ *llm.Request) script.Answer {
		return []script.Answer{script.Call("look_up", `{"word":""}`), script.Call("look_up", `{"word":"ashlar"}`), script.Text("done")}[n]
	})
	return stone.Seq("clumsy", agent.New("search", dag.NewType[agent.Text]("found"), model, agent.Config{
		Use: []agent.Middleware{look}, User: agent.Say("What is an ashlar?"),
	}))
}

// lossy loses every lane of an odd number but the last.
func lossy() stone.Ashlar {
	var items []int
	for i := range 20 {
		items = append(items, i)
	}
	return stone.Seq("lossy",
		stone.Map("each", dag.ReaderFunc(func(dag.DAG) ([]int, error) { return items, nil }), item,
			stone.Func("halve", item, number, func(_ context.Context, i int) (any, error) {
				if i%2 == 1 {
					return nil, fmt.Errorf("%d is odd", i)
				}
				return i / 2, nil
			}), stone.Lanes(1)),
		stone.Reduce(stone.Func("count", dag.All(number), sum, func(_ context.Context, all []any) (int, error) { return len(all), nil })),
	)
}

func asker() stone.Ashlar {
	question := func(name string) stone.Ashlar {
		return stone.Ask(name, dag.Nothing, reply, func(struct{}) string { return "Which of them\nis it?" }, stone.Choices("left", "right"))
	}
	return stone.Seq("asker",
		stone.Parallel("both", question("first"), question("second"), stone.AllLanes()),
		stone.Reduce(stone.Func("join", dag.All(reply), word, func(_ context.Context, all []stone.Answer) (string, error) {
			return fmt.Sprint(all), nil
		})))
}

// echo says what the run began with.
func echo() stone.Ashlar {
	return stone.New("echo", number, func(_ context.Context, d dag.DAG) (any, error) {
		said, err := dag.All(word).From(d)
		return "began with " + strings.Join(said, ", "), err
	}, stone.Queries(dag.Maybe(dag.All(word))))
}

// sleeper tells with files that it has started, and that it was cancelled.
func sleeper(listens bool) stone.Ashlar {
	return stone.Seq("sleeper", hello(), stone.Func0("sleep", sum, func(ctx context.Context) (int, error) {
		touch("started")
		<-ctx.Done()
		touch("canceled")
		if !listens {
			time.Sleep(time.Hour)
		}
		return 0, ctx.Err()
	}))
}

func touch(name string) {
	if f, err := os.Create(name); err == nil {
		f.Close()
	}
}

// every has every form.
func every() stone.Ashlar {
	plus := stone.Func("plus", item, sum, func(_ context.Context, i int) (int, error) { return i, nil })
	total := stone.Reduce(stone.Func("total", dag.All(sum), sum, func(_ context.Context, all []int) (int, error) { return len(all), nil }))
	return stone.Seq("every",
		step("start", word, `"quoted" \ <b>`),
		stone.Loop("loop", step("round", word, "x"), stone.Until(word, func(string) bool { return true }), 3),
		stone.Match("pick", stone.On(word, func(s string) string { return s }),
			stone.Case("x", step("is-x", word, "x")),
			stone.Case("y", step("is-y", word, "y"))),
		stone.Map("map", dag.Derive(word, func(string) []int { return []int{1, 2} }), item, plus),
		total,
		stone.Parallel("parallel", step("one", sum, 1), step("two", sum, 2)),
		total,
		stone.Rescue("rescue", step("try", word, "a"), step("heal", word, "b")),
		stone.Scoped("scoped", stone.Walk{}.InOrder(step("inner", word, "c")), nested),
		stone.Ask("ask", dag.Nothing, reply, func(struct{}) string { return "Really?" }),
	)
}

func nested(context.Context, dag.DAG) (dag.DAG, error) { return dag.DAG{}, io.EOF }

// many has 2^12 paths.
func many() stone.Ashlar {
	var steps []stone.Ashlar
	for range 12 {
		steps = append(steps, stone.Match("pick", stone.On(word, func(s string) string { return s }),
			stone.Case("x", step("x", word, "x")), stone.Case("y", step("y", word, "y"))))
	}
	return stone.Seq("many", append([]stone.Ashlar{hello()}, steps...)...)
}

// crew is an agent with tools whose drafts another agent judges.
func crew() stone.Ashlar {
	save := tool.Func("save", "Saves a text.", func(context.Context, struct{}) (string, error) { return "", nil }, tool.Effects("fs/write"))
	look := tool.Func("look", "Looks around.", func(context.Context, struct{}) (string, error) { return "", nil })
	judge := agent.New("judge", dag.NewType[agent.Text]("verdict"), script.New(), agent.Config{User: agent.Say("Is it good?"), Model: "large"})
	return stone.Seq("crew", hello(), agent.New("writer", dag.NewType[agent.Text]("poem"), script.New(), agent.Config{
		System:    agent.Say("You write poems.\nThey rhyme."),
		User:      agent.Prompt(word, func(w string) string { return w }),
		Use:       []agent.Middleware{save, look},
		MaxTurns:  4,
		Adversary: judge,
	}))
}
