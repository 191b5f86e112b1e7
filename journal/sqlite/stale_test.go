package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/record"
	"github.com/stonelayer/stone/internal/test/memdir"
	"github.com/stonelayer/stone/journal"
)

// A run that this process lost, and that somebody then removed, begins as a new one.
func TestBeginAfterRemoval(t *testing.T) {
	file := filepath.Join(memdir.New(t), "stone.db")
	mine, theirs := open(t, file, Options{Lease: time.Hour}), open(t, file, Options{})
	do(t, mine, stepKey("r", 1)) // holds it without Acquire
	execute(t, file, "UPDATE runs SET owner = 'nobody', lease = 1, beat = beat + 1 WHERE id = 'r'")
	if _, err := mine.Do(t.Context(), stepKey("r", 2), nil); err == nil {
		t.Fatal("the run was not lost")
	}
	if err := theirs.Remove(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	ctx := record.WithBegin(t.Context())
	if _, err := mine.Acquire(ctx, "r"); err != nil {
		t.Fatal(err)
	}
	if err := mine.Begin(ctx, journal.RunInfo{ID: "r", Started: stopped()}, dag.DAG{}); err != nil {
		t.Fatal(err)
	}
	do(t, mine, stepKey("r", 1))
	if err := mine.End(t.Context(), "r", journal.Outcome{State: journal.Done}); err != nil {
		t.Fatal(err)
	}
}

// A question that is asked about a run before it begins, by this process or another one, is a question of that run.
func TestAskedBeforeBegin(t *testing.T) {
	file := filepath.Join(memdir.New(t), "stone.db")
	mine, theirs := open(t, file, Options{}), open(t, file, Options{})
	for id, asks := range map[string]*DB{"mine": mine, "theirs": theirs} {
		ctx := record.WithBegin(t.Context())
		if _, err := mine.Acquire(ctx, id); err != nil {
			t.Fatal(err)
		}
		if _, err := asks.Ask(ctx, journal.Question{Run: id, Path: "p/ask", Name: "ask", Text: "?", Version: "1"}); err != nil {
			t.Fatal(err)
		}
		if err := mine.Begin(ctx, journal.RunInfo{ID: id, Started: stopped()}, dag.DAG{}); err != nil {
			t.Fatal(err)
		}
		do(t, mine, stepKey(id, 1))
		if err := mine.End(t.Context(), id, journal.Outcome{State: journal.Done}); err != nil {
			t.Fatal(err)
		}
		info, err := theirs.Find(t.Context(), id)
		questions, asked := theirs.Questions(t.Context(), id)
		if err != nil || asked != nil || info.State != journal.Done || len(questions) != 1 {
			t.Errorf("%s: state %q, questions %v; %v, %v", id, info.State, questions, err, asked)
		}
	}
}
