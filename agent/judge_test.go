package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm"
)

type passed struct {
	Note string `json:"note"`
}

var (
	check    = dag.NewType[passed]("check-passed")
	examples = dag.NewType[agent.Text]("examples")
)

// strict is an adversary that accepts the drafts of a list, and counts its votes.
func strict(votes *int, good ...string) stone.Ashlar {
	return stone.New("judge", check, func(_ context.Context, d dag.DAG) (passed, error) {
		*votes++
		draft, err := note.From(d)
		if err != nil {
			return passed{}, err
		}
		if !slices.Contains(good, draft.Text) {
			return passed{}, stone.Fail("rejected", "not good: %s", draft.Text)
		}
		return passed{draft.Text}, nil
	}, stone.Queries(note))
}

func TestVotes(t *testing.T) {
	for _, test := range []struct {
		name    string
		max     *int
		answers []any
		votes   int
		want    string
	}{
		{"passes at once", nil, []any{says("good")}, 1, `{"text":"good"}`},
		{"a gate passes", new(0), []any{says("good")}, 1, `{"text":"good"}`},
		{"a gate rejects with one vote and no retry", new(0), []any{says("a"), says("good")}, 1, string(reasons.HealingExhausted)},
		{"one cycle, healed", new(1), []any{says("a"), says("good")}, 2, `{"text":"good"}`},
		{"one cycle, N+1 votes", new(1), []any{says("a"), says("b"), says("good")}, 2, string(reasons.HealingExhausted)},
		{"three cycles by default", nil, []any{says("a"), says("b"), says("c"), says("good")}, 4, `{"text":"good"}`},
		{"three cycles by default, N+1 votes", nil, []any{says("a"), says("b"), says("c"), says("d"), says("good")}, 4, string(reasons.HealingExhausted)},
	} {
		t.Run(test.name, func(t *testing.T) {
			votes := 0
			a := agent.New("talk", note, model(test.answers...), agent.Config{User: agent.Say("begin"), Adversary: strict(&votes, "good"), MaxHealing: test.max})
			res, err := run(t, a, stone.Config{})
			if got := outcome(t, res, err); got != test.want || votes != test.votes {
				t.Errorf("got %s with %d votes, want %s with %d", got, votes, test.want, test.votes)
			}
			if n := len(res.DAG.Heads()); err == nil && (n != 1 || res.DAG.Len() != 1) {
				t.Errorf("the DAG has %d nodes: the judge's must not stay", res.DAG.Len())
			}
		})
	}
}

// TestHealing checks the messages after a rejection, and the DAG of the healer.
func TestHealing(t *testing.T) {
	votes, rejection := 0, ""
	healer := stone.New("retrieve", examples, func(_ context.Context, d dag.DAG) (agent.Text, error) {
		f, err := dag.Failure.From(d)
		if err != nil {
			return agent.Text{}, err
		}
		draft, err := note.From(d)
		rejection = f.Reason
		return agent.Text{Text: "better than " + draft.Text}, err
	}, stone.Queries(note, dag.Maybe(dag.Failure)))
	m := model(says("a"), says("good"))
	a := agent.New("talk", note, m, agent.Config{User: agent.Say("begin"), Adversary: strict(&votes, "good"), Healer: healer})
	res, err := run(t, a, stone.Config{})
	if err != nil {
		t.Fatal(err)
	}
	want := "user: begin\nassistant: a\nuser: not good: a\nuser: better than a\nassistant: good\n"
	if got := transcript(conversation(t, res)); got != want || rejection != "not good: a" {
		t.Errorf("conversation\n%s\nwant\n%s\n(the healer saw %q)", got, want, rejection)
	}
	if f := stone.Validate(a, stone.Given{}); len(f.Errors()) > 0 {
		t.Errorf("findings %v", f)
	}
}

func TestHealerWithoutText(t *testing.T) {
	votes := 0
	inner := agent.New("adviser", ticket, model(says(`{"title":"<a>","level":1,"owner":null}`)), agent.Config{User: agent.Say("advise")})
	m := model(says("a"), says("good"))
	res, err := run(t, agent.New("talk", note, m, agent.Config{User: agent.Say("begin"), Adversary: strict(&votes, "good"), Healer: inner}), stone.Config{})
	if err != nil {
		t.Fatal(err)
	}
	want := "user: begin\nassistant: a\nuser: not good: a\nuser: {\"level\":1,\"title\":\"<a>\"}\nassistant: good\n"
	if got := transcript(conversation(t, res)); got != want {
		t.Errorf("conversation\n%s\nwant the healer's content without its conversation:\n%s", got, want)
	}
}

// TestBrokenJudge checks that a judge without a verdict is no rejection: another turn
// would be a waste.
func TestBrokenJudge(t *testing.T) {
	judge := stone.New("judge", check, func(context.Context, dag.DAG) (passed, error) { panic("nil map") })
	m := model(says("a"), says("b"))
	res, err := run(t, agent.New("talk", note, m, agent.Config{User: agent.Say("begin"), Adversary: judge}), stone.Config{})
	if got := outcome(t, res, err); got != string(kind.Panic) || m.calls() != 1 {
		t.Errorf("got %s after %d turns, want %s after 1", got, m.calls(), kind.Panic)
	}
}

type verdict struct {
	OK     bool   `json:"ok"`
	Reason string `json:"reason"`
}

var reviewed = dag.NewType[verdict]("review-passed")

// TestFinalize is an agent as the adversary of another one: Finalize makes its
// "not ok" a rejection with the reason as feedback.
func TestFinalize(t *testing.T) {
	reviewer := agent.New("review", reviewed, model(says(`{"ok":false,"reason":"no tests"}`), says(`{"ok":true,"reason":""}`)), agent.Config{
		MaxTurns: 1,
		User:     agent.Prompt(note, func(draft agent.Text) string { return "judge: " + draft.Text }),
		Finalize: agent.Finalize(reviewed, func(v verdict) (verdict, error) {
			if !v.OK {
				return v, stone.Fail("review-rejected", "%s", v.Reason)
			}
			v.Reason = "fine"
			return v, nil
		}),
	})
	m := model(says("a"), says("b"))
	res, err := run(t, agent.New("talk", note, m, agent.Config{User: agent.Say("begin"), Adversary: reviewer}), stone.Config{})
	want := "user: begin\nassistant: a\nuser: no tests\nassistant: b\n"
	if err != nil {
		t.Fatal(err)
	}
	if got := transcript(conversation(t, res)); got != want {
		t.Errorf("conversation\n%s\nwant\n%s", got, want)
	}
}

func TestFinalizeReplaces(t *testing.T) {
	a := agent.New("review", reviewed, model(says(`{"ok":true,"reason":"x"}`)), agent.Config{
		User:     agent.Say("judge"),
		Finalize: agent.Finalize(reviewed, func(v verdict) (verdict, error) { v.Reason = strings.ToUpper(v.Reason); return v, nil }),
	})
	res, err := run(t, a, stone.Config{})
	if got := outcome(t, res, err); got != `{"ok":true,"reason":"X"}` || len(conversation(t, res)) != 2 {
		t.Errorf("got %s", got)
	}
}

func asIs(v verdict) (verdict, error) { return v, nil }

// The model answers with a draft of one type, the adversary judges it, and the result is
// of another type.
func TestFinalizeToAnotherType(t *testing.T) {
	type approval struct {
		By string `json:"by"`
	}
	approved := dag.NewType[approval]("approved")
	brief := stone.Func("brief", reviewed, note, func(_ context.Context, v verdict) (agent.Text, error) {
		if len(v.Reason) > 3 {
			return agent.Text{}, stone.Fail("too-long", "shorter")
		}
		return agent.Text{}, nil
	})
	m := model(says(`{"ok":true,"reason":"wonderful"}`), says(`{"ok":true,"reason":"ann"}`))
	a := agent.New("review", approved, m, agent.Config{
		User: agent.Say("judge"), Adversary: brief,
		Finalize: agent.Finalize(reviewed, func(v verdict) (approval, error) { return approval{By: v.Reason}, nil }),
	})
	res, err := run(t, a, stone.Config{})
	if got := outcome(t, res, err); got != `{"by":"ann"}` {
		t.Errorf("got %s", got)
	}
	if got := m.requests[0].ResponseFormat; got.Name != reviewed.Name() || !strings.Contains(string(got.Schema), `"reason"`) {
		t.Errorf("the model is asked for %s", got.Schema)
	}
	want := "user: judge\nassistant: {\"ok\":true,\"reason\":\"wonderful\"}\nuser: shorter\nassistant: {\"ok\":true,\"reason\":\"ann\"}\n"
	if got := transcript(conversation(t, res)); got != want {
		t.Errorf("conversation\n%s\nwant\n%s", got, want)
	}
}

// A type that is not a JSON object is fine for a draft: here a list, of which a result is made.
func TestFinalizeOfAList(t *testing.T) {
	words := dag.NewType[[]string]("words")
	a := agent.New("join", note, model(says(`{"value":["a","b"]}`)), agent.Config{
		User:     agent.Say("go"),
		Finalize: agent.Finalize(words, func(w []string) (agent.Text, error) { return agent.Text{Text: strings.Join(w, " ")}, nil }),
	})
	res, err := run(t, a, stone.Config{})
	if err != nil || res.Node.Text() != "a b" {
		t.Errorf("got %v, %v", res.Node, err)
	}
}

func TestFindings(t *testing.T) {
	type reserved struct {
		Conversation string `json:"conversation"`
	}
	say := agent.Say("begin")
	double := []agent.Middleware{agent.Use(echo()), agent.Use(echo())}
	votes := 0
	for _, test := range []struct {
		name string
		a    stone.Ashlar
		want string // types of the findings
	}{
		{"sound", agent.New("a", note, model(), agent.Config{User: say}), ""},
		{"sound, with judges", agent.New("a", note, model(), agent.Config{User: say, Adversary: strict(&votes)}), ""},
		{"no model", agent.New("a", note, nil, agent.Config{User: say}), "nil-model"},
		{"bad model", agent.New("a", note, unsound{model()}, agent.Config{User: say}), "bad-model"},
		{"no prompt", agent.New("a", note, model(), agent.Config{}), "no-prompt"},
		{"limits", agent.New("a", note, model(), agent.Config{User: say, MaxTurns: -1}), "bad-option"},
		{"healing without a judge", agent.New("a", note, model(), agent.Config{User: say, MaxHealing: new(0)}), "missing-adversary"},
		{"conversation is taken", agent.New("a", dag.NewType[reserved]("r"), model(), agent.Config{User: say}), "reserved-field"},
		{"a map", agent.New("a", dag.NewType[map[string]int]("r"), model(), agent.Config{User: say}), "bad-type"},
		{"a list", agent.New("a", dag.NewType[[]string]("r"), model(), agent.Config{User: say}), "bad-type"},
		{"finalize to another type", agent.New("a", note, model(), agent.Config{User: say, Finalize: agent.Finalize(reviewed, asIs)}), "bad-type"},
		{"finalize of nothing", agent.New("a", reviewed, model(), agent.Config{User: say, Finalize: agent.Finalize[verdict, verdict](reviewed, nil)}), "nil-body"},
		{"finalize of no type", agent.New("a", reviewed, model(), agent.Config{User: say, Finalize: agent.Finalize(dag.Type[verdict]{}, asIs)}), "bad-type"},
		{"finalize of two types with one name", agent.New("a", reviewed, model(), agent.Config{User: say, Finalize: agent.Finalize(dag.NewType[string](reviewed.Name()), func(string) (v verdict, err error) { return })}), "schema-mismatch"},
		{"a judge of the result", agent.New("a", note, model(), agent.Config{User: say, Adversary: strict(&votes), Finalize: agent.Finalize(reviewed, func(v verdict) (agent.Text, error) { return agent.Text{}, nil })}), "missing-producer"},
		{"two of one name", agent.New("a", note, model(), agent.Config{User: say, Use: double}), "no-description duplicate-middleware duplicate-tool no-description"},
		{"a middleware that does nothing", agent.New("a", note, model(), agent.Config{User: say, Use: []agent.Middleware{{}}}), "no-name nil-body"},
		{"an invalid tool", agent.New("a", note, model(), agent.Config{User: say, Use: []agent.Middleware{agent.Use(badTool())}}), "bad-tool no-description bad-tool bad-tool"},
		{"a tool of another provider", agent.New("a", note, of("anthropic"), agent.Config{User: say, Use: []agent.Middleware{hosted("responses")}}), "bad-tool"},
		{"a tool of the provider", agent.New("a", note, of("openai"), agent.Config{User: say, Use: []agent.Middleware{hosted("responses")}}), ""},
		{"a tool of a provider that is not known", agent.New("a", note, of("other"), agent.Config{User: say, Use: []agent.Middleware{hosted("responses")}}), ""},
		{"a pattern that nobody knows", agent.New("a", note, model(), agent.Config{User: say, Use: []agent.Middleware{foreignTool(`{"properties":{"a":{"pattern":"("}}}`, nil)}}), "no-description unchecked-schema"},
		{"a pattern of ECMA-262", agent.New("a", note, model(), agent.Config{User: say, Use: []agent.Middleware{foreignTool(`{"properties":{"a":{"pattern":"^(?!x)"}}}`, nil)}}), "no-description"},
		{"a tool that is left out", agent.New("a", note, model(), agent.Config{User: say, Use: []agent.Middleware{foreignTool(`[]`, errors.New("unreadable"))}}), "tool-left-out"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, f := range stone.Validate(test.a, stone.Given{}) {
				got = append(got, string(f.Type))
			}
			if got := strings.Join(got, " "); got != test.want {
				t.Errorf("findings %q, want %q: %v", got, test.want, stone.Validate(test.a, stone.Given{}))
			}
		})
	}
}

// provided is a model of a provider.
type provided struct {
	*canned
	name string
}

func of(provider string) provided { return provided{model(), provider} }
func (p provided) Info() llm.Info { return llm.Info{Provider: p.name, Model: "m"} }

// hosted is a tool that a provider has.
func hosted(protocol string) agent.Middleware {
	return agent.Use(agent.Tool{Tool: llm.Tool{Name: "search", Provider: map[string]json.RawMessage{protocol: json.RawMessage(`{"type":"web_search"}`)}}})
}

type unsound struct{ *canned }

func (unsound) Check() error { return errors.New("no key: set one") }

func foreignTool(schema string, left error) agent.Middleware {
	return agent.Use(agent.Tool{Tool: llm.Tool{Name: "f", Schema: []byte(schema)}, Left: left,
		Run: func(context.Context, json.RawMessage) (agent.Result, error) { return agent.Result{}, nil }})
}

func badTool() agent.Tool {
	var t agent.Tool
	t.Name, t.Schema = "read file", []byte(`[]`)
	return t
}

func TestEffects(t *testing.T) {
	writes := echo()
	writes.Effects = []string{"fs/write"}
	a := agent.New("a", note, model(), agent.Config{User: agent.Say("x"), Use: []agent.Middleware{
		agent.Use(writes), {Name: "net", Effects: []string{"net", "fs/write"}, Wrap: func(ctx context.Context, c agent.Context, next agent.Handler) (agent.Context, error) {
			return next(ctx, c)
		}},
	}})
	if got := a.Effects(); !slices.Equal(got, []string{"fs/write", "net"}) {
		t.Errorf("effects %q", got)
	}
	if f := stone.Validate(a, stone.Given{Grant: []string{"net"}}).Errors(); len(f) != 1 || f[0].Type != "effect-not-granted" {
		t.Errorf("findings %v", f)
	}
	// A tool that is offered during the run cannot do more than was declared.
	m := model(says("x"))
	_, err := run(t, agent.New("a", note, m, agent.Config{User: agent.Say("x"), Use: []agent.Middleware{
		{Name: "late", Wrap: func(ctx context.Context, c agent.Context, next agent.Handler) (agent.Context, error) {
			return next(ctx, c.Offer(writes))
		}},
	}}), stone.Config{})
	if err == nil || m.calls() != 0 {
		t.Errorf("got %v after %d turns, want a failure before the first", err, m.calls())
	}
}
