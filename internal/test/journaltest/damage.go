package journaltest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/journal"
)

// TestDamage tests that a damaged run does not hide other runs and can be removed. Store creates a store as in TestJournal, and
// also returns a function that executes an SQL statement. Corpus contains the statements, by name. Each of them damages the run
// "run", which has the pipeline "name", the steps "a" and "b" and a question with the answer "yes", and has ended after 7 steps.
// If facts is true for a name, the statement damages the description of the run, and otherwise a record or a question.
func TestDamage(t *testing.T, store func() (open func() journal.Journal, execute func(statement string)), corpus map[string]string, facts func(name string) bool) {
	for name, statement := range corpus {
		t.Run(name, func(t *testing.T) {
			open, execute := store()
			j := open()
			for _, id := range []string{"first", "run", "last"} {
				begin(t, j, journal.RunInfo{ID: id, Pipeline: "name", Labels: map[string]string{"team": "a"}})
				for _, path := range []string{"a", "b"} {
					k := key(path)
					k.RunID = id
					do(t, j, k, value(path))
				}
				_, err := j.Ask(t.Context(), journal.Question{Run: id, Path: "p", Name: "p", Asked: moment})
				must(t, err)
				must(t, j.Answer(t.Context(), id, "p", ask.Answer{Response: "yes"}))
				finish(t, j, id, journal.Outcome{State: journal.Drained, Ended: moment, Steps: 7})
			}
			wantChecked(t, open(), "")
			execute(statement)
			damaged := open()
			wantChecked(t, damaged, "run")
			testDamaged(t, damaged, facts(name))
		})
	}
}

// wantChecked checks a journal that contains three runs, of which at most one is damaged.
func wantChecked(t *testing.T, j journal.Journal, damaged string) {
	t.Helper()
	c, ok := j.(interface {
		Check(ctx context.Context, found func(*journal.DamageError)) (runs, records int, err error)
	})
	if !ok {
		return // a journal need not have a Check method
	}
	found := ""
	runs, records, err := c.Check(t.Context(), func(e *journal.DamageError) { found = e.Run })
	if err != nil || runs != 3 || found != damaged || damaged == "" && records == 0 {
		t.Errorf("Check: %d runs, %d records, damaged: %q, %v; want 3 runs and the damage %q", runs, records, found, err, damaged)
	}
}

func testDamaged(t *testing.T, j journal.Journal, facts bool) {
	for _, q := range []journal.Query{{}, {Pipeline: "name"}, {Labels: map[string]string{"team": "a"}}, {Since: moment}, {Ended: moment}} {
		runs, err := j.Runs(t.Context(), q)
		must(t, err)
		if got := idsOf(runs); got != "last run first" {
			t.Errorf("Runs(%+v) = %q, want all three", q, got)
		}
	}
	damaged, err := j.Runs(t.Context(), journal.Query{States: []journal.State{journal.Damaged}})
	must(t, err)
	info, err := j.Find(t.Context(), "run")
	must(t, err)
	if marked := info.State == journal.Damaged; marked != facts || marked != (idsOf(damaged) == "run") ||
		marked && (info.Failure == nil || !strings.Contains(info.Failure.Reason, "was changed after it was written")) {
		t.Errorf("the run is %s with the failure %+v, and %q are damaged; want it marked: %v", info.State, info.Failure, idsOf(damaged), facts)
	}
	resumable, err := journal.Resumable(t.Context(), j)
	if got := idsOf(resumable); err != nil || !facts && got != "first run last" || facts && got != "first last" {
		t.Errorf("resumable: %q, %v", got, err)
	}
	if _, err := openQuestions(t.Context(), j); err != nil {
		t.Errorf("open questions: %v", err)
	}
	if facts {
		if _, err := j.Acquire(t.Context(), "run"); !errors.As(err, new(*journal.DamageError)) {
			t.Errorf("Acquire: %v, want a DamageError", err)
		}
	}
	must(t, j.Remove(t.Context(), "run"))
	if _, err := j.Find(t.Context(), "run"); !errors.Is(err, journal.ErrNoRun) {
		t.Errorf("Find after Remove: %v, want ErrNoRun", err)
	}
	begin(t, j, journal.RunInfo{ID: "run"})
	do(t, j, key("a"), value("a"))
	finish(t, j, "run", journal.Outcome{State: journal.Done})
	runs, err := j.Runs(t.Context(), journal.Query{})
	if got := idsOf(runs); err != nil || got != "run last first" {
		t.Errorf("Runs after Remove: %q, %v", got, err)
	}
}

func idsOf(runs []journal.RunInfo) string {
	var ids []string
	for _, r := range runs {
		ids = append(ids, r.ID)
	}
	return strings.Join(ids, " ")
}

// testIdentity removes a run while it is being followed. A follower never receives a row of a different run, not even of a later
// run with the same ID.
func testIdentity(t *testing.T, j tested) {
	for _, next := range []string{"other", "run"} {
		begin(t, j, journal.RunInfo{ID: "run"})
		do(t, j, key("a"), value("one"))
		type row struct {
			journal.Row
			err error
		}
		followers := []journal.Journal{j, j.open()}
		rows, outlines := make([]chan row, len(followers)), make([]journal.Outline, len(followers))
		first := make(chan struct{})
		for i, f := range followers {
			o, err := f.Outline(t.Context(), "run")
			must(t, err)
			outlines[i], rows[i] = o, make(chan row, 100)
			go func() {
				defer close(rows[i])
				for r, err := range f.Follow(t.Context(), "run", 0) {
					if rows[i] <- (row{r, err}); r.Ended {
						<-first // remove the run only now
					}
				}
			}()
		}
		for i := range rows {
			<-rows[i]
			<-rows[i]
		}
		must(t, j.Release("run"))
		must(t, j.Remove(t.Context(), "run"))
		begin(t, j, journal.RunInfo{ID: next})
		for i := range 6 {
			k := key(fmt.Sprint("b", i))
			k.RunID = next
			do(t, j, k, value("two"))
		}
		close(first)
		for i := range rows {
			var last row
			for last = range rows[i] {
				if last.err == nil {
					t.Errorf("a follower of a run that was removed gets %+v of run %q", last.Row, next)
				}
			}
			if !errors.Is(last.err, journal.ErrNoRun) {
				t.Errorf("Follow of a run that was removed: %v, want ErrNoRun", last.err)
			}
			for _, at := range []string{"", "p"} {
				level, err := outlines[i].Level(t.Context(), at, journal.Page{})
				if err == nil && slices.ContainsFunc(level.Branches, func(b journal.Branch) bool { return strings.Contains(b.Path, "b") }) {
					t.Errorf("the outline of a run that was removed has %+v", level.Branches)
				}
			}
		}
		must(t, j.Release(next))
		must(t, j.Remove(t.Context(), next))
	}
}

// testHidden checks that a run is found among other runs that are not visible yet.
func testHidden(t *testing.T, j tested) {
	for i := range 7 {
		_, err := j.Acquire(t.Context(), fmt.Sprint("exp-a", i))
		must(t, err)
		id := fmt.Sprint("exp-b", i) // sorts after the runs that are not visible
		begin(t, j, journal.RunInfo{ID: id})
		if i > 1 {
			must(t, j.Release(id))
			must(t, j.Remove(t.Context(), id))
		}
	}
	other := j.open()
	_, err := other.Find(t.Context(), "exp")
	if several, ok := errors.AsType[*journal.AmbiguousError](err); !ok || strings.Join(several.Found, " ") != "exp-b0 exp-b1" {
		t.Errorf("Find(exp): %v, want that exp-b0 and exp-b1 begin with it", err)
	}
	if info, err := other.Find(t.Context(), "exp-b1"); err != nil || info.ID != "exp-b1" {
		t.Errorf("Find(exp-b1): %q, %v", info.ID, err)
	}
	must(t, j.Release("exp-b1"))
	must(t, j.Remove(t.Context(), "exp-b1"))
	if info, err := other.Find(t.Context(), "exp"); err != nil || info.ID != "exp-b0" {
		t.Errorf("Find(exp): %q, %v; want exp-b0", info.ID, err)
	}
	if _, err := other.Find(t.Context(), "exp-a"); !errors.Is(err, journal.ErrNoRun) {
		t.Errorf("Find(exp-a): %v, want ErrNoRun", err)
	}
	if runs, err := other.Runs(t.Context(), journal.Query{}); err != nil || idsOf(runs) != "exp-b0" {
		t.Errorf("Runs: %q, %v; want exp-b0", idsOf(runs), err)
	}
}
