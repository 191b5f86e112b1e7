package journal_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/kind"
)

// A panicking frontend fails the question, not the program.
func TestFrontendPanics(t *testing.T) {
	question := stone.Ask("ask", dag.Nothing, dag.NewType[stone.Answer]("answer"), func(struct{}) string { return "?" })
	_, err := stone.Run(t.Context(), question, stone.Config{Frontend: frontend{}, Recorder: journal.Keep(memdb.New(t), journal.Options{})})
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

	ctx := context.Background()
	runs, err := sqlite.Open(sqlite.Memory, sqlite.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer runs.Close()
	_, err = stone.Run(ctx, pipeline, stone.Config{RunID: "r1", Recorder: journal.Keep(runs, journal.Options{})})
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
	j, account := memdb.New(t), budget.New(budget.Limits{Latency: new(20 * time.Millisecond)})
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
