package plan_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm/script"
	plans "github.com/stonelayer/stone/plan"
	"github.com/stonelayer/stone/tool/plan"
)

// An agent writes a plan, is told what is wrong with it, and gets what the corrected plan emits.
func TestTool(t *testing.T) {
	const sends = `{"nodes":[{"op":"call","intent":"mail/send","input":{"to":"a","body":"b"},"as":"sent"},{"op":"emit","input":{"sent":{"slot/id":"sent"}}}]}`
	m := script.New(
		script.Call("run_plan", `{"plan":`+badPlan+`}`),
		script.Call("run_plan", `{"plan":`+sends+`}`), // which has no effects here
		script.Call("run_plan", `{"plan":`+goodPlan+`}`),
		script.Text("Done."),
	)
	report := dag.NewType[agent.Text]("report")
	app := desk(nil)
	a := agent.New("assistant", report, m, agent.Config{
		System: agent.Say("You answer letters."), User: agent.Say("Go."),
		Use: []agent.Middleware{plan.Tool("run_plan", app, plan.Options{Slots: []string{"letter"}})},
	})
	input, err := plans.Bind(dag.DAG{}, map[string]any{"letter": "The page is blank."})
	if err != nil {
		t.Fatal(err)
	}
	account := budget.New(budget.Limits{})
	result, err := stone.Run(budget.With(t.Context(), account), a, stone.Config{Input: input, Grant: []string{"net/smtp"}})
	if err != nil {
		t.Fatal(err)
	}
	requests := m.Requests()
	if len(requests) != 4 {
		t.Fatalf("the model was asked %d times", len(requests))
	}
	if system := requests[0].System; !strings.HasPrefix(system, "You answer letters.\n\nThe argument \"plan\"") || !strings.Contains(system, "letter/summarise") ||
		!strings.Contains(system, "- letter") || strings.Contains(system, "mail/send") || strings.Contains(system, `"help"`) {
		t.Errorf("the system text is %s", system)
	}
	last := func(i int) string { return requests[i].Messages[len(requests[i].Messages)-1].Text() }
	for _, want := range []string{`unknown op "cal"`, `unknown op "return"`, "Call the tool again with the whole corrected plan."} {
		if !strings.Contains(last(1), want) {
			t.Errorf("%q is not told: %s", want, last(1))
		}
	}
	if !strings.Contains(last(2), "net/smtp") && !strings.Contains(last(2), "mail/send") {
		t.Errorf("the model is told %s", last(2))
	}
	if last(3) != `{"summary":"It is broken."}` {
		t.Errorf("the result is %s", last(3))
	}
	if spent := account.Spent(); spent.Roundtrips < 5 {
		t.Errorf("the account was charged %d round trips, want four turns and the plan's call", spent.Roundtrips)
	}
	if n, err := result.DAG.Nearest("report"); err != nil || n == nil {
		t.Error(err)
	}
}

// A resumed agent repeats neither its turns nor the calls of a plan that it ran.
func TestToolResumes(t *testing.T) {
	memory := memdb.New(t)
	m := script.New(script.Call("run_plan", `{"plan":`+badPlan+`}`), script.Call("run_plan", `{"plan":`+goodPlan+`}`), script.Text("Done."))
	sums := 0
	app := desk(func() { sums++ })
	input, err := plans.Bind(dag.DAG{}, map[string]any{"letter": "The page is blank."})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		a := agent.New("assistant", dag.NewType[agent.Text]("report"), m, agent.Config{
			User: agent.Say("Go."), Use: []agent.Middleware{plan.Tool("run_plan", app, plan.Options{Slots: []string{"letter"}})},
		})
		fails := stone.New("after", dag.NewType[int]("after"), func(context.Context, dag.DAG) (int, error) { return 0, errors.New("no") })
		_, err = stone.Run(t.Context(), stone.Seq("all", a, fails), stone.Config{RunID: "monday", Input: input, Recorder: journal.Keep(memory, journal.Options{})})
		if err == nil || len(m.Requests()) != 3 || sums != 1 {
			t.Fatalf("the model was asked %d times, the plan's call made %d times: %v", len(m.Requests()), sums, err)
		}
	}
}

const (
	goodPlan = `{"nodes":[{"op":"call","intent":"letter/summarise","input":{"text":{"slot/id":"letter"}},"as":"summary"},{"op":"emit","input":{"summary":{"slot/id":["summary","text"]}}}]}`
	badPlan  = `{"nodes":[{"op":"cal","intent":"letter/summarise","input":{"text":{"slot/id":"letter"}},"as":"summary"},{"op":"return","input":{"summary":{"slot/id":"summary"}}}]}`
)

// desk answers two intents, of which one needs an effect.
func desk(summarised func()) *call.Applicator {
	caps := []call.Capability{
		{Metadata: call.Metadata{ID: "desk/summarise", Kind: "go", Intents: []string{"letter/summarise"}, Needs: []string{}}, Invoke: func(context.Context, *call.Request) (*call.Reply, error) {
			if summarised != nil {
				summarised()
			}
			return &call.Reply{Out: call.JSON(`{"text":"It is broken."}`)}, nil
		}},
		{Metadata: call.Metadata{ID: "desk/send", Kind: "go", Intents: []string{"mail/send"}, Needs: []string{"net/smtp"}}, Invoke: func(context.Context, *call.Request) (*call.Reply, error) {
			return &call.Reply{Out: call.JSON(`{"sent":true}`)}, nil
		}},
	}
	return &call.Applicator{Registry: call.NewRegistry(caps...)}
}
