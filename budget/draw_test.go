package budget_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stonelayer/stone/budget"
)

// estimate is of something that costs a tenth of what is reserved for it.
var estimate = budget.Quote{Least: budget.Amount{Roundtrips: 1}, Most: budget.Amount{Roundtrips: 1, USD: 1}}

// Whoever draws waits while the estimates of others leave too little, and is refused
// when none is open and nothing is left.
func TestDrawWaitsForEstimates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := budget.New(budget.Limits{USD: new(2.0)})
		var all sync.WaitGroup
		var mu sync.Mutex
		open, most, paid := 0, 0, 0
		for range 40 {
			all.Go(func() {
				draw, err := a.Draw(t.Context(), body("p"), "s", estimate)
				if err != nil {
					if limitOf(err) != "max-usd" {
						t.Error(err)
					}
					return
				}
				defer draw.Close()
				if err := draw.Begin(); err != nil {
					t.Error(err)
				}
				mu.Lock()
				open++
				most = max(most, open)
				paid++
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				open--
				mu.Unlock()
				draw.End(budget.Usage{USD: 0.1})
			})
		}
		all.Wait()
		if most > 2 || paid < 19 {
			t.Errorf("%d at once and %d in all, want at most 2 and at least 19", most, paid)
		}
		if got := a.Spent().USD; got > 3 {
			t.Errorf("%v was spent of 2", got)
		}
	})
}

// Who waits ends with its context, and what never ended stays taken.
func TestDrawThatDoesNotEnd(t *testing.T) {
	a := budget.New(budget.Limits{USD: new(1.0)})
	draw, err := a.Draw(t.Context(), body("p"), "s", estimate)
	if err != nil {
		t.Fatal(err)
	}
	// A draw in the context of an estimate does not wait: it would wait for itself.
	if _, err := a.Draw(draw.Context(t.Context()), body("p"), "within", estimate); limitOf(err) != "max-usd" {
		t.Errorf("within an estimate: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := a.Draw(ctx, body("p"), "other", estimate); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if err := draw.Begin(); err != nil {
		t.Fatal(err)
	}
	draw.Close()
	if _, err := a.Draw(t.Context(), body("p"), "after", budget.Fixed(budget.Amount{USD: 0.01})); limitOf(err) != "max-usd" {
		t.Errorf("after an attempt that did not end: %v", err)
	}
	if got, want := a.Spent(), (budget.Amount{Roundtrips: 1, USD: 1}); got != want {
		t.Errorf("spent %+v, want %+v", got, want)
	}
}

// Input that was read from a cache or written to it is priced as such.
func TestPriceOfCachedTokens(t *testing.T) {
	u := budget.Usage{InputTokens: 1_000_000, OutputTokens: 100_000, CacheReadTokens: 600_000, CacheWriteTokens: 100_000}
	for want, p := range map[float64]budget.Price{
		4:                           {In: 3, Out: 10},
		0.3*3 + 0.6*0.3 + 0.1*4 + 1: {In: 3, Out: 10, CacheRead: 0.3, CacheWrite: 4},
	} {
		if got := p.Of(u); got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%+v: %v, want %v", p, got, want)
		}
	}
}
