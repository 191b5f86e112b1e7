package stonetest_test

import (
	"context"
	"errors"
	"log/slog"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/stonetest"
)

var answers = []script.Answer{
	stonetest.Multi(stonetest.Text("I must ask."), stonetest.Call("ask_user", `{"text":"Which language?"}`)),
	stonetest.JSON(projectDoc{"Go"}),
}

// checkDiscover is the body of a test for both modes.
func checkDiscover(t testing.TB, h *stonetest.Harness) {
	p, ran := discover(h.Model())
	p = stonetest.Stub(t, p, "ask_user", stonetest.Answer("Go"))
	res := h.Run(p, dag.Of(dir.With(dirDoc{"."})))

	h.Called("ask_user", "the directory is empty")
	h.NotCalled("write_file")
	h.CallCount("discover/ask_user", 1)
	if got := stonetest.Nearest(t, project, res.DAG); got.Language != "Go" || len(*ran) > 0 {
		t.Errorf("%+v, and %v ran", got, *ran)
	}
	calls := h.Calls()
	if len(calls) != 1 {
		t.Fatalf("calls %v", calls)
	}
	got := calls[0]
	if got.Name != "ask_user" || string(got.Input) != `{"text":"Which language?"}` || got.Text != "Go" || string(got.Meta) != `{"stub":true}` ||
		got.Agent != "discover" || got.Path != "all/discover" || got.Turn != 1 || got.Position != 1 || got.Failed {
		t.Errorf("call %+v", got)
	}
	asked := h.Requests()
	if len(asked) != 2 || len(asked[0].Tools) != 2 || asked[0].Tools[0].Description != "Says ask_user." || len(asked[1].Messages) != 3 {
		t.Errorf("requests %+v", asked)
	}
}

func TestMockAndLive(t *testing.T) {
	t.Run("mock", func(t *testing.T) { checkDiscover(t, stonetest.Mock(t, answers...)) })
	t.Run("function", func(t *testing.T) {
		checkDiscover(t, stonetest.MockFunc(t, func(n int, req *llm.Request) script.Answer { return answers[n] }))
	})
	t.Run("live", func(t *testing.T) { checkDiscover(t, stonetest.Live(t, script.New(answers...))) })
}

// TestLive checks with a real model what a mock cannot: that it asks, with these prompts,
// and does not guess.
func TestLive(t *testing.T) {
	h := stonetest.Live(t, stonetest.LiveModel(t, stonetest.ModelNames{OpenAI: "gpt-5-mini", Anthropic: "claude-sonnet-4-5"}))
	p, _ := discover(h.Model())
	p = stonetest.Stub(t, p, "ask_user", stonetest.Answer("It is in Go."))
	h.Strict = true
	h.Run(p, dag.Of(dir.With(dirDoc{"/empty"})))
	h.Called("ask_user")
}

func broken(f string) stone.Ashlar {
	return stone.Func0("break", note, func(context.Context) (agent.Text, error) { return agent.Text{}, stone.Fail("no-luck", "%s", f) })
}

func TestReports(t *testing.T) {
	stubborn := make(chan bool)
	defer close(stubborn)
	ask := stonetest.Call("ask_user", `{"text":"a"}`)
	done := stonetest.JSON(projectDoc{"Go"})
	in := dag.Of(dir.With(dirDoc{"."}))
	run := func(h *stonetest.Harness) {
		p, _ := discover(h.Model())
		h.Run(p, in)
	}
	for _, tt := range []struct {
		name string
		test func(t *fakeT)
		want string // "" passes
	}{
		{"all is well", func(t *fakeT) { run(stonetest.Mock(t, ask, done)) }, ""},
		{"the mock runs out", func(t *fakeT) { run(stonetest.Mock(t, ask)) },
			"the run failed: llm-error at all/discover: the mock ran out: answer 2 is asked for, it has 1; the model was told last (tool): ask_user a\n" +
				"\tthe tools were called with\n\tdiscover/ask_user {\"text\":\"a\"} → ask_user a\n" +
				"the mock ran out: answer 2 was asked for, it has 1"},
		{"the mock runs out and the pipeline rescues", func(t *fakeT) {
			h := stonetest.Mock(t)
			h.Run(stone.Rescue("r", talker("a", h.Model()), stone.Func0("b", note, func(context.Context) (agent.Text, error) { return agent.Text{}, nil })), dag.DAG{})
		}, "the mock ran out: answer 1 was asked for, it has 0"},
		{"answers are left over", func(t *fakeT) { run(stonetest.Mock(t, done, ask, ask)) },
			"2 of the mock's 3 answers were not used: remove them, or set AllowUnused"},
		{"answers may be left over", func(t *fakeT) {
			h := stonetest.Mock(t, done, ask)
			h.AllowUnused = true
			run(h)
		}, ""},
		{"no model", func(t *fakeT) { stonetest.Live(t, nil) }, "stonetest.Live: the model is nil: pass one, such as stonetest.LiveModel"},
		{"an input that is not JSON", func(t *fakeT) { stonetest.Mock(t, done, stonetest.Call("x", `{`)) },
			"stonetest.Mock: answer 2: the input of x is not JSON: {"},
		{"a call of nothing", func(t *fakeT) { stonetest.Mock(t, stonetest.Call("", `{}`)) },
			"stonetest.Mock: answer 1: a call without the name of a tool"},
		{"assertions", func(t *fakeT) {
			h := stonetest.Mock(t, stonetest.Multi(ask, stonetest.Call("write_file", `{"text":"bad"}`), stonetest.Call("nix", `{}`)), done)
			run(h)
			h.Called("ask_usr", "it", "must")
			h.NotCalled("ask_user")
			h.CallCount("ask_user", 2, "twice")
			h.CallCount("other/ask_user", 0)
		}, "ask_usr was not called: it mustTRAIL\nask_user was called once, want no callTRAIL\nask_user was called once, want 2 times: twiceTRAIL"},
		{"an assertion without calls", func(t *fakeT) { stonetest.Mock(t).Called("x") }, "x was not called\n\tno tool was called"},
		{"an invalid pipeline", func(t *fakeT) {
			stonetest.Mock(t).Run(stone.Seq("s", stone.Func("a", note, number, func(context.Context, agent.Text) (numberDoc, error) { return numberDoc{}, nil }), stone.Seq("e")), dag.DAG{})
		}, "the pipeline is invalid:\n\t[missing-producer] a: "},
		{"a failure as expected", func(t *fakeT) {
			if f := stonetest.Mock(t).Fails(broken("x"), dag.DAG{}, "no-luck"); f.Reason != "x" {
				t.Errorf("reason %q", f.Reason)
			}
		}, ""},
		{"another failure", func(t *fakeT) { stonetest.Mock(t).Fails(broken("x"), dag.DAG{}, "no-go") },
			"want a failure of kind \"no-go\": the run failed: no-luck at break: x\n\tno tool was called"},
		{"no failure", func(t *fakeT) {
			h := stonetest.Mock(t, done)
			p, _ := discover(h.Model())
			h.Fails(p, in, "no-luck")
		}, "the run did not fail, want a failure of kind \"no-luck\"\n\tno tool was called"},
		{"no failure but refused", func(t *fakeT) { stonetest.Mock(t).Fails(stone.Seq("e"), dag.DAG{}, "no-luck") },
			"want a failure of kind \"no-luck\": the pipeline is invalid:\n\t[empty-composite] e: "},
		{"a node that cannot be written", func(t *fakeT) { stonetest.Run(t, stone.Seq("e"), dag.NewType[func()]("f").With(nil)) }, "func()"},
		{"no node", func(t *fakeT) { stonetest.Nearest(t, note, in) }, `no "note" node`},
		{"too slow", func(t *fakeT) {
			h := stonetest.MockFunc(t, func(int, *llm.Request) script.Answer { return script.Answer{Wait: time.Minute} })
			h.Timeout = 20 * time.Millisecond
			run(h)
		}, "the run failed: timeout at all/discover: the run took longer than the 20ms of the harness\n\tno tool was called"},
		{"too slow and stubborn", func(t *fakeT) {
			h := stonetest.Mock(t)
			h.Timeout = 20 * time.Millisecond
			h.Run(stone.Func0("wait", note, func(context.Context) (agent.Text, error) { <-stubborn; return agent.Text{}, nil }), dag.DAG{})
		}, "the run failed: timeout: the run took longer than the 20ms of the harness and still runs: a step ignores its context\n"},
		{"fast enough", func(t *fakeT) {
			h := stonetest.Mock(t, ask, done)
			h.Timeout = time.Minute
			run(h)
		}, ""},
		{"a stub ends its goroutine", func(t *fakeT) {
			h := stonetest.Mock(t, ask, done)
			h.Timeout = time.Minute
			p, _ := discover(h.Model())
			h.Run(stonetest.Stub(t, p, "ask_user", stonetest.Func(func(struct{}) (string, error) { t.Fatal("in the stub"); return "", nil })), in)
		}, "in the stub\nthe run failed: a step called runtime.Goexit: use t.Error in stubs, not t.Fatal\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, failed := try(t, tt.test)
			want := strings.ReplaceAll(tt.want, "TRAIL", "\n\tthe tools were called with\n\tdiscover/ask_user {\"text\":\"a\"} → ask_user a"+
				"\n\tdiscover/write_file {\"text\":\"bad\"} ✗ no such thing\n\tdiscover/nix {} ✗ There is no tool \"nix\". The tools are: ask_user, write_file.")
			if !strings.Contains(got, want) || failed != (want != "") || want == "" && got != "" {
				t.Errorf("failed %v:\n%s\nwant\n%s", failed, got, want)
			}
		})
	}
}

// TestConfig checks that the harness keeps the test's own Config.
func TestConfig(t *testing.T) {
	var out strings.Builder
	h := stonetest.Mock(t, answers...)
	h.Config = stone.Config{Watch: event.NewWriter(&out, slog.LevelDebug), RunID: "mine"}
	p, _ := discover(h.Model())
	res := h.Run(p, dag.Of(dir.With(dirDoc{"."})))
	if res.RunID != "mine" || !strings.Contains(out.String(), "tool-dispatch") || len(h.Calls()) != 1 {
		t.Errorf("run %s, trace %q, calls %v", res.RunID, out.String(), h.Calls())
	}
}

func TestModelKeepsItsPowers(t *testing.T) {
	h := stonetest.Live(t, struct{ llm.Model }{script.New()})
	if err := h.Model().(llm.Checker).Check(); err != nil || h.Model().(llm.Informer).Info() != (llm.Info{}) {
		t.Error("a model without powers got some")
	}
	h = stonetest.Live(t, wrong{script.New()})
	if h.Model().(llm.Checker).Check() == nil || h.Model().(llm.Informer).Info().Provider != "script" {
		t.Error("a model lost its powers")
	}
	h.Timeout = 0
	for _, f := range stone.Validate(talker("a", h.Model()), stone.Given{}).Errors() {
		if f.Type == "bad-model" {
			return
		}
	}
	t.Error("a bad model passed validation")
}

type wrong struct{ *script.Model }

func (wrong) Check() error { return errors.New("wrong") }

// TestKind checks that Fails is the usual way to test the kind of a failure.
func TestKind(t *testing.T) {
	h := stonetest.Mock(t)
	loop := stone.Loop("until", stone.Func0("try", number, func(context.Context) (numberDoc, error) { return numberDoc{1}, nil }),
		stone.Until(number, func(n numberDoc) bool { return n.N > 1 }), 2)
	h.Fails(loop, dag.DAG{}, kind.LoopExhausted)
}

// The budget applies to each run, not to the harness.
func TestBudget(t *testing.T) {
	var ran []string
	echo := stonetest.Call("echo", `{"text":"a"}`)
	h := stonetest.Mock(t, echo, echo)
	h.Budget.Roundtrips = new(1)
	for range 2 {
		h.Fails(talker("a", h.Model(), say("echo", &ran)), dag.DAG{}, budget.Kind)
	}
	if len(ran) != 2 {
		t.Errorf("the tool ran %d times, want once in each run", len(ran))
	}
}

func TestOnlyTestsImportIt(t *testing.T) {
	out, err := exec.Command("go", "list", "-f", `{{.ImportPath}}: {{join .Imports " "}} `, "../...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "/stonetest ") {
			t.Errorf("code that is no test imports stonetest: %s", line)
		}
	}
}
