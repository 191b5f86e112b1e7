package journaltest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/declared"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// testSpending pays three dollars: for a step, for an attempt that fails, and for another attempt when the run is resumed.
// Replayed steps are not counted again, and removing the run does not change the spending.
func testSpending(t *testing.T, j tested) {
	broken := true
	p := stone.Seq("all",
		stone.Func0("one", draft, func(ctx context.Context) (string, error) {
			return "ok", pay(ctx, "ask", func(context.Context) error { return nil })
		}),
		stone.Func0("two", final, func(ctx context.Context) (string, error) {
			return "ok", pay(ctx, "ask", func(context.Context) error {
				if broken {
					return errors.New("no answer")
				}
				return nil
			})
		}))
	before := time.Now()
	want := func(account string, usd float64) {
		t.Helper()
		sum := 0.0
		for _, day := range []time.Time{before, before.Add(24 * time.Hour)} { // midnight may pass during the test
			b, err := j.open().Balance(t.Context(), paidBy(account), day)
			must(t, err)
			sum += b.Used.USD
		}
		if sum != usd {
			t.Errorf("%s has spent %v USD, want %v", account, sum, usd)
		}
	}
	opts := journal.Options{Account: "ada"}
	if _, err := run(t, j, p, opts); err == nil {
		t.Fatal("the run did not fail")
	}
	want("ada", 2)
	broken = false
	mustRun(t, j, p, journal.Options{}) // the run keeps its account
	want("ada", 3)
	mustRun(t, j, p, opts)
	must(t, j.Remove(t.Context(), "run"))
	want("ada", 3)
	want("bob", 0)

	// An inner run is paid for by its outer run.
	begin(t, j, journal.RunInfo{ID: "exp", Account: "bob"})
	inner := config()
	inner.RunID = "exp/1"
	_, err := stone.Run(t.Context(), p, kept(inner, j, journal.Options{}))
	must(t, err)
	finish(t, j, "exp", journal.Outcome{State: journal.Done})
	want("bob", 2)
	// The possible cost of a lost attempt counts once.
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	lost := stone.Func0("lost", final, func(ctx context.Context) (string, error) {
		return "ok", pay(ctx, "ask", func(context.Context) error {
			cancel()
			return ctx.Err()
		})
	})
	if _, err := stone.Run(ctx, lost, kept(config(), j, journal.Options{Account: "carol"})); err == nil {
		t.Fatal("a run that was canceled ended well")
	}
	want("carol", 1)
	cancel = func() {}
	if _, err := stone.Run(t.Context(), lost, kept(config(), j, journal.Options{})); err != nil {
		t.Fatal(err)
	}
	want("carol", 2)

	// A run whose process died during an attempt has no outcome until a server refuses it.
	begin(t, j, journal.RunInfo{ID: "refused", Account: "dora", Fingerprint: dag.ID{1}})
	_, err = j.Do(declared.With(t.Context(), budget.Amount{USD: 1}), step.Key{RunID: "refused", Path: "all/one", Kind: "leaf", Name: "one", Digest: dag.ID{1}}, func(context.Context) (step.Record, error) {
		return step.Record{}, errors.New("the process dies")
	})
	if err == nil {
		t.Fatal("an attempt without a result succeeded")
	}
	must(t, j.Release("refused"))
	want("dora", 0)
	cfg := config()
	cfg.RunID = "refused"
	if _, err := stone.Run(t.Context(), p, kept(cfg, j, journal.Options{Resume: true, Refuse: true})); !errors.As(err, new(*journal.ChangedError)) {
		t.Fatalf("another pipeline: %v, want a ChangedError", err)
	}
	want("dora", 1)

	if b, err := j.Balance(t.Context(), paidBy("ada"), before.Add(-24*time.Hour)); b.Used != (budget.Amount{}) || err != nil {
		t.Errorf("the day before: %+v, %v", b.Used, err)
	}
}

func paidBy(account string) budget.Shared {
	return budget.Shared{Name: account, Per: budget.Day, Payer: true}
}
