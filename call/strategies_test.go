package call_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

func tournament(ids ...string) call.Dispatch {
	return call.Dispatch{Candidates: ids, Strategy: call.Tournament}
}

func race(hedge time.Duration, ids ...string) call.Dispatch {
	return call.Dispatch{Candidates: ids, Strategy: call.Race, Hedge: hedge}
}

func TestTournament(t *testing.T) {
	soft := fails(reasons.SoftTimeout)
	checks := map[string]call.Check{"a": holds("a")}
	slow := map[string]behaviour{
		"a": after(300*time.Millisecond, says("a")), "b": after(200*time.Millisecond, says("b")), "c": after(100*time.Millisecond, says("c")),
	}
	runScenes(t, []scene{
		{name: "the best", spec: call.Spec{Dispatch: tournament("a", "b", "c")}, does: slow, judge: map[string]string{"a": "0.25", "b": "0.75", "c": "0.5"},
			calls: "a b c", want: "b", score: "0.875", took: 300 * time.Millisecond},
		{name: "of equals the earlier", spec: call.Spec{Dispatch: tournament("a", "b", "c")}, does: slow, judge: map[string]string{"a": "0.25", "b": "0.75", "c": "0.75"},
			calls: "a b c", want: "b"},
		{name: "not one of which a must failed", spec: call.Spec{Dispatch: tournament("b", "a"), Done: call.Done{Must: []string{"a"}}}, checks: checks,
			does: slow, judge: map[string]string{"a": "0.1", "b": "1"}, calls: "b a", want: "a"},
		{name: "all fail, the last in order", spec: call.Spec{Dispatch: tournament("a", "b")},
			does: map[string]behaviour{"a": after(time.Second, soft), "b": fails("post/strike")}, calls: "a b", want: "!post/strike"},
		{name: "only as many as allowed", spec: call.Spec{Dispatch: retry(0, 1, tournament("a", "b", "c"))}, down: []string{"a"}, does: slow,
			calls: "b c", want: "b", rejected: "a availability/down"},
		{name: "none available", spec: call.Spec{Dispatch: tournament("a")}, down: []string{"a"}, want: "!dispatch/no-candidate", rejected: "a availability/down"},
	})
}

func TestRace(t *testing.T) {
	ms := time.Millisecond
	soft := fails(reasons.SoftTimeout)
	checks := map[string]call.Check{"a": holds("a")}
	runScenes(t, []scene{
		{name: "the first", spec: call.Spec{Dispatch: race(0, "a", "b")},
			does: map[string]behaviour{"a": after(4*time.Second, says("a")), "b": after(20*ms, says("b"))}, calls: "a b", want: "b", took: 20 * ms},
		{name: "the first that passes", spec: call.Spec{Dispatch: race(0, "b", "a"), Done: call.Done{Must: []string{"a"}}}, checks: checks,
			does: map[string]behaviour{"a": after(150*ms, says("a"))}, calls: "b a", want: "a", took: 150 * ms},
		{name: "an answer in time hurries no one", spec: call.Spec{Dispatch: race(80*ms, "a", "b")},
			does: map[string]behaviour{"a": after(79*ms, says("a"))}, calls: "a", want: "a", took: 79 * ms},
		{name: "who is late gets company", spec: call.Spec{Dispatch: race(80*ms, "a", "b", "c")},
			does: map[string]behaviour{"a": hangs, "b": after(80*ms, says("b")), "c": hangs}, calls: "a b c", want: "b", took: 160 * ms},
		{name: "who fails lets the next start", spec: call.Spec{Dispatch: race(time.Hour, "a", "b", "c")},
			does: map[string]behaviour{"a": after(10*ms, fails("post/strike")), "b": soft}, calls: "a b c", want: "c", took: 10 * ms},
		{name: "all fail, the last in order", spec: call.Spec{Dispatch: race(0, "a", "b")},
			does: map[string]behaviour{"a": after(time.Second, soft), "b": fails("post/strike")}, calls: "a b", want: "!post/strike", took: time.Second},
		{name: "a loser that does not listen", spec: call.Spec{Dispatch: race(5*ms, "a", "b")},
			does: map[string]behaviour{"a": deaf(time.Hour, says("a"))}, calls: "a b", want: "b", took: 255 * ms},
		{name: "none available", spec: call.Spec{Dispatch: race(0, "a")}, down: []string{"a"}, want: "!dispatch/no-candidate", rejected: "a availability/down"},
	})
}

func TestRaceCancelsLosers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		app := &call.Applicator{Registry: call.NewRegistry(
			w.cap(hangs, call.Metadata{ID: "a"}), w.cap(after(time.Second, says("b")), call.Metadata{ID: "b"}), w.cap(hangs, call.Metadata{ID: "c"}),
		)}
		v := runCall(t.Context(), call.Spec{Applicator: app, Dispatch: race(0, "a", "b", "c")}, call.Budget{}, stone.Config{})
		slices.Sort(w.cancelled)
		if v.brief() != "b" || fmt.Sprint(w.cancelled) != "[a c]" {
			t.Errorf("got %s, cancelled %v; want b, and a and c", v.brief(), w.cancelled)
		}
		for _, a := range v.rec.Tried {
			if a.Cancelled != (a.Cap != "b") {
				t.Errorf("the record says of %s that cancelled is %v", a.Cap, a.Cancelled)
			}
		}
		if s := app.Registry.State("a"); s.Failures != 0 || s.InFlight != 0 {
			t.Errorf("losing a race counts as a failure: %+v", s)
		}
	})
}

// The result of a tournament that can be paid does not depend on who answers first.
func TestTournamentDoesNotDependOnOrder(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(r, "lanes")
		grades := rapid.SliceOfN(rapid.IntRange(0, 3), n, n).Draw(r, "grades")
		failing := rapid.SliceOfN(rapid.Bool(), n, n).Draw(r, "failing")
		trips := rapid.IntRange(1, 20).Draw(r, "round trips")
		var results []string
		for range 2 {
			synctest.Test(t, func(t *testing.T) {
				w := &world{}
				marks := map[string]string{}
				var all []call.Capability
				var ids []string
				for i := range n {
					id := fmt.Sprintf("c%d", i)
					b := says(id)
					if failing[i] {
						b = fails("post/strike" + id)
					}
					ids, marks[id] = append(ids, id), fmt.Sprint(float64(grades[i])/4)
					all = append(all, w.cap(after(time.Duration(rand.IntN(1000)), b), call.Metadata{ID: id}))
				}
				yes := true
				app := &call.Applicator{Registry: call.NewRegistry(append(all, judge(w, marks))...)}
				app.Policy.Default.Judge.On = &yes
				v := runCall(t.Context(), call.Spec{Applicator: app, Dispatch: tournament(ids...)}, call.Budget{Roundtrips: new(trips)}, stone.Config{})
				results = append(results, v.brief())
			})
		}
		if results[0] != results[1] && trips >= 2*n { // otherwise it matters who draws first
			r.Errorf("once %s, once %s", results[0], results[1])
		}
	})
}

// An answer that passed was paid for, and wins though the account ends before another lane
// does.
func TestTournamentKeepsWhatPassed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		app := &call.Applicator{Registry: call.NewRegistry(
			w.cap(failsOnce("runtime/unavailable", time.Second), call.Metadata{ID: "a"}), w.cap(says("b"), call.Metadata{ID: "b"}))}
		v := runCall(t.Context(), call.Spec{Applicator: app, Dispatch: retry(1, 1, tournament("a", "b"))}, call.Budget{Roundtrips: new(2)}, stone.Config{})
		if v.brief() != "b" {
			t.Errorf("got %s (%v)", v.brief(), v.err)
		}
	})
}

func TestManyAtOnceLeaveNothingBehind(t *testing.T) {
	before := goleak.IgnoreCurrent()
	const calls = 5000
	w := &world{}
	app := &call.Applicator{Registry: call.NewRegistry(
		w.cap(hangs, call.Metadata{ID: "a", Limits: call.Limits{Timeout: 20 * time.Millisecond}}),
		w.cap(after(time.Millisecond, says("b")), call.Metadata{ID: "b", Limits: call.Limits{Concurrency: 1000}}),
	)}
	lanes := make([]stone.FanPart, calls)
	for i := range lanes {
		d := race(0, "a", "b")
		if i%3 == 0 {
			d = caps("a", "b")
		}
		lanes[i] = call.New(fmt.Sprint("ask ", i), out, call.Spec{Applicator: app, Intent: "mail/sort", Dispatch: d})
	}
	p := stone.Seq("all", stone.Parallel("fan", append(lanes, stone.Lanes(calls), stone.AllLanes())...), stone.Reduce(stone.Func("count", dag.All(out), out, nothing)))
	if _, err := stone.Run(t.Context(), p, stone.Config{}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a", "b"} {
		if n := app.Registry.State(id).InFlight; n != 0 {
			t.Errorf("%d invocations of %s are running", n, id)
		}
	}
	goleak.VerifyNone(t, before)
}

// A paid step is not paid again in a run that is resumed, whatever happened
// between: here the record of the call itself is lost, as in a crash before it.
func TestResumePaysNothingTwice(t *testing.T) {
	yes := true
	var checked atomic.Int64
	checks := map[string]call.Check{"paid": call.Paid("paid", func(context.Context, call.Subject) error { checked.Add(1); return nil })}
	for name, tc := range map[string]struct {
		spec call.Spec
		does map[string]behaviour
		want string
	}{
		"cascade":    {spec: call.Spec{Dispatch: retry(1, 2, caps("a", "b"))}, does: map[string]behaviour{"a": fails(reasons.SoftTimeout)}, want: "b"},
		"agreement":  {spec: call.Spec{Dispatch: agree(2, "paid", agreement("a", "b", "c"))}, want: "a"},
		"disagreed":  {spec: call.Spec{Dispatch: agreement("a", "b", "c")}, want: "c"},
		"tournament": {spec: call.Spec{Dispatch: tournament("a", "b", "c")}, does: map[string]behaviour{"a": fails(reasons.SoftTimeout)}, want: "c"},
		"race":       {spec: call.Spec{Dispatch: race(10*time.Millisecond, "a", "b", "c")}, does: map[string]behaviour{"a": hangs, "b": after(5*time.Millisecond, says("b")), "c": hangs}, want: "b"},
		"repair":     {spec: call.Spec{Dispatch: repair("c", 1, caps("a")), Done: call.Done{Must: []string{"c"}}}, want: "c"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, judged := &world{}, &world{}
				var all []call.Capability
				for _, id := range []string{"a", "b", "c"} {
					all = append(all, w.cap(tc.does[id], call.Metadata{ID: id, Cost: call.Cost{USD: 1}}))
				}
				j := judge(w, map[string]string{"a": "0.9", "b": "0.5", "c": "1"})
				all = append(all, judged.cap(j.Invoke, j.Metadata))
				checked.Store(0)
				app := &call.Applicator{Registry: call.NewRegistry(all...), Checks: map[string]call.Check{"c": holds("c"), "paid": checks["paid"]}}
				app.Policy.Default.Judge.On = &yes
				app.Policy.Default.Done.Should = []string{"paid"}
				spec := tc.spec
				spec.Applicator = app
				r := &forgetful{memdb.New(t)}
				cfg := stone.Config{RunID: "r", Recorder: r}
				account := budget.New(call.Budget{})
				first := runCall(budget.With(t.Context(), account), spec, call.Budget{}, cfg)
				asked, graded, tested := fmt.Sprint(w.calls), len(judged.calls), checked.Load()
				again := budget.New(call.Budget{})
				second := runCall(budget.With(t.Context(), again), spec, call.Budget{}, cfg)
				if first.brief() != tc.want || second.out != first.out {
					t.Errorf("got %s, then %s; want %s", first.brief(), second.brief(), tc.want)
				}
				if fmt.Sprint(w.calls) != asked || len(judged.calls) != graded || checked.Load() != tested || graded == 0 || tested == 0 {
					t.Errorf("paid again: asked %v after %s; judged %d after %d; checked %d after %d", w.calls, asked, len(judged.calls), graded, checked.Load(), tested)
				}
				if account.Spent() != again.Spent() {
					t.Errorf("spent %+v, then %+v", account.Spent(), again.Spent())
				}
			})
		})
	}
}

// forgetful remembers steps but no leaf.
type forgetful struct{ *sqlite.DB }

func (f *forgetful) Do(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	if key.Kind == "leaf" {
		return work(ctx)
	}
	return f.DB.Do(ctx, key, work)
}

func TestRaceAddsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		app := &call.Applicator{Registry: call.NewRegistry(
			(&world{}).cap(hangs, call.Metadata{ID: "a"}), (&world{}).cap(after(20*time.Millisecond, says("b")), call.Metadata{ID: "b"}),
		)}
		started := time.Now()
		v := runCall(t.Context(), call.Spec{Applicator: app, Dispatch: race(0, "a", "b")}, call.Budget{}, stone.Config{})
		if took := time.Since(started); v.brief() != "b" || took != 20*time.Millisecond {
			t.Errorf("%s after %v, want the faster one when it answers", v.brief(), took)
		}
	})
}

func TestCancelledRun(t *testing.T) {
	for _, d := range []call.Dispatch{caps("a", "b"), race(0, "a", "b"), tournament("a", "b"), agreement("a", "b")} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			w := &world{}
			app := &call.Applicator{Registry: call.NewRegistry(w.cap(hangs, call.Metadata{ID: "a"}), w.cap(hangs, call.Metadata{ID: "b"}))}
			time.AfterFunc(time.Second, cancel)
			d.AllowFailure = true
			v := runCall(ctx, call.Spec{Applicator: app, Dispatch: d}, call.Budget{Latency: new(time.Hour)}, stone.Config{})
			if v.failure != "canceled" {
				t.Errorf("%s: got %s, want canceled", d.Strategy, v.brief())
			}
			if n := app.Registry.State("a").Failures; n != 0 {
				t.Errorf("a was cancelled, and that counts as %d failures", n)
			}
		})
	}
}

func nothing(context.Context, []call.JSON) (call.JSON, error) { return call.JSON("null"), nil }

// A call that the budget of the run cannot pay for ends the fan-out instead of losing a lane. A call
// that fits once the estimate of another lane is settled waits for that.
func TestFanOutWithinBudget(t *testing.T) {
	for _, tt := range []struct {
		usd   float64
		price float64
		want  string
	}{
		{usd: .5, want: budget.Kind},
		{usd: 1, price: 100, want: ""}, // the estimate of the answer is more than what is left
	} {
		t.Run(tt.want, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &world{}
				app := &call.Applicator{Registry: call.NewRegistry(
					w.cap(after(time.Second, says("a")), call.Metadata{ID: "a", Cost: call.Cost{USD: .3, Price: budget.Price{Out: tt.price}}}),
				)}
				var parts []stone.FanPart
				for i := range 2 {
					later := stone.Func(fmt.Sprint("wait ", i), dag.Nothing, dag.NewType[int]("waited"), func(context.Context, struct{}) (int, error) {
						time.Sleep(time.Duration(i) * time.Millisecond)
						return i, nil
					})
					parts = append(parts, stone.Seq(fmt.Sprint("lane ", i), later, call.New(fmt.Sprint("ask ", i), out, call.Spec{Applicator: app, Intent: "mail/sort"})))
				}
				count := stone.Func("count", dag.All(out), out, func(_ context.Context, all []json.RawMessage) (json.RawMessage, error) {
					return json.RawMessage(fmt.Sprint(len(all))), nil
				})
				p := stone.Seq("all", stone.Parallel("fan", append(parts, stone.Lanes(2))...), stone.Reduce(count))
				ctx := budget.With(t.Context(), budget.New(budget.Limits{USD: new(tt.usd)}))
				result, err := stone.Run(ctx, p, stone.Config{})
				switch {
				case tt.want != "" && !errors.Is(err, kind.Kind(tt.want)):
					t.Errorf("%v USD: %v, want %s", tt.usd, err, tt.want)
				case tt.want == "" && (err != nil || result.Node.Text() != "2"):
					t.Errorf("%v USD: %v, %v, want both lanes", tt.usd, result, err)
				}
			})
		})
	}
}
