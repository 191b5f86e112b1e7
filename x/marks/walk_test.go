package marks_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/x/marks"
)

// What Validate says about pipelines, as the steps on the way of the text; "" for a pipeline that is allowed.
func TestWays(t *testing.T) {
	w := &world{texts: map[string]string{}}
	page, other := dag.NewType[string]("page"), dag.NewType[string]("other")
	fetch, step := w.fetchPage(), func(name string, in, out dag.Type[string], opts ...stone.LeafOption) stone.Ashlar {
		return stone.Func(name, in, out, func(_ context.Context, s string) (string, error) { return s, nil }, opts...)
	}
	sends := func(in dag.Type[string]) stone.Ashlar { return step("send", in, Sent, stone.Effects("mail/send")) }
	said := stone.On(Said, func(a stone.Answer) string { return a.Response })
	ask := stone.Ask("approve", page, Said, func(p string) string { return p })
	nothing := stone.Func0("nothing", Sent, func(context.Context) (string, error) { return "", nil })
	both := func(yes, no stone.Ashlar) stone.Ashlar {
		return stone.Match("which", said, stone.Case("yes", yes), stone.Case("no", no))
	}
	until := stone.Until(Said, func(a stone.Answer) bool { return a.Response == "yes" })
	guard := call.Admit("clean", w.app(nil), call.From(page), call.Done{})
	answered := stone.New("send", Sent, func(context.Context, dag.DAG) (string, error) { return "", nil }, stone.Queries(page, Said), stone.Effects("mail/send"))
	history := stone.New("send", Sent, func(context.Context, dag.DAG) (string, error) { return "", nil }, stone.Queries(dag.All(page)), stone.Effects("mail/send"))
	clean := stone.Func0("write", page, func(context.Context) (string, error) { return "mine", nil })
	chat := agent.New("sort", dag.NewType[mood]("class"), obedient(), agent.Config{User: page})
	reads := agent.New("next", Report, obedient(), agent.Config{Conversation: agent.ConversationOf(dag.NewType[mood]("class")), User: Task, Use: w.tools("pay")})
	hosted := func(use ...agent.Middleware) stone.Ashlar {
		search := agent.Use(agent.Tool{Tool: llm.Tool{Name: "web_search", Provider: map[string]json.RawMessage{"script": []byte(`{}`)}}})
		return agent.New("finds", Reply, obedient(), agent.Config{User: Task, Use: append(use, search)})
	}
	for _, c := range []struct {
		name string
		p    stone.Ashlar
		want string
	}{
		{"at once", stone.Seq("p", fetch, sends(page)), "fetch → send"},
		{"over a copy", stone.Seq("p", fetch, step("copy", page, other), sends(other)), "fetch → copy → send"},
		{"not read", stone.Seq("p", fetch, step("copy", page, other), sends(Task)), ""},
		{"another page is nearer", stone.Seq("p", fetch, clean, sends(page)), ""},
		{"all pages", stone.Seq("p", fetch, clean, history), "fetch → send"},
		{"in one branch", stone.Seq("p", clean, stone.Match("m", stone.On(Task, func(s string) string { return s }), stone.Case("a", fetch), stone.Case("b", step("else", Task, other))), sends(page)), "fetch → send"},
		{"a question alone", stone.Seq("p", fetch, ask, sends(page)), "fetch → send"},
		{"the branch of an answer", stone.Seq("p", fetch, ask, both(sends(page), nothing)), ""},
		{"the answer is read", stone.Seq("p", fetch, ask, answered), ""},
		{"the same in a flow", stone.Flow("p", fetch, ask, answered), ""},
		{"the page changes after the question", stone.Seq("p", fetch, ask, fetch, answered), "fetch → send"},
		{"a loop until the yes", stone.Seq("p", stone.Loop("l", stone.Seq("round", fetch, ask), until, 3), sends(page)), ""},
		{"a loop until something else", stone.Seq("p", stone.Loop("l", stone.Seq("round", fetch, ask), stone.Until(Task, func(string) bool { return true }), 3), sends(page)), "fetch → send"},
		{"a guard", stone.Seq("p", fetch, guard, sends(page)), ""},
		{"a guard in a flow, which does not wait for it", stone.Flow("p", fetch, guard, sends(page)), "fetch → send"},
		{"the conversation beside a class", stone.Seq("p", fetch, chat, reads, stone.Func("send", Report, Sent, func(context.Context, agent.Text) (string, error) { return "", nil }, stone.Effects("mail/send"))), "fetch → sort → next → send"},
		{"a search of the provider", hosted(w.tools("read_mail")...), "finds"},
		{"a check within a body", stone.Seq("p", fetch, stone.New("outer", other, func(context.Context, dag.DAG) (string, error) { return "", nil }, stone.Children(stone.Walk{}.InOrder(sends(page))))), "fetch → send"},
		{"a scoped body", stone.Seq("p", fetch, stone.Scoped("s", stone.Walk{}.InOrder(sends(page)), func(_ context.Context, d dag.DAG) (dag.DAG, error) { return d, nil })), "fetch → send"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := ""
			for _, f := range stone.Validate(c.p, stone.Config{Policy: office, Input: dag.Of(Task.With("go")), Frontend: says("yes")}.Given()).Errors() {
				_, way, _ := strings.Cut(f.Message, `": `)
				if way, _, _ = strings.Cut(way, ";"); f.Type != "marked-text" {
					t.Errorf("%s", f)
				}
				got += way
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// A call asks the capabilities that its marks allow.
func TestCandidates(t *testing.T) {
	w := &world{texts: map[string]string{"web/a": "a page"}}
	local := call.Func(call.Metadata{ID: "notify/local", Intents: []string{"notify"}, Needs: []string{}, Cost: call.Cost{USD: 1}}, func(context.Context, any) (string, error) { return "kept here", nil })
	app := w.app(nil)
	app.Registry = call.NewRegistry(append(w.caps(), local)...)
	p := stone.Seq("p", w.fetchPage(), call.New("notify", Sent, call.Spec{Applicator: app, Intent: "notify", Input: call.From(Page)}))
	for _, c := range []struct {
		policy marks.Policy
		want   string
	}{{nil, "ok"}, {office, "kept here"}} {
		got, err := stone.Produce(t.Context(), p, Sent, stone.Config{Policy: c.policy})
		if err != nil || got != c.want {
			t.Errorf("%q, %v; want %q", got, err, c.want)
		}
	}
}

func TestMistakes(t *testing.T) {
	found := stone.Validate((&world{}).fetchPage(), stone.Config{Policy: marks.Policy{"m": {From: []string{"net"}, May: []string{"fs/raed"}}}}.Given())
	if err := found.Err(); err == nil || !strings.Contains(err.Error(), `the mark m: unknown effect "fs/raed": did you mean "fs/read"?`) {
		t.Errorf("%v", err)
	}
}
