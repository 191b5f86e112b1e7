package call_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
)

func parse(t *testing.T, text string) *schema.Schema {
	t.Helper()
	s, err := schema.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func app(caps ...call.Capability) *call.Applicator {
	return &call.Applicator{Registry: call.NewRegistry(caps...)}
}

func TestValidate(t *testing.T) {
	w := &world{}
	minus, two, nan := -1, 2.0, math.NaN()
	yes := true
	for _, tc := range []struct {
		name string
		spec call.Spec
		set  func(*call.Applicator)
		want string
	}{
		{"all is well", call.Spec{Cap: "a", Done: call.Done{Must: []string{"schema-valid", "legal-move"}}}, nil, ""},
		{"a capability that is not there", call.Spec{Cap: "aa"}, nil, `no-candidate: did you mean "a"?`},
		{"an intent without a capability", call.Spec{Intent: "mail/print"}, nil, "no-candidate: configure or register a capability that can"},
		{"an effect that no capability has", call.Spec{Cap: "a", Effects: []string{"fs/write"}}, nil, "no-candidate: a effects/not-allowed (the call states the effects fs/write; the cap/effects-allowed and cap/needs of the capability are none)"},
		{"none is no effect", call.Spec{Cap: "a", Effects: []string{"none"}}, nil, ""},
		{"a reply", call.Spec{Cap: "a", Requires: call.Requires{Reply: call.Plan}}, nil, "no-candidate: a result-type/not-supported (the call requires a plan)"},
		{"a kind", call.Spec{Cap: "a", Requires: call.Requires{Kind: "solver"}}, nil, `no-candidate: a requires/cap-kind-mismatch (its kind is "", and the call requires "solver")`},
		{"tags", call.Spec{Cap: "a", Requires: call.Requires{Tags: []string{"quick", "pl"}}}, nil, "no-candidate: a requires/cap-tags-mismatch (the call requires the tags pl)"},
		{"a schema that it has not", call.Spec{Cap: "b", Requires: call.Requires{OutSchema: "res/text"}}, nil, `no-candidate: b requires/schema-mismatch (its out-schema is "res/eval", and the call requires "res/text")`},
		{"a schema for one that gives anything", call.Spec{Cap: "a", Requires: call.Requires{OutSchema: "res/text", InSchema: "req/text"}}, nil, ""},
		{"who is down may be up by then", call.Spec{Cap: "a"}, func(app *call.Applicator) { app.Registry.SetDown("a", true) }, ""},
		{"a schema", call.Spec{Cap: "a", Requires: call.Requires{InSchema: "req/txet"}}, nil, `unknown-schema: did you mean "req/text"?`},
		{"a check", call.Spec{Cap: "a", Done: call.Done{Should: []string{"non-emty"}}}, nil, `unknown-check: did you mean "non-empty"?`},
		{"an intent", call.Spec{Cap: "a"}, func(app *call.Applicator) { app.Intents = map[string]call.Intent{"mail/sorts": {}} }, `no-candidate: did you mean "mail/sorts"?`},
		{"options", call.Spec{Cap: "a", Dispatch: call.Dispatch{Strategy: "lottery", Hedge: -1, Retry: call.Retry{SameCapMax: &minus}}, Done: call.Done{ScoreMin: &two}}, nil, "bad-option: ; bad-option: ; bad-option: ; bad-option: "},
		{"a share that is no number", call.Spec{Cap: "a", Done: call.Done{ScoreMin: &nan}}, func(app *call.Applicator) { app.Policy.Default.Judge.Canary = &nan }, "bad-option: ; bad-option: "},
		{"a repairer", call.Spec{Cap: "a", Dispatch: repair("c", 1, call.Dispatch{})}, nil, `no-candidate: did you mean "a"?`},
		{"a judge", call.Spec{Cap: "a"}, func(app *call.Applicator) { app.Policy.Default.Judge.On = &yes }, "no-candidate: "},
		{"a judge with a wrong name", call.Spec{Cap: "a"}, func(app *call.Applicator) { app.Policy.Default.Judge = call.Judge{On: &yes, Cap: "aa"} }, `no-candidate: did you mean "a"?`},
		{"a tool", call.Spec{Tool: "a"}, nil, "no-candidate: a cap/not-found"},
		{"the registry", call.Spec{Cap: "a"}, func(app *call.Applicator) {
			app.Registry = call.NewRegistry(w.cap(nil, call.Metadata{ID: "a"}), w.cap(nil, call.Metadata{ID: "a"}), call.Capability{Metadata: call.Metadata{ID: "c", Kind: "no kind"}})
		}, "bad-capability: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			app := app(w.cap(nil, call.Metadata{ID: "a", Tags: []string{"quick"}, Intents: []string{"mail/sort"}}),
				w.cap(nil, call.Metadata{ID: "b", Intents: []string{"mail/sort"}, Out: "res/eval"}))
			if tc.set != nil {
				tc.set(app)
			}
			tc.spec.Applicator = app
			if tc.spec.Intent == "" {
				tc.spec.Intent = "mail/sort"
			}
			var got []string
			for _, f := range stone.Validate(call.New("ask", out, tc.spec), stone.Given{}).Errors() {
				text := ""
				if _, why, ok := strings.Cut(f.Message, ": "); ok && f.Type == "no-candidate" && f.Suggestion == "" {
					text = strings.TrimSuffix(strings.TrimSuffix(why, ", configure or register a capability that can"), "register a capability with the intent eval/grade")
				}
				if f.Suggestion != "" {
					text = fmt.Sprintf("did you mean %q?", f.Suggestion)
				}
				got = append(got, string(f.Type)+": "+text)
			}
			if got := strings.Join(got, "; "); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
	if got := stone.Validate(call.New("ask", out, call.Spec{}), stone.Given{}).Errors(); len(got) != 1 || got[0].Type != "no-candidate" {
		t.Errorf("without an Applicator: %v", got)
	}
	if len(w.calls) > 0 {
		t.Errorf("%v were asked while validating", w.calls)
	}
}

func TestSchemas(t *testing.T) {
	level := `{"type":"object","required":["level"],"properties":{"level":{"type":"integer","minimum":1}}}`
	for _, tc := range []struct {
		name, in, out, want, calls string
		spec                       call.Spec
		second                     call.Metadata
	}{
		{name: "both fit", in: `{"level":1}`, out: `{"level":2}`, want: `{"level":2}`, calls: "[a]"},
		{name: "the input of the intent", in: `{"level":0}`, out: `{"level":2}`, want: "!input/schema-invalid", calls: "[]"},
		{name: "the out of the intent", in: `{"level":1}`, out: `{"level":"2"}`, want: "!schema/invalid", calls: "[a]"},
		{name: "the out of the call", in: `{"level":1}`, out: `{"text":" "}`, want: "!schema/invalid", calls: "[a]",
			spec: call.Spec{Requires: call.Requires{OutSchema: "res/text"}}, second: call.Metadata{Out: "res/text"}},
		{name: "the input of the capability", in: `{"level":1}`, out: `{"level":2}`, want: "!input/schema-invalid", calls: "[]", second: call.Metadata{In: "req/text"}},
		{name: "a spelling of its own", in: `{ "level" : 1 }`, out: ` {"z":1, "level":2.0e0} `, want: `{"level":2,"z":1}`, calls: "[a]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := &world{}
			tc.second.ID = "a"
			app := app(w.cap(answers(tc.out), tc.second))
			app.Schemas = map[string]*schema.Schema{"app/level": parse(t, level)}
			app.Intents = map[string]call.Intent{"mail/sort": {In: "app/level", Out: "app/level"}}
			tc.spec.Applicator, tc.spec.Cap = app, "a"
			tc.spec.Input = dag.Derive(dag.Nothing, func(struct{}) any { return call.JSON(tc.in) })
			v := runCall(t.Context(), tc.spec, call.Budget{}, stone.Config{})
			if v.brief() != tc.want || fmt.Sprint(w.calls) != tc.calls {
				t.Errorf("got %s from %v, want %s from %s (%v)", v.brief(), w.calls, tc.want, tc.calls, v.err)
			}
		})
	}
}

// The type that a call produces has a schema too.
func TestProducedType(t *testing.T) {
	w := &world{}
	p := call.New("ask", dag.NewType[struct {
		Level int `json:"level"`
	}]("level"), call.Spec{Applicator: app(w.cap(answers(`{"level":"high"}`), call.Metadata{ID: "a"}), w.cap(answers(`{"level":3}`), call.Metadata{ID: "b"})), Intent: "x/y", Dispatch: caps("a", "b")})
	res, err := stone.Run(t.Context(), p, stone.Config{})
	if err != nil || res.Node.JSON() != `{"level":3}` || call.RecordOf(res.Node).Tried[0].Failure != reasons.SchemaInvalid {
		t.Errorf("got %v, %v", res.Node, err)
	}
}

func TestAllowedFailure(t *testing.T) {
	w := &world{}
	spec := call.Spec{Applicator: app(w.cap(says("no"), call.Metadata{ID: "a"})), Intent: "x/y", Dispatch: call.Dispatch{AllowFailure: true}, Done: call.Done{Must: []string{"json"}}}
	p := stone.Seq("all", call.New("ask", out, spec), stone.Func("read", call.Failed(out), out, func(_ context.Context, r call.Record) (call.JSON, error) {
		return json.Marshal(fmt.Sprint(r.Cap, " ", r.Failure, " ", r.MustFailed, " ", string(r.Out), " ", r.Attempts))
	}))
	res, err := stone.Run(t.Context(), p, stone.Config{})
	if want := `"a eval/must-failed [json] {\"text\":\"no\"} 1"`; err != nil || res.Node.JSON() != want {
		t.Errorf("got %s, %v; want %s", res.Node.JSON(), err, want)
	}
	if got, ok := call.SpecOf(p.Children()[0].Children()[0]); !ok || got.Intent != "x/y" {
		t.Errorf("SpecOf: %v, %v", got, ok)
	}
}

// A planner runs plans that name one capability each, whose out they emit.
type planner struct {
	app  *call.Applicator
	seen []string
	mu   sync.Mutex
}

var emitted = dag.NewType[call.JSON](terms.Emit)

func (p *planner) Plan(_ context.Context, app *call.Applicator, req *call.Request, reply *call.Reply, d dag.DAG, _ []dag.Query) (stone.Ashlar, error) {
	p.mu.Lock()
	p.seen = append(p.seen, fmt.Sprint(string(reply.Plan), " ", req.Effects, " ", len(req.Stack)+1))
	p.mu.Unlock()
	switch text := string(reply.Plan); text {
	case "panic":
		panic("no plan")
	case "bad":
		return stone.Ashlar{}, &call.Error{Type: reasons.PlanInvalid, Message: "it is bad"}
	case "empty":
		return stone.Func0("nothing", out, func(context.Context) (call.JSON, error) { return call.JSON("1"), nil }), nil
	default:
		return call.New("sub", emitted, call.Spec{Applicator: app, Intent: "x/y", Cap: text}), nil
	}
}

func TestPlans(t *testing.T) {
	for _, tc := range []struct {
		name  string
		does  map[string]behaviour
		spec  call.Spec
		want  string
		nodes string // types of the DAG
		seen  string
		fails string
	}{
		{name: "its emission is the out", does: map[string]behaviour{"a": plans("c")}, want: "c", nodes: "stone/origin stone/lane stone/emit out", seen: "[c [] 1]"},
		{name: "plans answer with plans", does: map[string]behaviour{"a": plans("b"), "b": plans("c")}, want: "c",
			nodes: "stone/origin stone/lane stone/lane stone/emit stone/emit out", seen: "[b [] 1 c [] 2]"},
		{name: "one that is refused", does: map[string]behaviour{"a": plans("bad")}, want: "!plan/invalid", seen: "[bad [] 1]"},
		{name: "after one that fails, another answers", does: map[string]behaviour{"a": plans("c"), "c": fails(reasons.Unavailable)}, want: "b", nodes: "out", seen: "[c [] 1]"},
		{name: "by its own type", does: map[string]behaviour{"a": plans("c"), "c": fails("post/strike")}, want: "!post/strike", seen: "[c [] 1]"},
		{name: "what the gate refuses is not kept", does: map[string]behaviour{"a": plans("c")}, want: "b", spec: call.Spec{Done: call.Done{Must: []string{"b"}}}, nodes: "out", seen: "[c [] 1]"},
		{name: "the best of a tournament", does: map[string]behaviour{"a": plans("c"), "b": plans("c")}, spec: call.Spec{Dispatch: tournament("a", "b")}, want: "c", nodes: "stone/origin stone/lane stone/emit out"},
		{name: "a planner that panics", does: map[string]behaviour{"a": plans("panic")}, want: "!panic"},
		{name: "… in a tournament", does: map[string]behaviour{"a": plans("panic")}, spec: call.Spec{Dispatch: tournament("a", "b")}, want: "!panic"},
		{name: "… in a race", does: map[string]behaviour{"a": plans("panic"), "b": hangs}, spec: call.Spec{Dispatch: race(0, "a", "b")}, want: "!panic"},
		{name: "nothing emitted is null", does: map[string]behaviour{"a": plans("empty")}, want: "null", nodes: "stone/origin stone/lane out out", seen: "[empty [] 1]"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := &world{}
			var all []call.Capability
			for _, id := range []string{"a", "b", "c"} {
				all = append(all, w.cap(tc.does[id], call.Metadata{ID: id, CanProduce: []string{call.Value, call.Plan}}))
			}
			app := app(all...)
			p := &planner{app: app}
			app.Plans, app.Checks = p, map[string]call.Check{"b": holds("b")}
			tc.spec.Applicator = app
			if tc.spec.Dispatch.Strategy == "" {
				tc.spec.Dispatch = caps("a", "b")
			}
			v := runCall(t.Context(), tc.spec, call.Budget{}, stone.Config{})
			if v.brief() != tc.want {
				t.Errorf("got %s, want %s (%v)", v.brief(), tc.want, v.err)
			}
			var nodes []string
			for n := range v.dag.Nodes() {
				nodes = append(nodes, n.Type())
			}
			if got := strings.Join(nodes, " "); tc.nodes != "" && got != tc.nodes {
				t.Errorf("nodes %s, want %s", got, tc.nodes)
			}
			if got := fmt.Sprint(p.seen); tc.seen != "" && got != tc.seen {
				t.Errorf("plans %s, want %s", got, tc.seen)
			}
			if tc.nodes != "" && v.rec.Plan != strings.Contains(tc.nodes, "lane") {
				t.Errorf("the record says of a plan %v", v.rec.Plan)
			}
		})
	}
}

func TestTool(t *testing.T) {
	w := &world{}
	yes, one := true, 1
	counters := &call.Counters{}
	app := &call.Applicator{
		Tools:    call.NewRegistry(w.cap(fails(reasons.SoftTimeout), call.Metadata{ID: "log/append", Intents: []string{"other/one"}})),
		Counters: counters,
	}
	app.Policy.Default.Judge.On, app.Policy.Default.Retry.SameCapMax = &yes, &one
	v := runCall(t.Context(), call.Spec{Applicator: app, Tool: "log/append", Effects: []string{"fs/write"}}, call.Budget{}, stone.Config{Grant: []string{"fs/write"}})
	if v.brief() != "!timeout/soft" || len(w.calls) != 1 || counters.Tally().Calls != 0 {
		t.Errorf("got %s after %v, counted %+v; want one attempt, uncounted", v.brief(), w.calls, counters.Tally())
	}
}

func TestLimits(t *testing.T) {
	many := func(t *testing.T, c call.Capability, n int) (took time.Duration, app *call.Applicator) {
		app = &call.Applicator{Registry: call.NewRegistry(c)}
		start := time.Now()
		var all sync.WaitGroup
		for range n {
			all.Go(func() {
				if v := runCall(t.Context(), call.Spec{Applicator: app}, call.Budget{}, stone.Config{}); v.err != nil {
					t.Error(v.err)
				}
			})
		}
		all.Wait()
		return time.Since(start), app
	}
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		took, _ := many(t, w.cap(after(time.Second, says("a")), call.Metadata{ID: "a", Limits: call.Limits{Concurrency: 3}}), 7)
		if took != 3*time.Second {
			t.Errorf("seven, three at a time, took %v, want 3 s", took)
		}
		took, _ = many(t, w.cap(says("a"), call.Metadata{ID: "a", Limits: call.Limits{PerMinute: 3}}), 7)
		if took != 2*time.Minute {
			t.Errorf("seven, three a minute, took %v, want 2 min", took)
		}
	})
}

func TestBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		broken, failing := true, reasons.FormatDrift
		app := app(w.cap(func(ctx context.Context, req *call.Request) (*call.Reply, error) {
			if broken {
				return nil, &call.Error{Type: failing, Message: "no route"}
			}
			return says("a")(ctx, req)
		}, call.Metadata{ID: "a"}))
		ask := func(want string, calls int) {
			t.Helper()
			w.calls = nil
			v := runCall(t.Context(), call.Spec{Applicator: app}, call.Budget{}, stone.Config{})
			if v.brief() != want || len(w.calls) != calls {
				t.Errorf("got %s after %d invocations, want %s after %d", v.brief(), len(w.calls), want, calls)
			}
		}
		for _, failing = range []string{reasons.FormatDrift, reasons.InvokeFailed, reasons.InvalidRequest, "chess/game-over"} {
			for range 6 { // what one caller gets wrong is not held against the capability
				ask("!"+failing, 1)
			}
		}
		failing = reasons.Unavailable
		for range 5 {
			ask("!runtime/unavailable", 1)
		}
		if s := app.Registry.State("a"); !s.Down || s.Failures != 5 {
			t.Errorf("after five failures: %+v", s)
		}
		ask("!dispatch/no-candidate", 0)
		time.Sleep(10 * time.Second)
		ask("!runtime/unavailable", 1) // a probe
		ask("!dispatch/no-candidate", 0)
		time.Sleep(10 * time.Second)
		broken = false
		ask("a", 1)
		ask("a", 1)
		if s := app.Registry.State("a"); s != (call.State{}) {
			t.Errorf("repaired: %+v", s)
		}
		app.Registry.SetDown("a", true)
		ask("!dispatch/no-candidate", 0)
	})
}

func TestRequest(t *testing.T) {
	var got call.Request
	var key string
	w := &world{}
	app := app(w.cap(func(_ context.Context, req *call.Request) (*call.Reply, error) {
		got, key = *req, req.Key
		req.Voice.Say(event.Text, "one ")
		req.Voice.Say(event.Text, "two")
		return &call.Reply{Type: call.Stream, Out: call.JSON(`{"text":"one two"}`), Usage: call.Usage{Usage: budget.Usage{InputTokens: 10, OutputTokens: 20}}}, nil
	}, call.Metadata{ID: "a", CanProduce: []string{call.Stream}, Cost: call.Cost{USD: .25, Price: budget.Price{Out: 50000}}}))
	var said []string
	watch := event.Func(event.LevelDelta, func(e event.Event) {
		if d, ok := e.Data.(event.Delta); ok && !d.End {
			said = append(said, d.Source+":"+d.Text)
		}
	})
	v := runCall(t.Context(), call.Spec{
		Applicator: app, Requires: call.Requires{Reply: call.Value},
		Context: dag.Derive(dag.Nothing, func(struct{}) any { return map[string]int{"c": 1} }),
	}, call.Budget{Tokens: new(100), USD: new(5.0)}, stone.Config{RunID: "r", Watch: watch})
	if v.brief() != "one two" || fmt.Sprint(said) != "[a:a a:one  a:two]" {
		t.Errorf("got %s, heard %q", v.brief(), said)
	}
	if !strings.HasPrefix(key, "r/ask/a 1 ") || string(got.Input) != "{}" || string(got.Context) != `{"c":1}` || got.Trace.ID != "r" || got.Attempt != 1 || *got.Budget.Tokens != 100 {
		t.Errorf("asked %+v", got)
	}
	if u := v.rec.Usage; u.USD != 1.25 || u.InputTokens != 10 || u.OutputTokens != 20 || u.Attempts != 1 || u.Cap != "a" {
		t.Errorf("usage %+v", u)
	}
}

// The call has the mode of the accepted answer.
func TestMode(t *testing.T) {
	reply := func(mode string) call.Capability {
		return call.Capability{Metadata: call.Metadata{ID: "c/" + mode}, Invoke: func(context.Context, *call.Request) (*call.Reply, error) {
			return &call.Reply{Out: call.JSON(`{"text":"x"}`), Usage: call.Usage{Mode: mode}}, nil
		}}
	}
	a := app(reply("dream"), reply(llm.Mock), reply(llm.Live))
	v := runCall(t.Context(), call.Spec{Applicator: a, Dispatch: call.Dispatch{Candidates: []string{"c/dream", "c/mock", "c/live"}}}, call.Budget{}, stone.Config{})
	if v.rec.Usage.Mode != llm.Mock || len(v.rec.Tried) != 2 || v.rec.Tried[1].Usage.Mode != llm.Mock {
		t.Errorf("the record is %+v", v.rec)
	}
	if want := `has the usage mode "dream": want live, mock, replay`; !strings.Contains(v.rec.Tried[0].Error, want) {
		t.Errorf("the first attempt failed with %s, want %s", v.rec.Tried[0].Error, want)
	}
}

// The parts of a stream that came whole are told, too, but nothing is told twice.
func TestWholeStreamIsHeard(t *testing.T) {
	for _, spoken := range []bool{false, true} {
		app := app(call.Capability{Metadata: call.Metadata{ID: "b", CanProduce: []string{call.Stream}}, Invoke: func(_ context.Context, req *call.Request) (*call.Reply, error) {
			if spoken {
				req.Voice.Say(event.Text, "one two")
			}
			return call.ReadOutput([]byte(`{"result":{"type":"stream","stream":["one ","","two"]}}`))
		}})
		var said []string
		watch := event.Func(event.LevelDelta, func(e event.Event) {
			if d, ok := e.Data.(event.Delta); ok && !d.End {
				said = append(said, d.Text)
			}
		})
		v := runCall(t.Context(), call.Spec{Applicator: app}, call.Budget{}, stone.Config{Watch: watch})
		want := `["one " "two"]`
		if spoken {
			want = `["one two"]`
		}
		if got := fmt.Sprintf("%q", said); v.brief() != "one two" || got != want {
			t.Errorf("got %s, heard %s, want %s", v.brief(), got, want)
		}
	}
}

func TestEventsAndCounters(t *testing.T) {
	w := &world{}
	yes := true
	counters := &call.Counters{}
	a := app(w.cap(fails(reasons.SoftTimeout), call.Metadata{ID: "a"}), w.cap(nil, call.Metadata{ID: "b"}), judge(w, map[string]string{"*": "0.5"}))
	a.Counters, a.Policy.Default.Judge.On = counters, &yes
	var log strings.Builder
	h := slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, at slog.Attr) slog.Attr {
		if slices.Contains([]string{"time", "level", "latency", "trace-id", "span-id", "parent-span-id"}, at.Key) {
			return slog.Attr{}
		}
		return at
	}})
	runCall(t.Context(), call.Spec{Applicator: a, Dispatch: caps("a", "b")}, call.Budget{}, stone.Config{Watch: event.Log(h)})
	var events []string
	for line := range strings.Lines(log.String()) {
		if strings.HasPrefix(line, "msg=call-") {
			events = append(events, strings.TrimSpace(line))
		}
	}
	want := []string{
		"msg=call-attempt ashlar-name=ask path=ask call=ask cap=a attempt=1 failure=timeout/soft",
		"msg=call-attempt ashlar-name=ask path=ask call=ask cap=b attempt=1 score=0.75",
		"msg=call-verdict ashlar-name=ask path=ask call=ask intent=mail/sort cap=b attempts=2 score=0.75",
	}
	if !slices.Equal(events, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(events, "\n"), strings.Join(want, "\n"))
	}
	if got := counters.Tally(); got.Calls != 1 || got.Attempts != 2 || got.FallbackHops != 1 || got.JudgeUsed != 1 || got.JudgePass != 1 {
		t.Errorf("counted %+v", got)
	}
}
