package eval_test

import (
	"context"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/x/eval"
)

// TestCost reports what the journal has recorded: answers, rejected answers, failed cases and
// judges.
func TestCost(t *testing.T) {
	priced := func(id string, usd float64, intent string, fn func(context.Context, any) (any, error)) call.Capability {
		return call.Func(call.Metadata{ID: id, Intents: []string{intent}, Cost: call.Cost{USD: usd}}, fn)
	}
	app := &call.Applicator{Registry: call.NewRegistry(
		priced("small", .01, "say", func(_ context.Context, in any) (any, error) {
			return map[string]any{"a": "A", "b": "", "c": ""}[in.(map[string]any)["text"].(string)], nil
		}),
		priced("large", .1, "say", func(_ context.Context, in any) (any, error) {
			return map[string]any{"b": "B", "c": ""}[in.(map[string]any)["text"].(string)], nil
		}),
		priced("judge", .003, terms.Grade, func(context.Context, any) (any, error) { return map[string]any{"score": 1}, nil }),
	)}
	p := call.New("say", reply, call.Spec{Applicator: app, Intent: "say", Input: call.From(asked), Done: call.Done{Must: []string{"non-empty"}}})
	judge, err := eval.Read(app, "judge:Is it right?", "exact")
	if err != nil {
		t.Fatal(err)
	}
	db := memdb.New(t)
	account := budget.New(budget.Limits{})
	r, err := eval.Run(budget.With(t.Context(), account), eval.Config{Pipeline: p, Data: rows("a", "b", "c"), Scorers: judge},
		stone.Config{RunID: "r", Recorder: journal.Keep(db, journal.Options{})})
	if err != nil {
		t.Fatal(err)
	}
	info, err := db.Find(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	same := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: $%v, want $%v", what, got, want)
		}
	}
	same("answers", r.Cost.USD, .01+(.01+.1)+(.01+.1))
	same("judges", r.Cost.JudgesUSD, 2*.003)
	same("the run", info.Usage.USD, r.Cost.USD+r.Cost.JudgesUSD)
	same("the account", account.Used().USD, info.Usage.USD)
	if s := r.Scores[1]; s.Right != 2 || s.NoAnswer != 1 {
		t.Errorf("%+v", r)
	}
	// Of a run that reuses the answers, they cost what they have cost, and nothing again.
	again, err := eval.Run(t.Context(), eval.Config{Pipeline: p, Data: rows("a", "b", "c"), Scorers: scorers(t, "exact")},
		stone.Config{RunID: "again", Recorder: journal.Keep(db, journal.Options{Reuse: "r"})})
	if err != nil {
		t.Fatal(err)
	}
	same("reused", again.Cost.ReusedUSD, r.Cost.USD)
	same("all", again.Cost.USD, r.Cost.USD)
	if info, err = db.Find(t.Context(), "again"); err != nil || again.Reused != 3 {
		t.Errorf("%d answers are reused, %v", again.Reused, err)
	}
	same("the second run", info.Usage.USD, 0)
}

// TestCostAddsUp compares the costs in reports with the usage in the journal. Random evaluations
// are canceled and resumed while answers are rejected, retried or fail, and judges fail.
func TestCostAddsUp(t *testing.T) {
	for seed := range uint64(15) {
		r := rand.New(rand.NewPCG(seed, 14))
		var asks atomic.Int32
		var stop atomic.Pointer[context.CancelFunc]
		at := 1 + r.Int32N(30)
		priced := func(id, intent string, usd float64, answers ...any) call.Capability {
			return call.Func(call.Metadata{ID: id, Intents: []string{intent}, Cost: call.Cost{USD: usd}}, func(_ context.Context, in any) (any, error) {
				n := asks.Add(1)
				if n%at == 0 {
					(*stop.Load())()
				}
				out := answers[int(n)%len(answers)]
				if err, failed := out.(error); failed {
					return nil, err
				}
				return out, nil
			})
		}
		cents := func() float64 { return float64(1+r.IntN(500)) / 1e4 }
		good, bad, grade := any("A"), any(""), any(map[string]any{"score": 1})
		refused, down := any(stone.Fail("refused", "no")), any(stone.Fail(reasons.Unavailable, "busy"))
		app := &call.Applicator{Registry: call.NewRegistry(
			priced("small", "say", cents(), good, bad, good, refused, down),
			priced("large", "say", cents()+.05, good, good, refused),
			priced("judge", terms.Grade, cents(), grade, grade, refused, grade),
		)}
		p := call.New("say", reply, call.Spec{Applicator: app, Intent: "say", Input: call.From(asked), Done: call.Done{Must: []string{"non-empty"}}})
		judges, err := eval.Read(app, "judge:Is it right?", "pairwise:Which one?")
		if err != nil {
			t.Fatal(err)
		}
		db := memdb.New(t)
		var report eval.Report
		for n, done := 0, false; !done; n++ {
			ctx, cancel := context.WithCancel(t.Context())
			if stop.Store(&cancel); n > 20 {
				none := context.CancelFunc(func() {})
				stop.Store(&none)
			}
			report, err = eval.Run(budget.With(ctx, budget.New(budget.Limits{})), eval.Config{Pipeline: p, Data: rows("a", "b", "c", "d"), Scorers: judges, Trials: 1 + int(seed%3)},
				stone.Config{RunID: "r", Recorder: journal.Keep(db, journal.Options{})})
			if done = err == nil; !done && ctx.Err() == nil {
				t.Fatal(err)
			}
			cancel()
		}
		info, err := db.Find(t.Context(), "r")
		if err != nil {
			t.Fatal(err)
		}
		if got, want := report.Cost.USD+report.Cost.JudgesUSD, info.Usage.USD; math.Abs(got-want) > 1e-6 {
			t.Errorf("seed %d: the report has $%.4f, the journal $%.4f", seed, got, want)
		}
	}
}
