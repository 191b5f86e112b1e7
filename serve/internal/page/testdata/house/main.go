// Command house creates the runs that the tests of the pages use. Its first argument after -- is the name of the pipeline.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/cli"
	"github.com/stonelayer/stone/cli/serve"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	evals "github.com/stonelayer/stone/x/eval/commands"
	"github.com/stonelayer/stone/x/retrieve/commands"
	"github.com/stonelayer/stone/x/retrieve/search"
)

type review struct {
	Verdict string   `json:"verdict" enum:"accept,reject"`
	Score   int64    `json:"score"`
	Public  bool     `json:"public,omitempty"`
	Reasons []string `json:"reasons,omitempty"`
	Remark  string   `json:"remark,omitempty"`
}

var (
	request  = dag.NewType[string]("request")
	draft    = dag.NewType[string]("draft")
	approval = dag.NewType[stone.Answer]("approval")
	article  = dag.NewType[string]("article")
	item     = dag.NewType[int]("item")
	measure  = dag.NewType[int]("measure")
	total    = dag.NewType[int]("total")
	opinion  = dag.NewType[review]("opinion")
	fix      = dag.NewType[agent.Text]("fix")
	big      = dag.NewType[map[string]json.Number]("numbers")
)

func main() { cli.Main(pipeline, serve.Part, search.Part, commands.Part, evals.Part) }

func pipeline(args []string) (stone.Ashlar, error) {
	if len(args) == 0 {
		args = []string{"article"}
	}
	n := 100
	if len(args) > 1 {
		n, _ = strconv.Atoi(args[1])
	}
	start := say("outline", request, "Marble: what it is, where it is quarried, how it is cut.")
	switch args[0] {
	case "article":
		return stone.Seq("article", start, writing(), asking(), publishing()), nil
	case "review":
		return stone.Seq("review", start, writing(), stone.Ask("opinion", draft, opinion, func(text string) string {
			return "What do you think of this draft?\n\n" + text
		})), nil
	case "failing":
		return stone.Seq("failing", start, writing(), stone.Func("check", draft, article, func(_ context.Context, text string) (string, error) {
			return "", stone.Fail("refused", "the draft %.30q… names no source: add one and resume", text)
		})), nil
	case "fan":
		return fan(n), nil
	case "agent":
		return repairing(), nil
	case "hostile":
		return hostile(), nil
	case "long":
		return stone.Seq("long", say("lines", draft, strings.Repeat("a line of a long content\n", 8000)), numbers()), nil
	case "call":
		return summarising(append(args, call.Cascade)[1]), nil
	case "paying":
		return paying("90071992547409931"), nil
	case "improving":
		return improving(), nil
	case "adding":
		return adding(len(args) > 1), nil
	case "speaking":
		return speaking(), nil
	case "reply":
		return replying("A new invoice is on its way."), nil
	case "refund":
		return replying("You get a refund."), nil
	case "invoices":
		return invoicing(n), nil
	case "triage":
		return triaging(len(args) > 1), nil
	case "support":
		return paying("4711"), nil
	case "slow":
		return stone.Seq("slow", start, fan(n)), nil
	}
	return stone.Ashlar{}, fmt.Errorf("unknown pipeline %q", args[0])
}

func say(name string, out dag.Type[string], text string) stone.Ashlar {
	return stone.Func(name, dag.Everything, out, func(context.Context, dag.DAG) (string, error) { return text, nil })
}

// speaking streams the first words of an answer that never ends.
func speaking() stone.Ashlar {
	return stone.Seq("speaking", stone.Func0("speak", draft, func(ctx context.Context) (string, error) {
		voice := event.At(ctx).Speak("model/slow")
		for _, word := range strings.Fields("Marble is quarried in blocks of") {
			voice.Say(event.Text, word+" ")
		}
		<-ctx.Done()
		return "", context.Cause(ctx)
	}))
}

func writing() stone.Ashlar {
	return stone.Func("write", request, draft, func(_ context.Context, text string) (string, error) {
		return "A draft about this: " + text, nil
	})
}

func asking() stone.Ashlar {
	return stone.Ask("approve", draft, approval, func(text string) string { return "Publish this?\n\n" + text }, stone.Choices("yes", "no"))
}

func publishing() stone.Ashlar {
	return stone.Func2("publish", draft, approval, article, func(_ context.Context, text string, a stone.Answer) (string, error) {
		return a.Response + ": " + text, nil
	})
}

// fan measures n things. One in a thousand fails and is lost. A small fan is slow.
func fan(n int) stone.Ashlar {
	list := dag.ReaderFunc(func(dag.DAG) ([]int, error) {
		all := make([]int, n)
		for i := range all {
			all[i] = i
		}
		return all, nil
	})
	body := stone.Func("measure", item, measure, func(ctx context.Context, i int) (int, error) {
		if n < 1000 {
			select {
			case <-time.After(200 * time.Millisecond):
			case <-ctx.Done():
			}
		}
		if i%1000 == 999 {
			return 0, stone.Fail("unreadable", "thing %d cannot be measured", i)
		}
		return i * i, nil
	})
	sum := stone.Func("sum", dag.All(measure), total, func(_ context.Context, all []int) (sum int, err error) {
		for _, m := range all {
			sum += m
		}
		return sum, nil
	})
	width := 64
	if n < 1000 {
		width = 1
	}
	return stone.Seq("fan", stone.Map("things", list, item, body, stone.Lanes(width)), stone.Reduce(sum))
}

func repairing() stone.Ashlar {
	read := agent.Tool{Tool: llm.Tool{Name: "read_file", Description: "Returns the text of a file.", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`)},
		Run: func(_ context.Context, input json.RawMessage) (agent.Result, error) {
			return agent.Result{Text: "package mean\n\nfunc Mean(v []float64) float64 {\n\tsum := 0.0\n\tfor _, x := range v {\n\t\tsum += x\n\t}\n\treturn sum / float64(len(v)+1)\n}\n"}, nil
		}}
	edit := agent.Tool{Tool: llm.Tool{Name: "edit_file", Description: "Replaces text in a file.", Schema: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"},"old_string":{"type":"string"},"new_string":{"type":"string"}},"required":["path","old_string","new_string"]}`)},
		Run: func(context.Context, json.RawMessage) (agent.Result, error) {
			return agent.Result{Text: "edited mean.go"}, nil
		}}
	test := agent.Tool{Tool: llm.Tool{Name: "go_test", Description: "Runs the tests.", Schema: json.RawMessage(`{"type":"object"}`)},
		Run: func(context.Context, json.RawMessage) (agent.Result, error) {
			return agent.Result{Text: "ok  \texample.com/mean\t0.003s"}, nil
		}}
	model := script.New(
		script.Call("read_file", `{"path":"mean.go"}`),
		script.Call("edit_file", `{"path":"mean.go","old_string":"\tfor _, x := range v {\n\t\tsum += x\n\t}\n\treturn sum / float64(len(v)+1)\n","new_string":"\tfor _, x := range v {\n\t\tsum += x\n\t}\n\tif len(v) == 0 {\n\t\treturn 0\n\t}\n\treturn sum / float64(len(v))\n"}`),
		script.Call("go_test", `{}`),
		script.Text("Mean divided by one more than the number of values. It now divides by their number, and returns 0 for none."),
	)
	return agent.New("repair", fix, model, agent.Config{
		System: agent.Say("You repair Go packages."), User: agent.Say("The test of package mean fails: want 2, got 1.5. Repair it."),
		Use: []agent.Middleware{agent.Use(read), agent.Use(edit), agent.Use(test)},
	})
}

const attack = `<script>document.title="owned"</script><img src=x onerror="document.title='owned'">"'><svg/onload=alert(1)>{{.}}</textarea></pre></title>javascript:alert(1)`

// hostile contains a script wherever a text is possible.
func hostile() stone.Ashlar {
	return stone.Seq("hostile", say(attack, draft, attack),
		stone.Ask("<script>document.title='owned'</script>", draft, approval, func(text string) string { return text }, stone.Choices(attack, "no")))
}

func numbers() stone.Ashlar {
	return stone.Func("numbers", draft, big, func(context.Context, string) (map[string]json.Number, error) {
		return map[string]json.Number{"big": "12345678901234567890", "exact": "0.1000000000000000055511151231257827"}, nil
	})
}
