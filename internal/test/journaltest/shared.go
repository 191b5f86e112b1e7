package journaltest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/declared"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// project is a budget of some dollars.
func project(usd float64) []budget.Shared {
	return []budget.Shared{{Name: "project", Limits: budget.Limits{USD: usd}}}
}

// balance fails unless a budget is in the state.
func balance(t *testing.T, j tested, b budget.Shared, used, held float64) {
	t.Helper()
	got, err := j.open().Balance(t.Context(), b, time.Now())
	must(t, err)
	if fmt.Sprintf("%.6f %.6f", got.Used.USD, got.Held.USD) != fmt.Sprintf("%.6f %.6f", used, held) {
		t.Errorf("%s has used %+v and reserved %+v, want %v and %v USD", b.Name, got.Used, got.Held, used, held)
	}
}

// dollars is a pipeline whose lanes pay a dollar each.
func dollars(lanes int, paid func()) stone.Ashlar {
	var steps []stone.Ashlar
	for i := range lanes {
		steps = append(steps, stone.Func0(fmt.Sprint("lane-", i), final, func(ctx context.Context) (string, error) {
			return "ok", pay(ctx, "ask", func(context.Context) error { paid(); return nil })
		}))
	}
	return stone.Flow("all", steps...)
}

// Four runs in four journals have twenty dollars to pay, and a budget of seven. Who is refused can be resumed with
// more. A second budget of a run counts on its own, and a run that names none keeps its own.
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
				_, err := stone.Run(t.Context(), p, kept(cfg, tested{j.open(), j.open}, opts))
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
	if info, err := j.Find(t.Context(), "run-0"); err != nil || info.State == journal.Failed && info.Failure.Kind != budget.Kind {
		t.Errorf("%+v, %v", info.Outcome, err)
	}
	today := budget.Shared{Name: "project", Per: budget.Day, Limits: budget.Limits{Tokens: 1000}}
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

// Two steps may cost 0.60 of one dollar and cost 0.10. The second one waits for the first.
func testSharedWaits(t *testing.T, j tested) {
	started, release := make(chan struct{}), make(chan struct{})
	ask := func(name string, work func()) stone.Ashlar {
		return stone.Func0(name, final, func(ctx context.Context) (string, error) {
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
	opts := journal.Options{Budgets: project(1)}
	first := make(chan error, 1)
	go func() {
		cfg := config()
		cfg.RunID = "first"
		_, err := stone.Run(t.Context(), ask("slow", func() { close(started); <-release }), kept(cfg, tested{j.open(), j.open}, opts))
		first <- err
	}()
	<-started
	balance(t, j, project(1)[0], 0, 0.6)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	cfg := config()
	cfg.RunID = "impatient"
	if _, err := stone.Run(ctx, ask("fast", func() { t.Error("it was not refused") }), kept(cfg, j, opts)); err == nil {
		t.Error("a step did not wait")
	}
	time.AfterFunc(50*time.Millisecond, func() { close(release) })
	cfg.RunID = "second"
	if _, err := stone.Run(t.Context(), ask("fast", func() {}), kept(cfg, j, opts)); err != nil {
		t.Error(err)
	}
	must(t, <-first)
	balance(t, j, project(1)[0], 0.2, 0)
}

// The reservation of an attempt that is lost is cost once the step starts again, or the run ends.
func testSharedLost(t *testing.T, j tested) {
	ctx, cancel := context.WithCancel(t.Context())
	lose := true
	p := stone.Func0("lost", final, func(ctx context.Context) (string, error) {
		return "ok", pay(ctx, "ask", func(context.Context) error {
			if lose {
				cancel()
			}
			return ctx.Err()
		})
	})
	opts := journal.Options{Budgets: project(10)}
	if _, err := stone.Run(ctx, p, kept(config(), j, opts)); err == nil {
		t.Fatal("a run that was canceled ended well")
	}
	balance(t, j, project(0)[0], 1, 0)
	lose = false
	_, err := stone.Run(t.Context(), p, kept(config(), j, journal.Options{}))
	must(t, err)
	balance(t, j, project(0)[0], 2, 0)
}

// What a worker announces on the board reserves, and the result that the holder records settles it.
func testSharedDropped(t *testing.T, j tested) {
	begin(t, j, journal.RunInfo{ID: "run", Budgets: project(2)})
	ctx := declared.Claim(declared.With(t.Context(), dollar), budget.Fixed(dollar))
	key := step.Key{RunID: "run", Path: "run/ask", Kind: "step", Name: "ask", Digest: [32]byte{1}}
	lost := errors.New("lost")
	if _, err := j.Do(ctx, key, func(context.Context) (step.Record, error) { return step.Record{}, lost }); !errors.Is(err, lost) {
		t.Fatal(err)
	}
	finish(t, j, "run", journal.Outcome{State: journal.Drained})
	balance(t, j, project(0)[0], 0, 1)
	again := tested{j.open(), j.open}
	begin(t, again, journal.RunInfo{ID: "run", Budgets: []budget.Shared{}})
	finish(t, again, "run", journal.Outcome{State: journal.Done})
	balance(t, j, project(0)[0], 1, 0)
}

// A run is resumed with another budget while a worker does a step: both pay what it costs, and the one that reserved it
