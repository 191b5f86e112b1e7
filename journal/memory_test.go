package journal_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/declared"
	"github.com/stonelayer/stone/internal/test/journaltest"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

func TestMemory(t *testing.T) {
	store := func() func() journal.Journal {
		memory := new(journal.Memory)
		return func() journal.Journal { return memory }
	}
	journaltest.TestJournal(t, store)
	t.Run("readers", func(t *testing.T) { journaltest.TestReaders(t, store) })
}

// A panicking frontend fails the question, not the program.
func TestFrontendPanics(t *testing.T) {
	question := stone.Ask("ask", dag.Nothing, dag.NewType[stone.Answer]("answer"), func(struct{}) string { return "?" })
	_, err := stone.Run(t.Context(), question, stone.Config{Frontend: frontend{}, Recorder: journal.Keep(new(journal.Memory), journal.Options{})})
	if f, ok := errors.AsType[*stone.Failure](err); !ok || f.Kind != kind.Panic {
		t.Errorf("Run: %v, want a failure of kind panic", err)
	}
}

type frontend struct{}

func (frontend) Ask(context.Context, ask.Question) (ask.Answer, error) { panic("no terminal") }

// A run waits for a person, who answers later; then it continues.
func Example() {
	plan := dag.NewType[string]("plan")
	agreed := dag.NewType[stone.Answer]("agreed")
	pipeline := stone.Seq("release",
		stone.Func0("plan", plan, func(context.Context) (string, error) {
			fmt.Println("planning")
			return "on Friday", nil
		}),
		stone.Ask("agree", plan, agreed, func(when string) string { return "Release " + when + "?" },
			stone.Choices("yes", "no")))

	ctx, runs := context.Background(), new(journal.Memory)
	_, err := stone.Run(ctx, pipeline, stone.Config{RunID: "r1", Recorder: journal.Keep(runs, journal.Options{})})
	fmt.Println("waiting:", errors.Is(err, kind.Waiting))

	questions, err := runs.Questions(ctx, "r1")
	fmt.Println(questions[0].Text, err)
	fmt.Println(journal.Answer(ctx, runs, "r1", "agree", ask.Answer{Response: "yes"}))

	result, err := stone.Run(ctx, pipeline, stone.Config{RunID: "r1", Recorder: journal.Keep(runs, journal.Options{})})
	fmt.Println(result.Node.Get("response", ""), err)
	// Output:
	// planning
	// waiting: true
	// Release on Friday? <nil>
	// <nil>
	// yes <nil>
}

// A run whose time is over has failed: nobody canceled it.
func TestTimeIsOver(t *testing.T) {
	j, account := new(journal.Memory), budget.New(budget.Limits{Latency: new(20 * time.Millisecond)})
	ctx, cancel := account.Context(budget.With(t.Context(), account))
	defer cancel()
	waits := stone.Func0("wait", dag.NewType[int]("n"), func(ctx context.Context) (int, error) {
		<-ctx.Done()
		return 0, context.Cause(ctx)
	})
	_, err := stone.Run(ctx, waits, stone.Config{RunID: "r", Recorder: journal.Keep(j, journal.Options{})})
	info, found := j.Find(t.Context(), "r")
	if !errors.As(err, new(*budget.ExhaustedError)) || found != nil || info.State != journal.Failed {
		t.Errorf("%v, state %s, %v", err, info.State, found)
	}
}

// What was spent on a day is forgotten after more than a year, as in databases: once the last day before is as far away.
func TestMemoryForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := new(journal.Memory)
		daily := budget.Shared{Name: "daily", Per: budget.Day, Limits: budget.Limits{USD: new(9.0)}}
		ever := budget.Shared{Name: "ever", Limits: budget.Limits{USD: new(9.0)}}
		first := time.Now()
		for n, pause := range []time.Duration{0, 399 * 24 * time.Hour, 2 * 24 * time.Hour, 24 * time.Hour} {
			time.Sleep(pause)
			id := fmt.Sprint("run-", n)
			if _, err := j.Acquire(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			if err := j.Begin(t.Context(), journal.RunInfo{ID: id, Started: time.Now(), Budgets: []budget.Shared{daily, ever}}, dag.DAG{}); err != nil {
				t.Fatal(err)
			}
			price := budget.Amount{USD: 1}
			ctx := declared.Claim(declared.With(t.Context(), price), budget.Fixed(price))
			_, err := j.Do(ctx, step.Key{RunID: id, Path: id + "/ask", Kind: "step", Name: "ask"}, func(context.Context) (step.Record, error) {
				return step.Record{Content: []byte(`{"usage":{"usd":1}}`), Time: time.Now()}, nil
			})
			if err != nil {
				t.Fatal(err)
			}
			day, err := j.Balance(t.Context(), daily, first)
			all, other := j.Balance(t.Context(), ever, first)
			if want := float64(1 - n/3); day.Used.USD != want || all.Used.USD != float64(n+1) || err != nil || other != nil {
				t.Errorf("after %d runs the first day has %v and all days %v, %v, %v", n+1, day.Used.USD, all.Used.USD, err, other)
			}
		}
	})
}
