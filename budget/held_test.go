package budget_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stonelayer/stone/budget"
)

// A refusal says what was spent, what is held for lost attempts, and which limit is enough.
func TestExhaustedSaysWhatIsHeld(t *testing.T) {
	call := budget.Quote{Least: budget.Amount{Roundtrips: 1}, Most: budget.Amount{Roundtrips: 1, Tokens: 20, USD: 0.0065}}
	lost := budget.Possible{Attempts: 8, Tokens: 160, USD: 0.0475}
	before := budget.Amount{Roundtrips: 18, Tokens: 200, USD: 0.05}
	for name, c := range map[string]struct {
		limits budget.Limits
		before budget.Amount
		held   budget.Possible
		keep   int // attempts without a known cost in this process
		want   string
	}{
		"held by another process": {budget.Limits{USD: new(0.05)}, before, lost, 0,
			"budget/exhausted: spent 0.0025, held for 8 lost attempts 0.0475, limit 0.05: set max-usd to at least 0.098"},
		"held here": {budget.Limits{USD: new(0.005)}, budget.Amount{}, budget.Possible{}, 1,
			"budget/exhausted: spent 0, held for 1 lost attempt 0.0065, limit 0.005: set max-usd to at least 0.013"},
		"nothing held": {budget.Limits{USD: new(0.05)}, before, budget.Possible{}, 0,
			"budget/exhausted: spent 0.0500, limit 0.05: set max-usd to at least 0.057"},
		"tokens":          {budget.Limits{Tokens: new(200)}, before, lost, 0, "budget/exhausted: spent 40, held for 8 lost attempts 160, limit 200: set max-tokens to at least 360"},
		"round trips":     {budget.Limits{Roundtrips: new(18)}, before, lost, 0, "budget/exhausted: spent 18, limit 18: set max-roundtrips to at least 19"},
		"nothing allowed": {budget.Limits{USD: new(0.0)}, budget.Amount{}, budget.Possible{}, 0, "budget/exhausted: spent 0, limit 0: set max-usd to at least 0.0065"},
		"no time":         {budget.Limits{Latency: new(time.Duration(0))}, budget.Amount{}, budget.Possible{}, 0, "budget/exhausted: the time limit set by latency-ms or --max-time has passed"},
	} {
		whole := budget.New(c.limits)
		run := whole.Run("r", budget.Earlier{Spent: c.before, Held: c.held})
		for range c.keep {
			draw, err := run.Draw(t.Context(), body("p"), "s", call)
			if err != nil || draw.Begin() != nil {
				t.Fatal(name, err)
			}
			draw.Close()
		}
		next := call
		next.Least.USD = 0.0001
		_, err := run.Draw(t.Context(), body("p"), "s", next)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, c.want)
		}
		e, ok := errors.AsType[*budget.ExhaustedError](err)
		if !ok || e.Enough == 0 || e.Limit == "latency-ms" {
			continue
		}
		raised := map[string]budget.Limits{"max-usd": {USD: new(e.Enough)}, "max-tokens": {Tokens: new(int(e.Enough))}, "max-roundtrips": {Roundtrips: new(int(e.Enough))}}[e.Limit]
		if _, err := budget.New(raised).Run("r", budget.Earlier{Spent: c.before, Held: c.held}).Draw(t.Context(), body("p"), "s", next); err != nil {
			t.Errorf("%s: what is said to be enough is not: %v", name, err)
		}
	}
}

// An account that serves every resume of a run in turn holds each lost attempt once.
func TestHeldOnce(t *testing.T) {
	whole := budget.New(budget.Limits{USD: new(1.0)})
	call := budget.Quote{Most: budget.Amount{Roundtrips: 1, USD: 0.5}}
	spent, held := budget.Amount{}, budget.Possible{}
	for range 2 {
		run := whole.Run("r", budget.Earlier{Spent: spent, Held: held})
		draw, err := run.Draw(t.Context(), body("p"), "s", call)
		if err != nil || draw.Begin() != nil {
			t.Fatal(err)
		}
		draw.Close()
		run.Leave("r", false)
		spent, held = spent.Add(call.Most), held.Start(call.Most)
	}
	_, err := whole.Run("r", budget.Earlier{Spent: spent, Held: held}).Draw(t.Context(), body("p"), "s", budget.Fixed(budget.Amount{USD: 0.1}))
	if want := "budget/exhausted: spent 0, held for 2 lost attempts 1.00, limit 1: set max-usd to at least 2"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
