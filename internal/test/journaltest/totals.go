package journaltest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/journal"
)

// call runs a step with an estimated cost, which has a result, fails with a known cost, or is canceled.
func call(ctx context.Context, name string, r *rand.Rand, cut context.CancelFunc) error {
	used := budget.Usage{InputTokens: 1 + r.IntN(50), OutputTokens: r.IntN(50), USD: r.Float64() / 100}
	most := budget.Amount{Roundtrips: 1, Tokens: used.Tokens() + r.IntN(100), USD: used.USD + r.Float64()/10}
	draw, err := budget.From(ctx).Draw(ctx, stone.In(ctx), name, budget.Quote{Most: most, Output: most.Tokens - used.InputTokens, USDPerOutput: 0.0001})
	if err != nil {
		return err
	}
	defer draw.Close()
	type paid struct {
		Usage budget.Usage `json:"usage"`
	}
	how := r.IntN(5)
	reply, err := stone.Step(draw.Context(ctx), name, nil, func(ctx context.Context, _ any) (paid, error) {
		if err := draw.Begin(); err != nil {
			return paid{}, err
		}
		switch how {
		case 0:
			return paid{}, budget.Costly(errors.New("unusable"), used)
		case 1:
			cut()
			return paid{}, ctx.Err()
		}
		return paid{used}, nil
	})
	if noted, ok := budget.CostOf(err); ok {
		draw.End(noted)
	} else if err == nil {
		draw.End(reply.Usage)
	}
	return ctx.Err()
}

// testTotals checks that, however attempts end, the total of a run, the sum of its steps, the spending of its account, and the
// amount charged to another process's account when the run is resumed are all equal.
func testTotals(t *testing.T, j tested) {
	for seed := range uint64(8) {
		r := rand.New(rand.NewPCG(seed, 0))
		cfg := config()
		cfg.RunID = fmt.Sprint("total-", seed)
		var before, charged budget.Amount
		for round := range 6 {
			account := budget.New(budget.Limits{USD: new(1000.0)})
			ctx, cancel := context.WithCancel(budget.With(t.Context(), account))
			work := stone.Func0("work", final, func(ctx context.Context) (string, error) {
				charged = account.Spent()
				for i := range 10 {
					if err := call(ctx, fmt.Sprint("ask-", i), r, cancel); err != nil {
						return "", err
					}
				}
				return "", stone.Fail("again", "in round %d", round)
			})
			if _, err := stone.Run(ctx, work, kept(cfg, j, journal.Options{})); err == nil {
				t.Fatal("the run has a result")
			}
			cancel()
			if !same(charged, before) {
				t.Fatalf("seed %d: round %d is charged with %+v, and the run had spent %+v", seed, round, charged, before)
			}
			info, err := j.open().Find(t.Context(), cfg.RunID)
			must(t, err)
			steps, err := j.Steps(t.Context(), cfg.RunID)
			must(t, err)
			_, sum := journal.Total(steps)
			before = info.Usage.Amount()
			before.Roundtrips = 0
			if got := account.Spent(); !same(got, before) || !same(sum.Amount(), before) || info.Usage.Possible.Attempts != sum.Possible.Attempts {
				t.Fatalf("seed %d, round %d: the run has spent %+v, its steps %+v and its account %+v", seed, round, info.Usage, sum, got)
			}
		}
		if info, err := j.Find(t.Context(), cfg.RunID); err != nil || info.Usage.USD == 0 {
			t.Errorf("seed %d: %+v, %v: want some cost", seed, info.Usage, err)
		}
	}
}

// same compares tokens exactly, and money except for rounding errors.
func same(a, b budget.Amount) bool { return a.Tokens == b.Tokens && math.Abs(a.USD-b.USD) < 1e-9 }
