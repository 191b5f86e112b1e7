package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm"
)

type questionDoc struct {
	Text string `json:"text"`
}

var question = dag.NewType[questionDoc]("question")

func ask(q questionDoc) string { return q.Text }

func together(t *agent.Tool) { t.Parallel = true }

// lead is an agent with an agent of its own as a tool.
func lead(boss, helper llm.Model, options ...func(*agent.Tool)) stone.Ashlar {
	research := agent.New("research", ticket, helper, agent.Config{User: agent.Prompt(question, ask), Use: []agent.Middleware{agent.Use(echo())}})
	return agent.New("lead", note, boss, agent.Config{
		User: agent.Say("begin"),
		Use:  []agent.Middleware{agent.Use(echo()), agent.AsTool("research", "Answers a question.", research, question, ticket, options...)},
	})
}

// TestAsToolResume kills a run after every record in turn: the resumed run has the ids of one that
// was not killed, and pays for nothing twice.
func TestAsToolResume(t *testing.T) {
	all := stone.Func("count", agent.Made(ticket), check, func(_ context.Context, found []ticketDoc) (passed, error) {
		var b strings.Builder
		for _, f := range found {
			fmt.Fprintf(&b, "%s %d;", f.Title, f.Level)
		}
		return passed{b.String()}, nil
	})
	boss := func() *canned {
		return model(calls("research", `{"text":"a"}`, "echo", `{"text":"x"}`), calls("research", `{"text":"a"}`, "research", `{"text":"b"}`), says("done"))
	}
	helper := func() *canned {
		return model(calls("echo", `{"text":"look"}`), says(`{"title":"one","level":1}`), says(`{"title":"one","level":1}`), says(`{"title":"two","level":2}`))
	}
	pipeline := func(boss, helper llm.Model) stone.Ashlar { return stone.Seq("all", lead(boss, helper), all) }
	whole := dies(t, -1)
	account := budget.New(budget.Limits{})
	b := boss()
	want, err := stone.Run(budget.With(t.Context(), account), pipeline(b, helper()), stone.Config{Recorder: whole, RunID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	addresses := []string{"value all/lead/opening", "step all/lead/turn-1",
		"value all/lead/tool-1-1/research/opening", "step all/lead/tool-1-1/research/turn-1", "step all/lead/tool-1-1/research/tool-1-1", "step all/lead/tool-1-1/research/turn-2", "leaf all/lead/tool-1-1/research", "step all/lead/tool-1-1",
		"step all/lead/tool-1-2", "step all/lead/turn-2",
		"value all/lead/tool-2-1/research/opening", "step all/lead/tool-2-1/research/turn-1", "leaf all/lead/tool-2-1/research", "step all/lead/tool-2-1",
		"value all/lead/tool-2-2/research/opening", "step all/lead/tool-2-2/research/turn-1", "leaf all/lead/tool-2-2/research", "step all/lead/tool-2-2",
		"step all/lead/turn-3", "leaf all/lead", "leaf all/count"}
	if got := fmt.Sprint(whole.log); got != fmt.Sprint(addresses) {
		t.Fatalf("records %v, want %v", got, addresses)
	}
	if got := want.Node.JSON(); !strings.Contains(got, "one 1;one 1;two 2;") {
		t.Errorf("the step after the agent found %s", got)
	}
	if n := account.Spent().Roundtrips; n != 7 {
		t.Errorf("%d round trips on the account, want 7", n)
	}
	asked := transcript(b.requests[2].Messages)
	if !strings.Contains(asked, "tool: {\"level\":1,\"title\":\"one\"}\n") {
		t.Errorf("the model was told\n%s", asked)
	}
	for died := range addresses {
		mem := dies(t, died)
		b, h := boss(), helper()
		if _, err := stone.Run(t.Context(), pipeline(b, h), stone.Config{Recorder: mem, RunID: "r"}); !errors.Is(err, errDied) {
			t.Fatalf("died after %d: %v", died, err)
		}
		mem.left = -1
		bs, hs := 0, 0
		for _, address := range mem.log {
			switch {
			case strings.HasPrefix(address, "step all/lead/turn-"):
				bs++
			case strings.Contains(address, "/research/turn-"):
				hs++
			}
		}
		b, h = boss(), helper()
		b.answers, h.answers = b.answers[bs:], h.answers[hs:]
		got, err := stone.Run(t.Context(), pipeline(b, h), stone.Config{Recorder: mem, RunID: "r"})
		if err != nil || got.Node.ID() != want.Node.ID() {
			t.Fatalf("resumed after %d records: %v, want the same node", died, err)
		}
		if b.calls() != 3-bs || h.calls() != 4-hs {
			t.Errorf("resumed after %d records: asked %d and %d times", died, b.calls(), h.calls())
		}
	}
}

// TestAsToolParallel checks that one pipeline runs several times at once.
func TestAsToolParallel(t *testing.T) {
	var meet sync.WaitGroup
	meet.Add(3)
	wait := stone.Func("wait", question, note, func(_ context.Context, q questionDoc) (agent.Text, error) {
		meet.Done()
		meet.Wait()
		return agent.Text{Text: "found " + q.Text}, nil
	})
	m := model(calls("wait", `{"text":"1"}`, "wait", `{"text":"2"}`, "wait", `{"text":"2"}`), says("done"))
	a := agent.New("talk", note, m, agent.Config{User: agent.Say("go"), Use: []agent.Middleware{agent.AsTool("wait", "", wait, question, note, together)}})
	res, err := run(t, a, stone.Config{Recorder: dies(t, -1)})
	if err != nil {
		t.Fatal(err)
	}
	if got := transcript(conversation(t, res)); !strings.Contains(got, "tool: found 1\ntool: found 2\ntool: found 2\n") {
		t.Error(got)
	}
}

// TestAsToolFailures checks what the model is told, and what ends the agent.
func TestAsToolFailures(t *testing.T) {
	step := func(fn func(context.Context, questionDoc) (agent.Text, error), options ...stone.LeafOption) stone.Ashlar {
		return stone.Func("find", question, note, fn, options...)
	}
	odd := func(context.Context, questionDoc) (agent.Text, error) {
		return agent.Text{}, stone.Fail("odd", "it is odd")
	}
	for name, tt := range map[string]struct {
		p      stone.Ashlar
		limits budget.Limits
		want   string // in the tool's message, or the kind of the failure
	}{
		"a failure":      {p: step(odd), want: "it is odd"},
		"a panic":        {p: step(func(context.Context, questionDoc) (agent.Text, error) { panic("boom") }), want: "panic at talk/tool-1-1/find: boom"},
		"the wrong type": {p: stone.Func("find", question, check, func(context.Context, questionDoc) (passed, error) { return passed{}, nil }), want: `"find" produced no note`},
		"its model":      {p: agent.New("find", note, model(), agent.Config{User: agent.Say("x")}), want: "canned: no answers left"},
		"the budget":     {p: agent.New("find", note, model(says("x")), agent.Config{User: agent.Say("x")}), limits: budget.Limits{Roundtrips: new(1)}, want: string(budget.Kind)},
		"a question": {p: step(func(context.Context, questionDoc) (agent.Text, error) {
			return agent.Text{}, stone.Fail(kind.Waiting, "%w", kind.Waiting)
		}), want: string(kind.Waiting)},
	} {
		t.Run(name, func(t *testing.T) {
			m := model(calls("find", `{"text":"1"}`), says("done"))
			a := agent.New("talk", note, m, agent.Config{User: agent.Say("go"), Use: []agent.Middleware{agent.AsTool("find", "", tt.p, question, note)}})
			res, err := stone.Run(budget.With(t.Context(), budget.New(tt.limits)), a, stone.Config{})
			got := outcome(t, res, err)
			if err == nil {
				told := conversation(t, res)[2]
				if got = told.Text(); !told.IsError {
					t.Error("the message to the model is no error")
				}
				if slices.Contains(res.DAG.Types(), dag.Failure.Name()) || !slices.Contains(res.DAG.Types(), question.Name()) {
					t.Errorf("the DAG has the types %v, want the question and no failure", res.DAG.Types())
				}
			}
			if !strings.Contains(got, tt.want) {
				t.Errorf("got %q (%v), want %q", got, err, tt.want)
			}
		})
	}
}

// TestAsToolChecked checks that Validate sees a pipeline that is a tool, and that it has the grant
// of the agent.
func TestAsToolChecked(t *testing.T) {
	use := func(p stone.Ashlar, in, out dag.AnyType) stone.Ashlar {
		return agent.New("talk", note, model(calls("find", `{"text":"1"}`), says("done")),
			agent.Config{User: agent.Say("go"), Use: []agent.Middleware{agent.AsTool("find", "", p, in, out)}})
	}
	found := func(context.Context, questionDoc) (agent.Text, error) { return agent.Text{Text: "x"}, nil }
	find := stone.Func("find", question, note, found)
	for name, tt := range map[string]struct {
		a     stone.Ashlar
		grant []string
		want  string
	}{
		"nothing wrong": {a: use(find, question, note)},
		"no pipeline":   {a: use(stone.Ashlar{}, question, note), want: "the pipeline is the zero Ashlar"},
		"no input":      {a: use(find, nil, note), want: "is nil"},
		"a list":        {a: use(find, dag.NewType[[]string]("list"), note), want: `the input type "list" is not a JSON object`},
		"an empty list": {a: stone.Seq("all", use(find, question, note), stone.Func("count", agent.Made(question), check, func(_ context.Context, asked []questionDoc) (passed, error) {
			return passed{fmt.Sprint(len(asked))}, nil
		}))},
		"unknown arguments": {a: agent.New("talk", note, model(calls("find", `{"text":"1","more":2}`), says("done")),
			agent.Config{User: agent.Say("go"), Use: []agent.Middleware{agent.AsTool("find", "", find, question, note)},
				Decide: func(c agent.Context, advice []agent.Recommendation) agent.Recommendation {
					if len(advice) > 0 && advice[0].Failed {
						return agent.Recommendation{Action: agent.Halt, Reason: c.Messages[len(c.Messages)-1].Text()}
					}
					return agent.ContinueOnToolUse(c, advice)
				}}), want: `"more" is not allowed`},
		"its reads":   {a: use(stone.Func("find", ticket, note, func(context.Context, ticketDoc) (agent.Text, error) { return agent.Text{}, nil }), question, note), want: `"ticket"`},
		"its effects": {a: use(stone.Func("find", question, note, found, stone.Effects("net")), question, note), grant: []string{}, want: `"net"`},
		"granted":     {a: use(stone.Func("find", question, note, found, stone.Effects("net")), question, note), grant: []string{"net"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := run(t, tt.a, stone.Config{Grant: tt.grant})
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// TestAsToolInFlow checks that a step of a flow that reads what a tool has made waits for the agent.
func TestAsToolInFlow(t *testing.T) {
	find := stone.Func("find", question, ticket, func(context.Context, questionDoc) (ticketDoc, error) { return ticketDoc{Title: "x"}, nil })
	talk := agent.New("talk", note, model(calls("find", `{"text":"1"}`), says("done")),
		agent.Config{User: agent.Say("go"), Use: []agent.Middleware{agent.AsTool("find", "", find, question, ticket)}})
	count := stone.Func("count", agent.Made(ticket), check, func(_ context.Context, made []ticketDoc) (passed, error) {
		return passed{fmt.Sprint(len(made))}, nil
	})
	res, err := run(t, stone.Flow("all", talk, count), stone.Config{})
	if err != nil || !strings.Contains(res.Node.JSON(), `"1"`) {
		t.Errorf("%v, %v", res.Node, err)
	}
}

// TestAsToolReplaced checks that Replace and Rebuild reach an agent that is a tool.
func TestAsToolReplaced(t *testing.T) {
	boss := func() *canned { return model(calls("research", `{"text":"1"}`), says("done")) }
	stub := stone.Seq("all", lead(boss(), model())).Replace(func(a stone.Ashlar) (stone.Ashlar, bool) {
		if a.Name() != "research" {
			return a, false
		}
		return stone.Func0("research", ticket, func(context.Context) (ticketDoc, error) { return ticketDoc{Title: "stub"}, nil }), true
	})
	rebuilt := stone.Seq("all", lead(boss(), model(calls("loud", `{"text":"x"}`), says(`{"title":"real","level":1}`)))).Replace(func(a stone.Ashlar) (stone.Ashlar, bool) {
		return agent.Rebuild(a, func(use []agent.Middleware) []agent.Middleware {
			loud := tool("loud", func(string) (agent.Result, error) { return agent.Result{Text: "loud"}, nil })
			return append(use, agent.Use(loud))
		})
	})
	for want, a := range map[string]stone.Ashlar{`"stub"`: stub, `"real"`: rebuilt} {
		res, err := run(t, a, stone.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if got := transcript(conversation(t, res)); !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant %s", got, want)
		}
	}
}
