package stonetest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/stonetest"
	"github.com/stonelayer/stone/tool"
)

func seven(context.Context) (numberDoc, error) { return numberDoc{7}, nil }

// everywhere puts an agent in every place that a pipeline offers.
var everywhere = map[string]func(a, other stone.Ashlar) stone.Ashlar{
	"alone": func(a, _ stone.Ashlar) stone.Ashlar { return a },
	"seq":   func(a, o stone.Ashlar) stone.Ashlar { return stone.Seq("p", o, stone.Seq("inner", a)) },
	"parallel": func(a, o stone.Ashlar) stone.Ashlar {
		return stone.Seq("s", stone.Parallel("p", o, a), stone.Reduce(stone.Func0("seven", number, seven)))
	},
	"body": func(a, o stone.Ashlar) stone.Ashlar { return stone.Rescue("p", a, o) },
	"heal": func(a, _ stone.Ashlar) stone.Ashlar { return stone.Rescue("p", broken("x"), a) },
	"loop": func(a, _ stone.Ashlar) stone.Ashlar {
		return stone.Loop("p", a, stone.Until(note, func(agent.Text) bool { return true }), 1)
	},
	"match": func(a, o stone.Ashlar) stone.Ashlar {
		return stone.Seq("p", stone.Func0("seven", number, seven),
			stone.Match("m", stone.On(number, func(n numberDoc) int { return n.N }), stone.Case(1, o), stone.Case(7, a)))
	},
	"map and reduce": func(a, _ stone.Ashlar) stone.Ashlar {
		return stone.Seq("p", stone.Func0("seven", number, seven),
			stone.Map("m", dag.Derive(number, func(n numberDoc) []numberDoc { return []numberDoc{n} }), total, stone.Func0("lane", dir, func(context.Context) (dirDoc, error) { return dirDoc{}, nil })),
			stone.Reduce(a))
	},
	"adversary": func(a, _ stone.Ashlar) stone.Ashlar { return judged(agent.Config{Adversary: a}) },
	"healer": func(a, _ stone.Ashlar) stone.Ashlar {
		tries := 0
		return judged(agent.Config{Healer: stone.Seq("heal", a), Adversary: stone.Func0("vote", number, func(context.Context) (numberDoc, error) {
			if tries++; tries == 1 {
				return numberDoc{}, errors.New("not yet")
			}
			return numberDoc{1}, nil
		})})
	},
}

func judged(cfg agent.Config) stone.Ashlar {
	cfg.System = agent.Say("be brief")
	draft := script.Func(func(int, *llm.Request) script.Answer { return script.Text("draft") })
	return agent.New("judged", note, draft, cfg)
}

func TestStubEverywhere(t *testing.T) {
	for name, put := range everywhere {
		t.Run(name, func(t *testing.T) {
			h := stonetest.MockFunc(t, func(n int, _ *llm.Request) script.Answer {
				return []script.Answer{stonetest.Call("echo", `{"text":"a"}`), stonetest.Text("done")}[n%2]
			})
			var ran []string
			other := talker("other", script.New(script.Text("hm")), say("look", &ran))
			p := put(talker("talk", h.Model(), say("look", &ran), say("echo", &ran)), other)
			before := p.Fingerprint()
			q := stonetest.Stub(t, p, "echo", stonetest.Answer("stubbed"))
			q = stonetest.Stub(t, q, "echo", stonetest.Answer("stubbed again"))
			h.Run(q, dag.DAG{})
			if got := h.Calls("echo"); len(ran) > 0 || len(got) != 1 || got[0].Text != "stubbed again" {
				t.Errorf("%v ran, calls %v", ran, got)
			}
			if p.Fingerprint() != before || q.Fingerprint() == before {
				t.Error("want the fingerprint of the original as it was, and another one of the copy: its results are others")
			}
		})
	}
}

func TestStubLeavesOriginal(t *testing.T) {
	h := stonetest.Mock(t, slices.Concat(answers, answers)...)
	p, ran := discover(h.Model())
	q := stonetest.Stub(t, p, "ask_user", stonetest.Answer("stubbed"))
	in := dag.Of(dir.With(dirDoc{"."}))
	h.Run(q, in)
	h.Run(p, in)
	if got := h.Calls(); len(*ran) != 1 || got[0].Text != "stubbed" || got[1].Text != "ask_user Which language?" || string(got[1].Meta) != "{}" {
		t.Errorf("%v ran, calls %v", *ran, got)
	}
	// Only the handler changed: the request to the model is the same, byte for byte.
	var asked []string
	for _, r := range h.Requests()[:3] {
		raw, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		asked = append(asked, string(raw))
	}
	if asked[0] != asked[2] {
		t.Errorf("the model was asked\n%s\nwith a stub, and without\n%s", asked[0], asked[2])
	}
}

func TestStubErrors(t *testing.T) {
	var ran []string
	model := script.New()
	shared := say("echo", &ran)
	a := talker("a", model, shared, say("look", &ran))
	b := talker("b", model, say("echo", &ran))
	scoped := stone.Scoped("scope", stone.Walk{}.InOrder(a), func(ctx context.Context, d dag.DAG) (dag.DAG, error) { return stone.In(ctx).RunChild(a, d), nil })
	leaf := stone.New("own", note, func(context.Context, dag.DAG) (agent.Text, error) { return agent.Text{}, nil }, stone.Children(stone.Walk{}.InOrder(a)))
	under := agent.New("judged", note, model, agent.Config{Adversary: stone.Seq("vote", scoped), Use: []agent.Middleware{say("echo", &ran)}})
	for _, tt := range []struct {
		name, tool string
		p          stone.Ashlar
		handler    stonetest.Handler
		want       string
	}{
		{"one of two", "b/echo", stone.Seq("p", a, b), stonetest.Answer(""), ""},
		{"one of two, by more of its path", "p/b/echo", stone.Seq("p", a, b), stonetest.Answer(""), ""},
		{"the same agent twice", "look", stone.Seq("p", a, a), stonetest.Answer(""), ""},
		{"beside a scoped one", "echo", stone.Seq("p", scoped, b), stonetest.Answer(""), "several tools are called \"echo\": p/b/echo, p/scope/a/echo; add enough of the path to make the name unique"},
		{"beside a scoped one, told apart", "b/echo", stone.Seq("p", scoped, b), stonetest.Answer(""), ""},
		{"nil", "look", a, nil, `the handler of "look" is nil: pass one, such as Answer`},
		{"unknown", "lok", stone.Seq("p", a, b), stonetest.Answer(""), `there is no tool "lok" in "p"; there are p/a/echo, p/a/look, p/b/echo`},
		{"part of a name", "ook", a, stonetest.Answer(""), `there is no tool "ook" in "a"; there are a/echo, a/look`},
		{"no agents", "echo", broken("x"), stonetest.Answer(""), `there is no tool "echo": no agent in "break" has any`},
		{"zero", "echo", stone.Ashlar{}, stonetest.Answer(""), `there is no tool "echo": no agent in "?" has any`},
		{"several", "echo", stone.Seq("p", a, b), stonetest.Answer(""), `several tools are called "echo": p/a/echo, p/b/echo; add enough of the path`},
		{"below a scoped one", "look", stone.Seq("p", scoped), stonetest.Answer(""), ""},
		{"below a leaf", "look", stone.Seq("p", leaf), stonetest.Answer(""), ""},
		{"shared with an agent below a scoped one", "c/echo", stone.Seq("p", scoped, talker("c", model, shared)), stonetest.Answer(""), ""},
		{"above a scoped judge", "judged/echo", stone.Seq("p", under), stonetest.Answer(""), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, failed := try(t, func(t *fakeT) { stonetest.Stub(t, tt.p, tt.tool, tt.handler) })
			want := tt.want
			if want != "" {
				want = "stonetest.Stub: " + want
			}
			if failed != (want != "") || !strings.HasPrefix(got, want) || strings.Contains(got, "\n") {
				t.Errorf("got %q\nwant %q", got, want)
			}
		})
	}
}

// TestStubBelowScoped checks that a tool can be stubbed before and after a scoped step is
// made of its agent, and that a stub beside such a step does not affect it.
func TestStubBelowScoped(t *testing.T) {
	var ran []string
	echo := stonetest.Call("echo", `{"text":"a"}`)
	h := stonetest.Mock(t, echo, stonetest.Text("x"), echo, stonetest.Text("y"))
	h.Strict = true
	a := stonetest.Stub(t, talker("a", h.Model(), say("echo", &ran)), "echo", stonetest.Answer("inside"))
	scoped := stone.Scoped("scope", stone.Walk{}.InOrder(a), func(ctx context.Context, d dag.DAG) (dag.DAG, error) { return stone.In(ctx).RunChild(a, d), nil })
	p := stone.Seq("p", scoped, talker("b", h.Model(), say("echo", &ran)))
	p = stonetest.Stub(t, p, "b/echo", stonetest.Answer("beside"))
	h.Run(stonetest.Stub(t, p, "a/echo", stonetest.Answer("below")), dag.DAG{})
	if got := fmt.Sprint(h.Calls()); got != `[a/echo {"text":"a"} → below b/echo {"text":"a"} → beside]` || len(ran) > 0 {
		t.Errorf("calls %s, and %v ran", got, ran)
	}
}

// TestStubUnderApproval checks that a stub also replaces a request for approval.
func TestStubUnderApproval(t *testing.T) {
	var ran []string
	wrapped := tool.Confirm(say("echo", &ran), tool.Approver{})
	wrapped.Wrap = func(ctx context.Context, c agent.Context, next agent.Handler) (agent.Context, error) {
		return next(ctx, c.Offer(*wrapped.Tool))
	}
	h := stonetest.Mock(t, stonetest.Call("echo", `{"text":"a"}`), stonetest.Text("x"))
	h.Strict = true
	h.Run(stonetest.Stub(t, talker("a", h.Model(), wrapped), "echo", stonetest.Answer("stubbed")), dag.DAG{})
	if got := h.Calls(); len(got) != 1 || got[0].Text != "stubbed" {
		t.Errorf("calls %v", got)
	}
}

func TestHandlers(t *testing.T) {
	h := stonetest.Mock(t,
		stonetest.Multi(stonetest.Call("echo", `{"text":"a"}`), stonetest.Call("echo", `{"text":"none"}`), stonetest.Call("echo", `{}`)),
		script.Calls(llm.ToolCall{Name: "echo", InputText: `{"te`}),
		stonetest.Text("x"))
	h.Strict = true // a refused call of a stubbed tool has a stub
	var ran []string
	p := stonetest.Stub(t, talker("a", h.Model(), say("echo", &ran)), "echo", stonetest.Func(func(in struct{ Text string }) (string, error) {
		if in.Text == "none" {
			return "", errors.New("there is none")
		}
		return "heard " + in.Text, nil
	}))
	h.Run(p, dag.DAG{})
	want := []string{"heard a", "there is none", "The arguments do not fit the schema", "The arguments of this call were cut off"}
	calls := h.Calls("echo")
	if len(calls) != len(want) {
		t.Fatalf("calls %v", calls)
	}
	for i, c := range calls {
		if !strings.HasPrefix(c.Text, want[i]) || c.Failed != (i > 0) {
			t.Errorf("call %d: %s, want %q", i+1, c, want[i])
		}
	}
	if got := string(calls[3].Input); got != `"{\"te"` {
		t.Errorf("arguments that were cut off are %s", got)
	}
}

func TestStrict(t *testing.T) {
	var ran []string
	scoped := func(a stone.Ashlar) stone.Ashlar {
		return stone.Scoped("scope", stone.Walk{}.InOrder(a), func(ctx context.Context, d dag.DAG) (dag.DAG, error) { return stone.In(ctx).RunChild(a, d), nil })
	}
	for _, tt := range []struct {
		name string
		put  func(stone.Ashlar) stone.Ashlar
		ran  string
	}{
		{"a tool that is not stubbed does not run", func(a stone.Ashlar) stone.Ashlar { return a }, "[]"},
		{"nor below a scoped step", scoped, "[]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ran = nil
			got, failed := try(t, func(t *fakeT) {
				h := stonetest.Mock(t, stonetest.Multi(stonetest.Call("echo", `{"text":"a"}`), stonetest.Call("look", `{"text":"b"}`), stonetest.Call("nix", `{}`)), stonetest.Text("x"),
					stonetest.Text("x"))
				h.Strict = true
				a := stonetest.Stub(t, talker("a", h.Model(), say("look", &ran), say("echo", &ran)), "echo", stonetest.Answer("fine"))
				h.Run(tt.put(a), dag.DAG{})
				h.Run(tt.put(a), dag.DAG{}) // a reported call is not reported again
			})
			lines := strings.Split(got, "\n")
			if !failed || len(lines) != 4 || !strings.HasPrefix(lines[0], "look was called but has no stub: add one with Stub, or leave Strict off") || !strings.HasPrefix(lines[2], "nix was called") {
				t.Errorf("failed %v:\n%s", failed, got)
			}
			if got := fmt.Sprint(ran); got != tt.ran {
				t.Errorf("%s ran, want %s", got, tt.ran)
			}
		})
	}
}

// TestOrder checks that calls are listed in the order of the pipeline, in whatever order
// lanes and the calls of a turn end.
func TestOrder(t *testing.T) {
	const lanes = 12
	var want []string
	for i := range lanes {
		for turn := range 2 {
			for position := range 3 {
				want = append(want, fmt.Sprintf("all/each[%d]/a %d.%d", i, turn+1, position+1))
			}
		}
	}
	want = append(want, "all/a 1.1")
	for range 5 {
		h := stonetest.MockFunc(t, func(_ int, req *llm.Request) script.Answer {
			call := stonetest.Call("echo", `{"text":"a"}`)
			switch {
			case strings.Contains(req.System, "last") && len(req.Messages) < 3:
				return call
			case !strings.Contains(req.System, "last") && len(req.Messages) < 6:
				return stonetest.Multi(call, call, call)
			}
			return stonetest.Text("x")
		})
		var ran []string
		p := stone.Seq("all",
			stone.Map("each", dag.ReaderFunc(func(dag.DAG) ([]numberDoc, error) {
				var items []numberDoc
				for i := range lanes {
					items = append(items, numberDoc{i})
				}
				return items, nil
			}), number, talker("a", h.Model(), say("echo", &ran))),
			stone.Reduce(stone.New("sum", total, func(context.Context, dag.DAG) (numberDoc, error) { return numberDoc{}, nil })),
			agent.New("a", note, h.Model(), agent.Config{System: agent.Say("the last"), Use: []agent.Middleware{say("echo", &ran)}}))
		slow := func(context.Context, json.RawMessage) (agent.Result, error) {
			time.Sleep(rand.N(2 * time.Millisecond))
			return agent.Result{Text: "b"}, nil
		}
		p = stonetest.Stub(t, p, "each/a/echo", slow)
		h.Run(p, dag.DAG{})
		var got []string
		for _, c := range h.Calls() {
			got = append(got, fmt.Sprintf("%s %d.%d", c.Path, c.Turn, c.Position))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("calls\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}
