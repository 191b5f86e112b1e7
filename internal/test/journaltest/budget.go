package journaltest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/journal"
)

var dollar = budget.Amount{Roundtrips: 1, USD: 1}

// pay is a step that costs a dollar and ten tokens.
func pay(ctx context.Context, name string, work func(context.Context) error) error {
	draw, err := budget.From(ctx).Draw(ctx, stone.In(ctx), name, budget.Fixed(dollar))
	if err != nil {
		return err
	}
	defer draw.Close()
	cost := budget.Usage{InputTokens: 10, USD: 1}
	type paid struct {
		Usage budget.Usage `json:"usage"`
	}
	_, err = stone.Step(draw.Context(ctx), name, nil, func(ctx context.Context, _ any) (paid, error) {
		if err := draw.Begin(); err != nil {
			return paid{}, err
		}
		if err := work(ctx); err != nil {
			if ctx.Err() != nil { // behaves as if the process had died
				return paid{}, err
			}
			return paid{}, budget.Costly(err, cost)
		}
		return paid{cost}, nil
	})
	if ctx.Err() == nil {
		draw.End(cost)
	}
	return err
}

// testBudget runs ten leaves that cost a dollar each, with a budget of two dollars. At most three leaves are paid, however often
// the run is resumed and however it ended before.
func testBudget(t *testing.T, j tested) {
	for name, limits := range map[string]budget.Limits{
		"usd": {USD: new(2.0)}, "tokens": {Tokens: new(20)}, "roundtrips": {Roundtrips: new(2)},
	} {
		for _, end := range []string{"drained", "killed", "failed"} {
			if end == "killed" && name == "tokens" {
				continue // the cost of an attempt without a result is unknown
			}
			var paid counter
			var ended context.CancelFunc
			var drain chan struct{}
			var steps []stone.Ashlar
			for i := range 10 {
				steps = append(steps, stone.Func0(fmt.Sprint("call-", i), final, func(ctx context.Context) (string, error) {
					return "ok", pay(ctx, "ask", func(ctx context.Context) error {
						paid.add("call")
						switch end {
						case "drained":
							close(drain)
						case "killed":
							ended()
							return ctx.Err()
						case "failed":
							return errors.New("the answer was unusable")
						}
						return nil
					})
				}))
			}
			cfg := config()
			cfg.RunID = name + "-" + end
			last := error(nil)
			for range 8 {
				ctx, cancel := context.WithCancel(t.Context())
				ended, drain = cancel, make(chan struct{})
				ctx = budget.With(ctx, budget.New(limits)) // a new account, as in another process
				_, last = stone.Run(ctx, stone.Seq("all", steps...), kept(cfg, j, journal.Options{Drain: drain}))
				cancel()
			}
			if n := paid.add("call") - 1; n > 3 || n < 2 {
				t.Errorf("%s: %d calls were paid, want 2 or 3", cfg.RunID, n)
			}
			if !errors.As(last, new(*budget.ExhaustedError)) {
				t.Errorf("%s: in the end: %v", cfg.RunID, last)
			}
			all, err := j.Steps(t.Context(), cfg.RunID)
			must(t, err)
			lost := 0
			for _, s := range all {
				if s.Kind == "step" {
					lost += s.PossiblyPaid()
				}
			}
			if want := map[string]int{"killed": paid.add("call") - 2}[end]; lost != want {
				t.Errorf("%s: %d attempts are possibly paid, want %d", cfg.RunID, lost, want)
			}
		}
	}
}

// testPaidOnce checks that recorded steps cost nothing when their body is started again, even if a step had used up the account,
// and even if the account is the same one.
func testPaidOnce(t *testing.T, j tested) {
	var paid counter
	cut := true
	p := stone.Func0("body", final, func(ctx context.Context) (string, error) {
		for i := range 3 {
			if i == 2 && cut {
				return "", stone.Fail("cut", "before the third")
			}
			name := fmt.Sprint("ask-", i)
			if err := pay(ctx, name, func(context.Context) error { paid.add(name); return nil }); err != nil {
				return "", err
			}
		}
		return "ok", nil
	})
	account := budget.New(budget.Limits{USD: new(3.0), Roundtrips: new(3)})
	ctx := budget.With(t.Context(), account)
	if _, err := stone.Run(ctx, p, kept(config(), j, journal.Options{})); err == nil {
		t.Fatal("the run was not cut")
	}
	cut = false
	for range 2 {
		_, err := stone.Run(ctx, p, kept(config(), j, journal.Options{}))
		must(t, err)
	}
	paid.want(t, "ask-0:1 ask-1:1 ask-2:1")
	if got, want := account.Spent(), (budget.Amount{Roundtrips: 3, Tokens: 30, USD: 3}); got != want {
		t.Errorf("the account has spent %+v, want %+v", got, want)
	}
}
