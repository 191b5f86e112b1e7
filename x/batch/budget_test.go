package batch_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/test/batchtest"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/x/batch"
)

// Money that waits is held: what a budget cannot pay is refused before anything is sent.
func TestBudget(t *testing.T) {
	// The estimates of ten requests with answers of at most 500 tokens, at half the price.
	for _, c := range []struct {
		usd  float64
		runs bool
	}{{10 * 0.006 / 2, true}, {5 * 0.005 / 2, false}} {
		b, j := batchtest.New(t, 0), memdb.New(t)
		run, cfg := config(j, "r")
		ctx := budget.With(priced(t.Context()), budget.New(budget.Limits{USD: new(c.usd)}))
		result, err := batch.Run(ctx, asking(10, models(b.URL)["messages"]), run, cfg)
		if c.runs {
			check(t, result, err, 10)
			continue
		}
		if !errors.Is(err, kind.Kind(budget.Kind)) || len(b.Batches) != 0 {
			t.Errorf("%v after %d batches", err, len(b.Batches))
		}
	}
}

func TestCancel(t *testing.T) {
	for protocol := range models("http://127.0.0.1:1") {
		b, j := batchtest.New(t, 1_000_000), memdb.New(t)
		p := asking(5, models(b.URL)[protocol])
		run, cfg := config(j, "r")
		cfg.NoWait = true
		if _, err := batch.Run(t.Context(), p, run, cfg); !errors.Is(err, kind.Waiting) {
			t.Fatal(err)
		}
		if err := batch.Cancel(t.Context(), p, run, journal.Options{}, cfg); err != nil || !b.Batches[0].Canceled || len(b.Batches) != 1 {
			t.Errorf("%s: %v, canceled %t of %d", protocol, err, b.Batches[0].Canceled, len(b.Batches))
		}
	}
}

// Two runs share a budget that pays the estimates of one of them. The second one sends nothing while the batch of the
// first is at its provider, and can be paid once the answers are read: they cost less.
func TestShared(t *testing.T) {
	b, j := batchtest.New(t, 1_000_000), memdb.New(t)
	shared := budget.Shared{Name: "all", Limits: budget.Limits{USD: new(5*0.006/2 + 5*usd/2)}}
	visit := func(id string) error {
		run, cfg := config(j, id)
		run.Recorder, cfg.NoWait = journal.Keep(j, journal.Options{Budgets: []budget.Shared{shared}}), true
		ctx, cancel := context.WithTimeout(priced(t.Context()), 200*time.Millisecond)
		defer cancel()
		if id == "first" {
			ctx = priced(t.Context())
		}
		_, err := batch.Run(ctx, asking(5, models(b.URL)["messages"]), run, cfg)
		return err
	}
	for _, id := range []string{"first", "second", "first"} {
		if err := visit(id); errors.Is(err, kind.Waiting) != (id == "first") || len(b.Batches) != 1 {
			t.Fatalf("%s: %v, %d batches", id, err, len(b.Batches))
		}
	}
	b.Looks = 0
	if err := visit("first"); !errors.Is(err, kind.Waiting) && err != nil {
		t.Fatal(err)
	}
	if err := visit("third"); !errors.Is(err, kind.Waiting) && err != nil || len(b.Batches) != 2 {
		t.Errorf("%v, %d batches", err, len(b.Batches))
	}
}

// Visits of a run that waits for batches use up no round trips of a budget over several runs.
func TestVisitsAreFree(t *testing.T) {
	b, j := batchtest.New(t, 1_000_000), memdb.New(t)
	shared := budget.Shared{Name: "all", Limits: budget.Limits{Roundtrips: new(5)}}
	p := asking(5, models(b.URL)["messages"])
	run, cfg := config(j, "r")
	run.Recorder, cfg.NoWait = journal.Keep(j, journal.Options{Budgets: []budget.Shared{shared}}), true
	for range 4 {
		if _, err := batch.Run(t.Context(), p, run, cfg); !errors.Is(err, kind.Waiting) {
			t.Fatal(err)
		}
		run.Recorder = journal.Keep(j, journal.Options{Resume: true, Budgets: []budget.Shared{shared}})
	}
	b.Looks = 0
	if result, err := batch.Run(t.Context(), p, run, cfg); err != nil {
		check(t, result, err, 5)
	}
	if bal, err := j.Balance(t.Context(), shared, time.Now()); err != nil || bal.Used.Roundtrips != 5 || bal.Held != (budget.Amount{}) {
		t.Errorf("%+v, %v: want 5 round trips, and nothing held", bal.Used, err)
	}
}
