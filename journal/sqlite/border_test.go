package sqlite

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/declared"
	"github.com/stonelayer/stone/internal/test/memdir"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// The day and the month end while a step runs. It counts in the period in which its result is recorded, what is in flight in both,
// and a clock that is set back finds the earlier period as it was.
func TestBudgetOverBorder(t *testing.T) {
	last := time.Date(2027, 2, 28, 23, 59, 59, 0, time.UTC)
	for _, per := range []budget.Period{budget.Day, budget.Month} {
		t.Run(string(per), func(t *testing.T) {
			var clock atomic.Int64
			set := func(at time.Time) { clock.Store(at.UnixNano()) }
			set(last)
			now = func() time.Time { return time.Unix(0, clock.Load()) }
			t.Cleanup(func() { now = time.Now })
			j := open(t, filepath.Join(memdir.New(t), "stone.db"), Options{})
			of := budget.Shared{Name: "project", Per: per, Limits: budget.Limits{USD: new(1.5)}}
			if _, err := j.Acquire(t.Context(), "a"); err != nil {
				t.Fatal(err)
			}
			if err := j.Begin(t.Context(), journal.RunInfo{ID: "a", Started: now(), Budgets: []budget.Shared{of}}, dag.DAG{}); err != nil {
				t.Fatal(err)
			}
			// do does a step that may cost a dollar and costs a quarter.
			do := func(name string, work func()) error {
				price := budget.Amount{Roundtrips: 1, USD: 1}
				key := step.Key{RunID: "a", Path: "a/" + name, Kind: "step", Name: name, Digest: sha256.Sum256([]byte(name))}
				ctx := declared.Claim(declared.With(t.Context(), price), budget.Fixed(price))
				_, err := j.Do(ctx, key, func(context.Context) (step.Record, error) {
					work()
					return step.Record{Content: []byte(`{"usage":{"usd":0.25}}`), Time: now()}, nil
				})
				return err
			}
			balance := func(at time.Time, used, held budget.Amount) {
				t.Helper()
				b, err := j.Balance(t.Context(), of, at)
				if err != nil || b.Used != used || b.Held != held {
					t.Errorf("%v: used %+v, in flight %+v, %v; want %+v and %+v", at, b.Used, b.Held, err, used, held)
				}
			}
			next := last.Add(2 * time.Second)
			none, one, quarter := budget.Amount{}, budget.Amount{Roundtrips: 1, USD: 1}, budget.Amount{Roundtrips: 1, USD: 0.25}
			if err := do("early", func() {}); err != nil {
				t.Error(err)
			}
			running, release, slow := make(chan struct{}), make(chan struct{}), make(chan error, 1)
			go func() { slow <- do("slow", func() { close(running); <-release }) }()
			<-running
			balance(last, quarter, one)
			set(next)
			balance(next, none, one)
			var spent *budget.ExhaustedError
			if err := do("refused", func() {}); !errors.As(err, &spent) {
				t.Errorf("a dollar of the 0.50 that the step in flight leaves: %v", err)
			}
			close(release)
			if err := <-slow; err != nil {
				t.Error(err)
			}
			balance(last, quarter, none)
			balance(next, quarter, none)
			set(last)
			if err := do("back", func() {}); err != nil {
				t.Error(err)
			}
			if err := do("refused", func() {}); err != nil {
				t.Error(err)
			}
			balance(last, budget.Amount{Roundtrips: 3, USD: 0.75}, none)
			if err := do("beyond", func() {}); !errors.As(err, &spent) || !spent.Shared.Renews.Equal(last.Add(time.Second)) {
				t.Errorf("a dollar of the 0.75 that the earlier period has left: %v", err)
			}
			balance(next, quarter, none)
		})
	}
}

// What was spent on a day is kept for more than a year and not much longer, also of runs without an account, and also if the
// clock is wrong for a while.
func TestOldDaysAreForgotten(t *testing.T) {
	var clock atomic.Int64
	now = func() time.Time { return time.Unix(clock.Load(), 0) }
	t.Cleanup(func() { now = time.Now })
	j := open(t, "", Options{})
	of := budget.Shared{Name: "project", Per: budget.Day, Limits: budget.Limits{USD: new(2.0)}}
	first := time.Date(2027, 2, 28, 12, 0, 0, 0, time.UTC)
	for i, c := range []struct {
		days int
		want float64 // of the first day
	}{{0, 0.25}, {3000, 0.25}, {1, 0.25}, {366, 0.25}, {401, 0.25}, {402, 0}} {
		clock.Store(first.AddDate(0, 0, c.days).Unix())
		run := fmt.Sprint("run-", i)
		if _, err := j.Acquire(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		if err := j.Begin(t.Context(), journal.RunInfo{ID: run, Started: now(), Budgets: []budget.Shared{of}}, dag.DAG{}); err != nil {
			t.Fatal(err)
		}
		ctx := declared.Claim(declared.With(t.Context(), budget.Amount{USD: 1}), budget.Fixed(budget.Amount{USD: 1}))
		_, err := j.Do(ctx, stepKey(run, 1), func(context.Context) (step.Record, error) {
			return step.Record{Content: []byte(`{"usage":{"usd":0.25}}`), Time: now()}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if b, err := j.Balance(t.Context(), of, first); err != nil || b.Used.USD != c.want {
			t.Errorf("after %d days: %+v, %v, want %v", c.days, b.Used, err, c.want)
		}
	}
}
