package journaltest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/journal"
)

// project returns a shared budget with a limit in USD.
func project(usd float64) []budget.Shared {
	return []budget.Shared{{Name: "project", Limits: budget.Limits{USD: new(usd)}}}
}

// balance fails the test unless the given amounts of a budget are used and held, as seen by the process that has the journal.
func balance(t *testing.T, j journal.Journal, b budget.Shared, used, held float64) {
	t.Helper()
	got, err := j.Balance(t.Context(), b, time.Now())
	must(t, err)
	if fmt.Sprintf("%.6f %.6f", got.Used.USD, got.Held.USD) != fmt.Sprintf("%.6f %.6f", used, held) {
		t.Errorf("%s has used %+v and in flight %+v, want %v and %v USD", b.Name, got.Used, got.Held, used, held)
	}
}

// dollars returns a pipeline whose lanes each pay a dollar.
func dollars(lanes int, paid func()) stone.Ashlar {
	var steps []stone.Ashlar
	for i := range lanes {
		steps = append(steps, stone.Func0(fmt.Sprint("lane-", i), final, func(ctx context.Context) (string, error) {
			return "ok", pay(ctx, "ask", func(context.Context) error { paid(); return nil })
		}))
	}
	return stone.Flow("all", steps...)
}

// testShared runs four runs that together cost twenty dollars, with a budget of seven dollars. A run that is refused can be
// resumed with a larger budget. A second budget of a run is counted separately, and a run without budgets in its options keeps its
// own. Another process knows how much was paid.
func testShared(t *testing.T, j tested) {
	var paid counter
	p := dollars(5, func() { paid.add("all") })
	all := func(opts journal.Options) (refused int) {
		var wait sync.WaitGroup
		var mu sync.Mutex
		for i := range 4 {
			wait.Go(func() {
				cfg := config()
				cfg.RunID = fmt.Sprint("run-", i)
				_, err := stone.Run(t.Context(), p, kept(cfg, j, opts))
				mu.Lock()
				defer mu.Unlock()
				var spent *budget.ExhaustedError
				if errors.As(err, &spent) && spent.Shared != nil && spent.Shared.Name == "project" && !spent.Part {
					refused++
				} else if err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		return refused
	}
	if n := all(journal.Options{Budgets: project(7)}); n == 0 {
		t.Error("no run was refused")
	}
	if n := paid.add("all") - 1; n != 7 {
		t.Errorf("%d dollars were paid of 7", n)
	}
	balance(t, j, project(7)[0], 7, 0)
	balance(t, j.open(), project(7)[0], 7, 0)
	other := config()
	other.RunID = "other"
	if _, err := stone.Run(t.Context(), p, kept(other, tested{j.open(), j.open}, journal.Options{Budgets: project(7)})); !errors.As(err, new(*budget.ExhaustedError)) {
		t.Errorf("another process: %v", err)
	}
	if info, err := j.Find(t.Context(), "run-0"); err != nil || info.State == journal.Failed && info.Failure.Kind != budget.Kind {
		t.Errorf("%+v, %v", info.Outcome, err)
	}
	today := budget.Shared{Name: "project", Per: budget.Day, Limits: budget.Limits{Tokens: new(1000)}}
	if n := all(journal.Options{Budgets: append(project(30), today)}); n != 0 {
		t.Errorf("%d runs were refused", n)
	}
	if n := paid.add("all") - 2; n != 20 {
		t.Errorf("%d dollars were paid, want 20", n)
	}
	balance(t, j, project(30)[0], 20, 0)
	balance(t, j, today, 13, 0)

	begin(t, j, journal.RunInfo{ID: "exp", Budgets: project(22)})
	inner := config()
	inner.RunID = "exp/1"
	_, err := stone.Run(t.Context(), dollars(3, func() {}), kept(inner, j, journal.Options{}))
	if !errors.As(err, new(*budget.ExhaustedError)) {
		t.Errorf("an inner run beyond the budget of the outer one: %v", err)
	}
	finish(t, j, "exp", journal.Outcome{State: journal.Done})
	balance(t, j, project(0)[0], 22, 0)
	must(t, j.Remove(t.Context(), "exp"))
	balance(t, j, project(0)[0], 22, 0)
}

// testSharedRefuses runs a step that may cost 0.60 USD on a budget of 1 USD, and actually costs 0.10 USD. While the step is in
// flight, its process immediately refuses a second one. A process that does not know about the step starts another one.
func testSharedRefuses(t *testing.T, j tested) {
	started, release := make(chan struct{}), make(chan struct{})
	ask := func(work func()) stone.Ashlar {
		return stone.Func0("one", final, func(ctx context.Context) (string, error) {
			q := budget.Quote{Least: budget.Amount{Roundtrips: 1}, Most: budget.Amount{Roundtrips: 1, USD: 0.6}}
			draw, err := budget.From(ctx).Draw(ctx, stone.In(ctx), "ask", q)
			if err != nil {
				return "", err
			}
			defer draw.Close()
			type answer struct {
				Usage budget.Usage `json:"usage"`
			}
			got, err := stone.Step(draw.Context(ctx), "ask", nil, func(context.Context, any) (answer, error) {
				work()
				return answer{budget.Usage{USD: 0.1}}, draw.Begin()
			})
			draw.End(got.Usage)
			return "ok", err
		})
	}
	day := budget.Shared{Name: "project", Per: budget.Day, Limits: budget.Limits{USD: new(1.0)}}
	run := func(j tested, id string, work func()) error {
		cfg := config()
		cfg.RunID = id
		_, err := stone.Run(t.Context(), ask(work), kept(cfg, j, journal.Options{Budgets: []budget.Shared{day}}))
		return err
	}
	first := make(chan error, 1)
	go func() { first <- run(j, "first", func() { close(started); <-release }) }()
	<-started
	balance(t, j, day, 0, 0.6)
	var spent *budget.ExhaustedError
	err := run(j, "refused", func() { t.Error("it was not refused") })
	if _, next := budget.Day.Bounds(time.Now()); !errors.As(err, &spent) || spent.Spent != 0 || spent.Held != 0.6 || spent.Needs != 0.6 || !spent.Shared.Renews.Equal(next) ||
		!strings.Contains(err.Error(), "has no room for a step of up to 0.60") || !strings.Contains(err.Error(), next.Format("renewed on 2006-01-02 15:04 UTC")) {
		t.Errorf("a step of 0.60 beside one in flight: %v", err)
	}
	if other := j.open(); other != j.Journal {
		must(t, run(tested{other, j.open}, "other", func() {}))
		balance(t, other, day, 0.1, 0)
	} else {
		close(release) // a journal in memory can be used by only one process
		must(t, <-first)
		must(t, run(j, "other", func() {}))
		must(t, run(j, "refused", func() {}))
		balance(t, j, day, 0.3, 0)
		return
	}
	close(release)
	must(t, <-first)
	must(t, run(j, "refused", func() {}))
	balance(t, j, day, 0.3, 0)
}

// testSharedLost checks that the possible cost of a lost attempt is in flight until its run leaves the process, and is then
// recorded.
func testSharedLost(t *testing.T, j tested) {
	ctx, cancel := context.WithCancel(t.Context())
	lose := true
	p := stone.Func0("lost", final, func(ctx context.Context) (string, error) {
		err := pay(ctx, "ask", func(context.Context) error {
			if lose {
				cancel()
			}
			return ctx.Err()
		})
		if lose {
			balance(t, j, project(0)[0], 0, 1)
		}
		return "ok", err
	})
	opts := journal.Options{Budgets: project(10)}
	if _, err := stone.Run(ctx, p, kept(config(), j, opts)); err == nil {
		t.Fatal("a run that was canceled ended well")
	}
	balance(t, j, project(0)[0], 1, 0)
	if got, err := j.open().Balance(t.Context(), project(0)[0], time.Now()); err != nil || got.Used != dollar {
		t.Errorf("%+v, %v: want a round trip and a dollar", got.Used, err)
	}
	lose = false
	_, err := stone.Run(t.Context(), p, kept(config(), j, journal.Options{}))
	must(t, err)
	balance(t, j, project(0)[0], 2, 0)
}
