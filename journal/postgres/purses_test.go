package postgres

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/declared"
	"github.com/stonelayer/stone/internal/test/pgtest"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// Processes whose runs draw on the same budgets, named in any order, never wait for each other in a circle.
func TestBudgetsInOrder(t *testing.T) {
	address := pgtest.Database(t)
	many := []budget.Shared{
		{Name: "a", Per: budget.Month, Limits: budget.Limits{USD: new(1e6)}},
		{Name: "z", Limits: budget.Limits{USD: new(1e6)}},
		{Name: "b", Per: budget.Day, Limits: budget.Limits{USD: new(1e6)}},
	}
	price := budget.Amount{Roundtrips: 1, USD: 0.01}
	var wait sync.WaitGroup
	for p := range 4 {
		db := open(t, address, Options{})
		run := fmt.Sprint("run-", p)
		if _, err := db.Acquire(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		if err := db.Begin(t.Context(), journal.RunInfo{ID: run, Started: time.Now(), Budgets: many}, dag.DAG{}); err != nil {
			t.Fatal(err)
		}
		for lane := range 8 {
			wait.Go(func() {
				for n := range 25 {
					key := stepKey(run, lane*100+n)
					ctx := declared.Claim(declared.With(t.Context(), price), budget.Fixed(price))
					_, err := db.Do(ctx, key, func(context.Context) (step.Record, error) {
						return step.Record{Content: []byte(`{"usage":{"usd":0.01}}`), Time: time.Now()}, nil
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	wait.Wait()
	pgtest.Exec(t, address, noDeadlocks)
}

const noDeadlocks = `DO $$ BEGIN
	IF (SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()) > 0 THEN RAISE EXCEPTION 'deadlocks'; END IF;
END $$`
