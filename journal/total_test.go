package journal_test

import (
	"context"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/declared"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
)

// A resumed run has as many steps and as much usage as before, although the steps within
// a replayed step are not replayed themselves.
func TestResumingKeepsTheTotal(t *testing.T) {
	out := dag.NewType[int]("out")
	type paid struct {
		Usage budget.Usage `json:"usage"`
	}
	p := stone.Func0("ask", out, func(ctx context.Context) (int, error) {
		for range 3 {
			if _, err := stone.Step(declared.With(ctx, budget.Amount{Roundtrips: 1}), "turn", nil, func(context.Context, any) (paid, error) {
				return paid{budget.Usage{InputTokens: 10, OutputTokens: 1, USD: 0.5}}, nil
			}); err != nil {
				return 0, err
			}
		}
		return 1, nil
	})
	memory := memdb.New(t)
	want := budget.Usage{InputTokens: 30, OutputTokens: 3, USD: 1.5}
	for _, when := range []string{"first", "resumed"} {
		if _, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: journal.Keep(memory, journal.Options{})}); err != nil {
			t.Fatal(err)
		}
		info, err := memory.Find(t.Context(), "r")
		if err != nil {
			t.Fatal(err)
		}
		if info.Steps != 4 || info.Usage.Usage != want {
			t.Errorf("%s: %d steps, %+v; want 4 and %+v", when, info.Steps, info.Usage, want)
		}
	}
}

// counting counts how often all steps of a run are listed.
type counting struct {
	*sqlite.DB
	lists int
}

func (c *counting) Steps(ctx context.Context, run string) ([]journal.Step, error) {
	c.lists++
	return c.DB.Steps(ctx, run)
}

// A run that is done and resumed lists no steps: there may be a million.
func TestResumingWhatIsDoneListsNoSteps(t *testing.T) {
	p := stone.Func0("one", dag.NewType[int]("out"), func(context.Context) (int, error) { return 1, nil })
	db := &counting{DB: memdb.New(t)}
	for range 2 {
		if _, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: journal.Keep(db, journal.Options{})}); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := db.Find(t.Context(), "r"); err != nil || info.Steps != 1 || db.lists != 0 {
		t.Errorf("%d lists, %d steps, %v", db.lists, info.Steps, err)
	}
}
