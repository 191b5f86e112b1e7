package call_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/test/eventtest"
)

func caps(ids ...string) call.Dispatch { return call.Dispatch{Candidates: ids} }

func retry(same, fallback int, d call.Dispatch) call.Dispatch {
	d.Retry.SameCapMax, d.Retry.FallbackMax = &same, &fallback
	return d
}

func switchOn(d call.Dispatch, types ...string) call.Dispatch {
	d.SwitchOn = append([]string{}, types...)
	return d
}

func repair(by string, max int, d call.Dispatch) call.Dispatch {
	d.Repair = &call.Repair{Cap: by, Max: max}
	return d
}

// instantly is a time that a scene takes.
const instantly time.Duration = -1

// A scene is one call among fake capabilities a, b, c and fix, and how it ends.
type scene struct {
	name     string
	spec     call.Spec
	does     map[string]behaviour     // by id; who is not there says its name
	has      map[string]call.Metadata // the same
	checks   map[string]call.Check
	judge    map[string]string // the grade of each text; * is any
	policy   call.Policy
	budget   call.Budget
	intents  map[string]call.Intent
	down     []string
	calls    string // who was asked, in order
	want     string // the text of the out, or ! and the type of the failure
	rejected string
	score    string
	failed   string // checks that did not hold, must before should
	took     time.Duration
}

func (sc *scene) run(t *testing.T) {
	defer time.Sleep(time.Hour) // until those have ended who were left behind
	w := &world{}
	var all []call.Capability
	for _, id := range []string{"a", "b", "c", "fix"} {
		m := sc.has[id]
		m.ID = id
		all = append(all, w.cap(sc.does[id], m))
	}
	app := &call.Applicator{Checks: sc.checks, Policy: sc.policy, Intents: sc.intents}
	if sc.judge != nil {
		on := true
		app.Policy.Default.Judge.On = &on
		all = append(all, judge(w, sc.judge))
	}
	app.Registry = call.NewRegistry(all...)
	for _, id := range sc.down {
		app.Registry.SetDown(id, true)
	}
	sc.spec.Applicator = app
	before := time.Now()
	var r eventtest.Recorder
	v := runCall(t.Context(), sc.spec, sc.budget, stone.Config{Watch: &r})
	took := time.Since(before)
	stands(t, &r, v)
	if got := v.brief(); got != sc.want {
		t.Errorf("got %s, want %s (%v)", got, sc.want, v.err)
	}
	want := strings.Fields(sc.calls)
	if d := sc.spec.Dispatch; d.Strategy == call.Tournament || d.Strategy == call.Agreement || d.Strategy == call.Race && d.Hedge == 0 { // they start together
		slices.Sort(want)
		slices.Sort(w.calls)
	}
	wantCalls(t, w, want...)
	var rejected []string
	for _, r := range v.rec.Rejected {
		rejected = append(rejected, r.Cap+" "+r.Reason)
	}
	if got := strings.Join(rejected, ", "); got != sc.rejected {
		t.Errorf("rejected %q, want %q", got, sc.rejected)
	}
	if got := strings.Join(append(v.rec.MustFailed, v.rec.ShouldFailed...), " "); got != sc.failed {
		t.Errorf("failed checks %q, want %q", got, sc.failed)
	}
	if sc.score != "" && (v.rec.Score == nil || fmt.Sprint(*v.rec.Score) != sc.score) {
		t.Errorf("score %v, want %s", v.rec.Score, sc.score)
	}
	if sc.took != 0 && took != max(sc.took, 0) {
		t.Errorf("took %v, want %v", took, sc.took)
	}
	if v.rec.Attempts != len(v.rec.Tried) {
		t.Errorf("%d attempts, but %d are told of", v.rec.Attempts, len(v.rec.Tried))
	}
}

// stands checks that all streamed answers but the accepted one were retracted.
func stands(t *testing.T, r *eventtest.Recorder, v verdict) {
	t.Helper()
	if err := eventtest.Check(r.Events()); err != nil {
		t.Error(err)
	}
	said := map[string]string{} // by path
	for _, e := range r.Events() {
		switch d := e.Data.(type) {
		case event.Delta:
			said[e.Path] = d.Source
		case event.Retracted:
			maps.DeleteFunc(said, func(path, source string) bool { return event.Retracted{}.Covers(e.Path, path, "", 0) })
		}
	}
	var want []string
	if v.failure == "" && v.rec.Attempts > 0 {
		want = append(want, v.rec.Cap)
	}
	if got := slices.Collect(maps.Values(said)); !slices.Equal(got, want) {
		t.Errorf("what %v said stands, want %v", got, want)
	}
}

func runScenes(t *testing.T, scenes []scene) {
	for _, sc := range scenes {
		t.Run(sc.name, func(t *testing.T) { synctest.Test(t, sc.run) })
	}
}

func TestCascade(t *testing.T) {
	abc := caps("a", "b", "c")
	soft := fails(reasons.SoftTimeout)
	runScenes(t, []scene{
		{name: "the first that can", spec: call.Spec{Dispatch: abc}, calls: "a", want: "a", score: "1"},
		{name: "all that are listed, once each", spec: call.Spec{Dispatch: abc},
			does:  map[string]behaviour{"a": fails(reasons.FormatDrift), "b": soft},
			calls: "a b c", want: "c"},
		{name: "a pin stands alone", spec: call.Spec{Cap: "a", Dispatch: abc},
			policy: call.Policy{Routing: call.Rules{Fallback: []string{"b"}}},
			does:   map[string]behaviour{"a": soft}, calls: "a", want: "!timeout/soft"},
		{name: "fallbacks of default, intent, routing, each once", spec: call.Spec{Dispatch: caps("fix")},
			policy: call.Policy{
				Default: call.Rules{Fallback: []string{"a", "fix"}},
				Intents: map[string]call.Rules{"mail/sort": {Fallback: []string{"b", "a"}}},
				Routing: call.Rules{Fallback: []string{"c"}},
			},
			does: map[string]behaviour{"fix": soft, "a": soft, "b": soft}, calls: "fix a b c", want: "c"},
		{name: "the cheapest first", spec: call.Spec{},
			has: map[string]call.Metadata{
				"a": {Cost: call.Cost{USD: .09}}, "b": {Cost: call.Cost{USD: .01}}, "c": {Cost: call.Cost{Price: budget.Price{Out: 20}}},
				"fix": {Intents: []string{"mail/print"}},
			},
			does: map[string]behaviour{"b": soft, "c": soft}, calls: "b c a", want: "a"},
		{name: "a failure that no rule names ends it", spec: call.Spec{Dispatch: retry(2, 2, abc)},
			does: map[string]behaviour{"a": fails("post/strike")}, calls: "a", want: "!post/strike"},
		{name: "retryable goes on", spec: call.Spec{Dispatch: abc},
			does: map[string]behaviour{"a": failsOnce("post/jam", 0)}, calls: "a b", want: "b"},
		{name: "a stated switch-on replaces the others", spec: call.Spec{Dispatch: switchOn(abc, "post/jam")},
			does: map[string]behaviour{"a": soft}, calls: "a", want: "!timeout/soft"},
		{name: "retryable included", spec: call.Spec{Dispatch: switchOn(abc, "post/wet")},
			does: map[string]behaviour{"a": failsOnce("post/jam", 0)}, calls: "a", want: "!post/jam"},
		{name: "an empty switch-on is one", spec: call.Spec{Dispatch: switchOn(abc)},
			does: map[string]behaviour{"a": soft}, calls: "a", want: "!timeout/soft"},
		{name: "the intent's replaces the default's", spec: call.Spec{Dispatch: abc},
			policy: call.Policy{Default: call.Rules{SwitchOn: []string{"post/wet"}},
				Intents: map[string]call.Rules{"mail/sort": {SwitchOn: []string{"post/jam"}}}},
			does: map[string]behaviour{"a": fails("post/jam"), "b": fails("post/wet")}, calls: "a b", want: "!post/wet"},
		{name: "retry and fallback count what is extra", spec: call.Spec{Dispatch: retry(1, 1, abc)},
			does: map[string]behaviour{"a": soft, "b": soft}, calls: "a a b b", want: "!timeout/soft"},
		{name: "who is rejected costs no fallback", spec: call.Spec{Dispatch: retry(0, 1, abc)}, down: []string{"a"},
			does: map[string]behaviour{"b": soft}, calls: "b c", want: "c", rejected: "a availability/down"},
		{name: "no capability is available", spec: call.Spec{Dispatch: caps("a", "b")}, down: []string{"a", "b"},
			want: "!dispatch/no-candidate", rejected: "a availability/down, b availability/down"},
		{name: "errors and panics are failures", spec: call.Spec{Dispatch: abc},
			does: map[string]behaviour{"a": returns(errors.New("reset")), "b": panics}, calls: "a b c", want: "c"},
		{name: "a panic is one of the call", spec: call.Spec{Cap: "a"},
			does: map[string]behaviour{"a": panics}, calls: "a", want: "!runtime/invoke-failed"},
		{name: "an error with a kind keeps it", spec: call.Spec{Cap: "a"},
			does: map[string]behaviour{"a": returns(stone.Fail("post/strike", "no"))}, calls: "a", want: "!post/strike"},
		{name: "the limit of a capability stops it", spec: call.Spec{Dispatch: abc},
			has:  map[string]call.Metadata{"a": {Limits: call.Limits{Timeout: 50 * time.Millisecond}}},
			does: map[string]behaviour{"a": hangs}, calls: "a b", want: "b", took: 50 * time.Millisecond},
		{name: "one that does not listen is left behind", spec: call.Spec{Dispatch: abc},
			has:  map[string]call.Metadata{"a": {Limits: call.Limits{Timeout: 50 * time.Millisecond}}},
			does: map[string]behaviour{"a": deaf(time.Minute, says("late"))}, calls: "a b", want: "b", took: 300 * time.Millisecond},
		{name: "what comes too late does not count", spec: call.Spec{Dispatch: abc},
			has:  map[string]call.Metadata{"a": {Limits: call.Limits{Timeout: 50 * time.Millisecond}}},
			does: map[string]behaviour{"a": deaf(60*time.Millisecond, says("late"))}, calls: "a b", want: "b", took: 60 * time.Millisecond},
		{name: "no reply", spec: call.Spec{Dispatch: abc},
			does: map[string]behaviour{"a": returns(nil)}, calls: "a b", want: "b"},
		{name: "no out", spec: call.Spec{Cap: "a"},
			does: map[string]behaviour{"a": answers("")}, calls: "a", want: "!schema/invalid"},
		{name: "no JSON", spec: call.Spec{Cap: "a"},
			does: map[string]behaviour{"a": answers("{")}, calls: "a", want: "!schema/invalid"},
		{name: "null is a value", spec: call.Spec{Cap: "a"},
			does: map[string]behaviour{"a": answers("null")}, calls: "a", want: "null"},
		{name: "a reply that it cannot produce", spec: call.Spec{Cap: "a"},
			does: map[string]behaviour{"a": plans("{}")}, calls: "a", want: "!schema/invalid"},
		{name: "a plan where a value is required", spec: call.Spec{Cap: "a", Requires: call.Requires{Reply: call.Value}},
			has:  map[string]call.Metadata{"a": {CanProduce: []string{call.Value, call.Plan}}},
			does: map[string]behaviour{"a": plans("{}")}, calls: "a", want: "!schema/invalid"},
		{name: "a plan without a planner", spec: call.Spec{Cap: "a"},
			has:  map[string]call.Metadata{"a": {CanProduce: []string{call.Plan}}},
			does: map[string]behaviour{"a": plans("{}")}, calls: "a", want: "!plan/invalid"},
		{name: "Retry-After is waited for", spec: call.Spec{Dispatch: retry(1, 0, caps("a"))},
			does:  map[string]behaviour{"a": inTurn(failsOnce("rate/limited", 4*time.Second), says("now"))},
			calls: "a a", want: "now", took: 4 * time.Second},
		{name: "but not for long", spec: call.Spec{Dispatch: retry(1, 1, caps("a", "b"))},
			does:  map[string]behaviour{"a": failsOnce("rate/limited", time.Hour)},
			calls: "a b", want: "b", took: instantly},
		{name: "but not before another capability is asked", spec: call.Spec{Dispatch: abc},
			does:  map[string]behaviour{"a": failsOnce("rate/limited", 7*time.Second)},
			calls: "a b", want: "b", took: instantly},
		{name: "down in the middle of its attempts", spec: call.Spec{Dispatch: retry(9, 1, caps("a", "b"))},
			does: map[string]behaviour{"a": soft}, calls: "a a a a a b", want: "b"},
	})
}

func TestBudget(t *testing.T) {
	soft := fails(reasons.SoftTimeout)
	trips := func(n int) call.Budget { return call.Budget{Roundtrips: new(n)} }
	clean := map[string]call.Check{"clean": holds("b")}
	runScenes(t, []scene{
		{name: "the attempt that would overdraw is not made", spec: call.Spec{Dispatch: retry(2, 1, caps("a", "b"))}, budget: trips(2),
			does: map[string]behaviour{"a": soft}, calls: "a a", want: "!budget/exhausted"},
		{name: "nor is it of the call's own", spec: call.Spec{Dispatch: retry(2, 1, caps("a", "b")), Budget: trips(1)}, budget: trips(9),
			does: map[string]behaviour{"a": soft}, calls: "a", want: "!budget/exhausted"},
		{name: "a repair costs a round trip", spec: call.Spec{Dispatch: repair("fix", 1, caps("a", "b")), Done: call.Done{Must: []string{"clean"}}},
			budget: trips(2), checks: clean, calls: "a fix", want: "!budget/exhausted"},
		{name: "so does a judge", spec: call.Spec{Cap: "a"}, budget: trips(1), judge: map[string]string{"*": "1"},
			calls: "a", want: "!budget/exhausted"},
		{name: "switching on it does not help", spec: call.Spec{Dispatch: switchOn(caps("a", "b"), reasons.BudgetExhausted, reasons.SoftTimeout)},
			budget: trips(1), does: map[string]behaviour{"a": soft}, calls: "a", want: "!budget/exhausted"},
		{name: "too dear from the start", spec: call.Spec{Dispatch: caps("a", "b")}, budget: call.Budget{USD: new(0.5)},
			has:   map[string]call.Metadata{"a": {Cost: call.Cost{USD: .6}}},
			calls: "b", want: "b", rejected: "a budget/cost"},
		{name: "too dear by now", spec: call.Spec{Dispatch: caps("a", "b", "c")}, budget: call.Budget{USD: new(0.5)},
			has:  map[string]call.Metadata{"a": {Cost: call.Cost{USD: .3}}, "b": {Cost: call.Cost{USD: .3}}},
			does: map[string]behaviour{"a": soft}, calls: "a c", want: "c", rejected: "b budget/cost"},
		{name: "too dear by now, and no other", spec: call.Spec{Dispatch: caps("a", "b")}, budget: call.Budget{USD: new(0.5)},
			has:  map[string]call.Metadata{"a": {Cost: call.Cost{USD: .3}}, "b": {Cost: call.Cost{USD: .3}}},
			does: map[string]behaviour{"a": soft}, calls: "a", want: "!budget/exhausted", rejected: "b budget/cost"},
		{name: "all too expensive from the start", spec: call.Spec{Dispatch: caps("a", "b")}, budget: call.Budget{USD: new(0.5)},
			has:  map[string]call.Metadata{"a": {Cost: call.Cost{USD: .6}}, "b": {Cost: call.Cost{USD: .7}}},
			want: "!budget/exhausted", rejected: "a budget/cost, b budget/cost"},
		{name: "all too expensive for a race", spec: call.Spec{Dispatch: call.Dispatch{Candidates: []string{"a"}, Strategy: call.Race}}, budget: call.Budget{USD: new(0.5)},
			has:  map[string]call.Metadata{"a": {Cost: call.Cost{USD: .6}}},
			want: "!budget/exhausted", rejected: "a budget/cost"},
		{name: "all too expensive for a tournament", spec: call.Spec{Dispatch: call.Dispatch{Candidates: []string{"a"}, Strategy: call.Tournament}}, budget: call.Budget{USD: new(0.5)},
			has:  map[string]call.Metadata{"a": {Cost: call.Cost{USD: .6}}},
			want: "!budget/exhausted", rejected: "a budget/cost"},
		{name: "all too slow", spec: call.Spec{Dispatch: caps("a")}, budget: call.Budget{Latency: new(time.Second)},
			has:  map[string]call.Metadata{"a": {Cost: call.Cost{Latency: time.Minute}}},
			want: "!budget/exhausted", rejected: "a budget/latency"},
		{name: "too slow", spec: call.Spec{Dispatch: caps("a", "b")}, budget: call.Budget{Latency: new(time.Second)},
			has:   map[string]call.Metadata{"a": {Cost: call.Cost{Latency: time.Minute}}},
			calls: "b", want: "b", rejected: "a budget/latency"},
		{name: "time is over", spec: call.Spec{Dispatch: caps("a", "b")}, budget: call.Budget{Latency: new(time.Second)},
			does: map[string]behaviour{"a": hangs}, calls: "a", want: "!budget/exhausted", took: time.Second},
		{name: "time is over between attempts", spec: call.Spec{Dispatch: retry(1, 0, caps("a"))}, budget: call.Budget{Latency: new(time.Second)},
			does: map[string]behaviour{"a": failsOnce("rate/limited", 4*time.Second)}, calls: "a", want: "!budget/exhausted", took: time.Second},
		{name: "time is over in a race", spec: call.Spec{Dispatch: call.Dispatch{Candidates: []string{"a"}, Strategy: call.Race}}, budget: call.Budget{Latency: new(time.Second)},
			does: map[string]behaviour{"a": hangs}, calls: "a", want: "!budget/exhausted", took: time.Second},
		{name: "a failure costs what it says", spec: call.Spec{Dispatch: caps("a", "b")}, budget: call.Budget{Tokens: new(10)},
			does: map[string]behaviour{"a": failsAfter(20)}, calls: "a", want: "!budget/exhausted"},
		{name: "a reply that is none costs what it says", spec: call.Spec{Dispatch: caps("a", "b")}, budget: call.Budget{Tokens: new(10)},
			does: map[string]behaviour{"a": func(context.Context, *call.Request) (*call.Reply, error) {
				return &call.Reply{Out: call.JSON("{"), Usage: call.Usage{Usage: budget.Usage{OutputTokens: 20}}}, nil
			}}, calls: "a", want: "!budget/exhausted"},
		{name: "time is over in a check", spec: call.Spec{Cap: "a", Done: call.Done{Must: []string{"slow"}}}, budget: call.Budget{Latency: new(time.Second)},
			checks: map[string]call.Check{"slow": func(ctx context.Context, _ call.Subject) error { <-ctx.Done(); return ctx.Err() }},
			calls:  "a", want: "!budget/exhausted", took: time.Second},
		{name: "a tournament is one of those who can be paid",
			spec:   call.Spec{Dispatch: call.Dispatch{Candidates: []string{"a", "b"}, Strategy: call.Tournament}},
			budget: trips(1), calls: "a", want: "a"},
	})
}

func TestGate(t *testing.T) {
	not := map[string]call.Check{
		"no":    holds(),
		"yes":   holds("a", "b", "fix"),
		"b":     holds("b"),
		"fix":   holds("fix", "b"),
		"panic": func(_ context.Context, _ call.Subject) error { panic("no check") },
	}
	done := func(min float64, must, should string) call.Done {
		return call.Done{Must: strings.Fields(must), Should: strings.Fields(should), ScoreMin: &min}
	}
	def := func(j call.Judge) call.Policy { return call.Policy{Default: call.Rules{Judge: j}} }
	yes, quarter, none := true, .25, 0.0
	cap := func(d call.Done) call.Spec { return call.Spec{Cap: "a", Done: d} }
	runScenes(t, []scene{
		{name: "a failed must", spec: cap(done(0, "no yes", "")), checks: not, calls: "a", want: "!eval/must-failed", failed: "no"},
		{name: "a share too low", spec: cap(done(.5, "", "yes no b panic")), checks: not, calls: "a", want: "!eval/low-score", score: "0.25", failed: "no b panic"},
		{name: "just enough", spec: cap(done(.25, "", "yes no b panic")), checks: not, calls: "a", want: "a", score: "0.25", failed: "no b panic"},
		{name: "a check that panics has failed", spec: cap(done(0, "panic", "")), checks: not, calls: "a", want: "!eval/must-failed", failed: "panic"},
		{name: "levels come together", spec: cap(done(.3, "", "yes")), checks: not,
			policy: call.Policy{Default: call.Rules{Done: done(.9, "yes", "no")}, Intents: map[string]call.Rules{"mail/sort": {Done: done(.8, "", "b yes")}}},
			calls:  "a", want: "a", score: "0.3333333333333333", failed: "no b"},
		{name: "the next may do better", spec: call.Spec{Dispatch: caps("a", "b"), Done: done(0, "b", "")}, checks: not, calls: "a b", want: "b"},

		{name: "the judge counts half", spec: cap(done(.8, "", "")), judge: map[string]string{"a": "0.5"}, calls: "a", want: "!eval/low-score", score: "0.75"},
		{name: "or as much as is said", spec: cap(done(.8, "", "")), policy: def(call.Judge{Weight: &quarter}), judge: map[string]string{"a": "0.5"}, calls: "a", want: "a", score: "0.875"},
		{name: "a veto", spec: cap(done(.8, "", "")), policy: def(call.Judge{Weight: &quarter, Veto: &yes}), judge: map[string]string{"a": "0.5"}, calls: "a", want: "!eval/low-score"},
		{name: "not where a must failed", spec: cap(done(0, "no", "")), checks: not, judge: map[string]string{"a": "panic"}, calls: "a", want: "!eval/must-failed", failed: "no"},
		{name: "seventeen", spec: call.Spec{Dispatch: caps("a", "b")}, judge: map[string]string{"*": "17"}, calls: "a", want: "!judge/invalid"},
		{name: "great", spec: call.Spec{Dispatch: caps("a", "b")}, judge: map[string]string{"*": `"great"`}, calls: "a", want: "!judge/invalid"},
		{name: "nothing", spec: cap(call.Done{}), judge: map[string]string{"*": "null"}, calls: "a", want: "!judge/invalid"},
		{name: "a judge that panics", spec: cap(call.Done{}), judge: map[string]string{"*": "panic"}, calls: "a", want: "!judge/invalid"},
		{name: "which is ignored", spec: cap(done(1, "", "")), policy: def(call.Judge{OnError: "open"}), judge: map[string]string{"*": "panic"}, calls: "a", want: "a", score: "1"},
		{name: "or switched on", spec: call.Spec{Dispatch: switchOn(caps("a", "b"), "judge/invalid")}, judge: map[string]string{"a": "17", "b": "1"}, calls: "a b", want: "b"},
		{name: "of no call", spec: cap(done(1, "", "")), policy: def(call.Judge{Canary: &none}), judge: map[string]string{"*": "0"}, calls: "a", want: "a"},

		{name: "the same repairs", spec: call.Spec{Dispatch: repair("", 1, caps("a", "b")), Done: done(0, "fix", "")}, checks: not, calls: "a a b", want: "b"},
		{name: "another repairs", spec: call.Spec{Dispatch: repair("fix", 1, caps("a", "b")), Done: done(0, "fix", "")}, checks: not, calls: "a fix", want: "fix"},
		{name: "as often as is said", spec: call.Spec{Dispatch: retry(0, 0, repair("fix", 3, caps("a"))), Done: done(0, "b", "")}, checks: not, calls: "a fix fix fix", want: "!eval/must-failed", failed: "b"},
		{name: "before the next attempt, which it is not", spec: call.Spec{Dispatch: retry(1, 1, repair("fix", 1, caps("a", "b"))), Done: done(0, "b", "")}, checks: not, calls: "a fix a fix b", want: "b"},
		{name: "only what is recoverable", spec: call.Spec{Dispatch: switchOn(repair("fix", 1, caps("a")), reasons.LowScore), Done: done(0, "fix", "")}, checks: not, calls: "a", want: "!eval/must-failed", failed: "fix"},
		{name: "only what was answered", spec: call.Spec{Dispatch: repair("fix", 1, caps("a"))}, does: map[string]behaviour{"a": answers("{")}, calls: "a", want: "!schema/invalid"},
	})
}
