package main

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/tool"
)

type summary struct {
	Text   string `json:"text"`
	Source string `json:"source"`
}

var (
	ticket = dag.NewType[string]("ticket")
	brief  = dag.NewType[summary]("brief")
	refund = dag.NewType[agent.Text]("refund")
	number = dag.NewType[float64]("number")
)

// model answers with a text after a delay. If the text is "", the model is not available.
func model(id string, usd float64, wait time.Duration, text, source string) call.Capability {
	return call.Capability{
		Metadata: call.Metadata{ID: id, Kind: "llm", Version: "2026-06", Intents: []string{"text/summarise"}, Cost: call.Cost{USD: usd}},
		Invoke: func(ctx context.Context, _ *call.Request) (*call.Reply, error) {
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			if text == "" {
				return nil, &call.Error{Type: "runtime/unavailable", Message: "503 Service Unavailable: the model is overloaded"}
			}
			out, err := json.Marshal(summary{text, source})
			return &call.Reply{Out: out, Usage: call.Usage{Usage: budget.Usage{InputTokens: 412, OutputTokens: len(text) / 4, USD: usd}}}, err
		},
	}
}

// judge prefers short texts.
var judge = call.Capability{
	Metadata: call.Metadata{ID: "judge/brevity", Kind: "llm", Version: "3", Intents: []string{"eval/grade"}, Cost: call.Cost{USD: 0.0004}},
	Invoke: func(_ context.Context, r *call.Request) (*call.Reply, error) {
		var in struct{ Out summary }
		if err := json.Unmarshal(r.Input, &in); err != nil {
			return nil, err
		}
		score := max(0, 1-float64(len(in.Out.Text))/200)
		return &call.Reply{Out: call.JSON(fmt.Sprintf(`{"score":%.2f,"reasons":["%d characters"]}`, score, len(in.Out.Text))),
			Usage: call.Usage{Usage: budget.Usage{InputTokens: 260, OutputTokens: 12, USD: 0.0004}}}, nil
	},
}

const (
	long  = "The customer writes at some length that the invoice of March has not arrived, that the one of February had arrived late, and that the address was given twice."
	short = "The invoice of March has not arrived; the address was given twice."
)

// summarising is a call with a strategy.
func summarising(strategy string) stone.Ashlar {
	minimum, on := 0.6, true
	again := 1
	app := &call.Applicator{
		Registry: call.NewRegistry(
			model("model/down", 0.0001, 0, "", ""),
			model("model/tiny", 0.0002, 20*time.Millisecond, long, ""),
			model("model/small", 0.001, 60*time.Millisecond, long, "ticket 4711"),
			model("model/slow", 0.05, time.Hour, short, "ticket 4711"),
			model("model/large", 0.02, 120*time.Millisecond, short, "ticket 4711"),
			call.Func(call.Metadata{ID: "solver/words", Intents: []string{"text/translate"}}, func(context.Context, any) (summary, error) { return summary{}, nil }),
			judge,
		),
		Checks: map[string]call.Check{
			"names-a-source": func(_ context.Context, s call.Subject) error {
				var out summary
				if err := json.Unmarshal(s.Out, &out); err != nil || out.Source == "" {
					return fmt.Errorf("the field source is empty: name the ticket")
				}
				return nil
			},
			"at-most-100": func(_ context.Context, s call.Subject) error {
				var out summary
				if err := json.Unmarshal(s.Out, &out); err != nil || utf8.RuneCountInString(out.Text) > 100 {
					return fmt.Errorf("the text has %d characters, want at most 100", utf8.RuneCountInString(out.Text))
				}
				return nil
			},
			"offers-a-refund": func(context.Context, call.Subject) error { return fmt.Errorf("the text offers no refund") },
		},
		Policy: call.Policy{Default: call.Rules{
			Judge: call.Judge{On: &on, Cap: "judge/brevity", Rubric: "Is it short, and does it say what the customer wants?"},
			Retry: call.Retry{SameCapMax: &again},
		}},
	}
	spec := call.Spec{
		Applicator: app, Intent: "text/summarise", Input: call.From(dag.Derive(ticket, func(text string) map[string]string { return map[string]string{"text": text} })),
		Dispatch: call.Dispatch{Candidates: []string{"model/down", "model/tiny", "solver/words", "model/small", "model/large"}, Strategy: strategy},
		Done:     call.Done{Must: []string{"names-a-source"}, Should: []string{"at-most-100", "no-repetition"}, ScoreMin: &minimum},
	}
	if strategy == call.Race { // the last one is always stopped
		spec.Dispatch.Candidates = append(spec.Dispatch.Candidates, "model/slow")
	}
	if strategy == "slow" {
		spec.Dispatch.Strategy, spec.Dispatch.Candidates = call.Cascade, []string{"model/tiny", "model/slow"}
	}
	if strategy == "refused" {
		spec.Dispatch.Strategy, spec.Done.Must = call.Cascade, []string{"names-a-source", "offers-a-refund"}
	}
	return stone.Seq("tickets", say("read", ticket, "Invoice? March's has not come. February's came late. I gave the address twice!"), call.New("summarise", brief, spec))
}

// paying is an agent with a tool that requires approval.
func paying(order string) stone.Ashlar {
	type payment struct {
		Order  int    `json:"order" jsonschema:"number of the order"`
		Amount string `json:"amount" jsonschema:"in EUR"`
		Reason string `json:"reason"`
	}
	pay := tool.Func("refund", "Pays money back.", func(_ context.Context, p payment) (string, error) {
		return fmt.Sprintf("refunded %s EUR for order %d", p.Amount, p.Order), nil
	})
	m := script.New(
		script.Call("refund", `{"order":`+order+`,"amount":"18.50","reason":"the cup arrived broken"}`),
		script.Text("The money is on its way."),
	)
	return agent.New("support", refund, m, agent.Config{
		System: agent.Say("You help customers of a pottery."), User: agent.Say("My cup arrived broken. Order " + order + "."),
		Use: []agent.Middleware{tool.Confirm(pay, tool.Ask)},
	})
}

// improving is a loop whose body branches.
func improving() stone.Ashlar {
	round := 0
	guess := stone.Func("guess", dag.Everything, number, func(context.Context, dag.DAG) (float64, error) {
		round++
		return 1 / float64(round*round), nil
	})
	near := stone.Func("near", number, draft, func(_ context.Context, n float64) (string, error) { return fmt.Sprintf("near: %.3f", n), nil })
	far := stone.Func("far", number, draft, func(_ context.Context, n float64) (string, error) { return fmt.Sprintf("far: %.3f", n), nil })
	body := stone.Seq("round", guess, stone.Match("where", stone.On(number, func(n float64) string {
		if n < 0.2 {
			return "near"
		}
		return "far"
	}), stone.Case("near", near), stone.Case("far", far)))
	return stone.Seq("improving", stone.Loop("improve", body, stone.Until(number, func(n float64) bool { return n < 0.1 }), 6),
		stone.Rescue("publish", stone.Func("print", draft, article, func(context.Context, string) (string, error) {
			return "", stone.Fail("no-paper", "the printer has no paper")
		}), say("note", article, "Not printed.")),
		stone.Parallel("checks", say("spelling", request, "fine"), say("layout", approvalText, "fine"), stone.AllLanes()),
		stone.Reduce(say("done", article, "Done.")))
}

var approvalText = dag.NewType[string]("layout-report")

var digits = regexp.MustCompile(`\d+`)

type problem struct {
	Question string `json:"question"`
}

var (
	question = dag.NewType[problem]("problem")
	answer   = dag.NewType[int]("answer")
)

// adding answers questions such as "3 + 4". The careless model is cheaper, and wrong about large numbers.
func adding(careless bool) stone.Ashlar {
	id, usd := "model/large", 0.004
	if careless {
		id, usd = "model/small", 0.0003
	}
	app := &call.Applicator{Registry: call.NewRegistry(call.Capability{
		Metadata: call.Metadata{ID: id, Kind: "llm", Cost: call.Cost{USD: usd}},
		Invoke: func(_ context.Context, r *call.Request) (*call.Reply, error) {
			sum, question := 0, string(r.Input)
			for _, d := range digits.FindAllString(question, -1) {
				n := 0
				if _, err := fmt.Sscan(d, &n); err != nil {
					return nil, err
				}
				sum += n
			}
			if strings.Contains(question, "?") {
				return nil, &call.Error{Type: "unclear", Message: "the question has no sum"}
			}
			if careless && sum > 60 || !careless && sum%7 == 0 {
				sum++
			}
			return &call.Reply{Out: call.JSON(fmt.Sprint(sum)), Usage: call.Usage{Usage: budget.Usage{InputTokens: 40, OutputTokens: 3, USD: usd}}}, nil
		},
	})}
	return call.New("add", answer, call.Spec{Applicator: app, Intent: "math/add", Input: call.From(question)})
}
