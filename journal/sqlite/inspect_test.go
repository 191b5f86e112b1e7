package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdir"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/internal/log"
)

// every sets how often Follow looks for rows of other processes.
func every(t *testing.T, interval time.Duration) {
	t.Helper()
	before := poll
	poll = interval
	t.Cleanup(func() { poll = before })
}

func follow(t *testing.T, db *DB, run string, after int64) (rows []journal.Row) {
	t.Helper()
	for row, err := range db.Follow(t.Context(), run, after) {
		if err != nil {
			t.Fatalf("Follow: %v", err)
		}
		rows = append(rows, row)
	}
	return rows
}

// Steps that start at the same time share a record. Following again after any of them
// yields the others, once.
func TestFollowAgain(t *testing.T) {
	db := open(t, "", Options{Lease: time.Minute})
	const lanes = 40
	for round := 0; ; round++ {
		run := fmt.Sprint("r", round)
		var group sync.WaitGroup
		for i := range lanes {
			group.Go(func() {
				if _, err := db.Do(t.Context(), stepKey(run, byte(i)), work(new(atomic.Int64))); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if err := db.Release(run); err != nil {
			t.Fatal(err)
		}
		rows := follow(t, db, run, 0)
		records := map[int64]bool{}
		for i, row := range rows {
			if i > 0 && row.Seq <= rows[i-1].Seq {
				t.Errorf("row %d is at %d, after one at %d", i, row.Seq, rows[i-1].Seq)
			}
			records[row.Seq>>16] = true
		}
		if len(rows) != 2*lanes {
			t.Fatalf("%d rows, want %d", len(rows), 2*lanes)
		}
		for i, row := range rows {
			if diff := cmp.Diff(rows[i+1:], follow(t, db, run, row.Seq), cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("after row %d (-want +got):\n%s", i, diff)
			}
		}
		if len(records) < len(rows) {
			return
		}
		if round == 20 {
			t.Fatal("no steps shared a record")
		}
	}
}

// A follower learns of a commit in its own process without polling.
func TestFollowWakes(t *testing.T) {
	every(t, time.Hour)
	db := open(t, "", Options{Lease: time.Hour})
	do(t, db, stepKey("r", 0))
	n := byte(0)
	for row, err := range db.Follow(t.Context(), "r", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if !row.Ended {
			continue
		}
		if n++; n < 5 {
			go db.Do(t.Context(), stepKey("r", n), work(new(atomic.Int64)))
			continue
		}
		go db.Release("r")
	}
	if n != 5 {
		t.Errorf("%d steps ended, want 5", n)
	}
}

// A follower in another process sees each step while the run is held, although the run is
// silent for longer than its lease, and ends when the run is released.
func TestFollowAcross(t *testing.T) {
	need.Time(t)
	every(t, 20*time.Millisecond) // a follower that always reads would delay the heartbeats of the holder
	const lease = 2 * time.Second
	file := filepath.Join(memdir.New(t), "stone.db")
	db, other := open(t, file, Options{Lease: lease}), open(t, file, Options{})
	do(t, db, stepKey("r", 0))
	var steps sync.WaitGroup
	defer steps.Wait()
	n := byte(0)
	for row, err := range other.Follow(t.Context(), "r", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if !row.Ended {
			continue
		}
		if n++; n < 3 {
			key := stepKey("r", n)
			steps.Go(func() {
				time.Sleep(lease * 3 / 2)
				if _, err := db.Do(t.Context(), key, work(new(atomic.Int64))); err != nil {
					t.Error(err)
				}
			})
			continue
		}
		if err := db.Release("r"); err != nil {
			t.Fatal(err)
		}
	}
	if n != 3 {
		t.Errorf("%d steps ended, want 3", n)
	}
}

// Following the run of a dead process takes no longer than its lease.
func TestFollowDead(t *testing.T) {
	every(t, time.Millisecond)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for owner, lease := range map[string]time.Duration{
		"another-host/1/00000000":             50 * time.Millisecond, // may live: its lease must end first
		fmt.Sprint(host, "/4194305/00000000"): time.Hour,             // of this host, and no such process
	} {
		file := filepath.Join(memdir.New(t), "stone.db")
		db := open(t, file, Options{Lease: time.Minute})
		do(t, db, stepKey("r", 0))
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		execute(t, file, fmt.Sprintf("UPDATE runs SET owner = '%s', lease = %d", owner, lease.Milliseconds()))
		if rows := follow(t, open(t, file, Options{}), "r", 0); len(rows) != 2 {
			t.Errorf("held by %s: %d rows, want 2", owner, len(rows))
		}
	}
}

// Follow and Outline read no contents: they do not notice a changed one.
func TestInspectionReadsNoContents(t *testing.T) {
	file := filepath.Join(memdir.New(t), "stone.db")
	db := open(t, file, Options{})
	key := stepKey("r", 0)
	do(t, db, key)
	if err := db.Release("r"); err != nil {
		t.Fatal(err)
	}
	execute(t, file, "UPDATE records SET content = x'32' WHERE digest IS NOT NULL")
	if _, err := db.Record(t.Context(), "r", key.Path, key.Kind); !errors.As(err, new(*journal.DamageError)) {
		t.Fatalf("Record: %v, want a DamageError", err)
	}
	if rows := follow(t, db, "r", 0); len(rows) != 2 {
		t.Errorf("%d rows, want 2", len(rows))
	}
	outline, err := db.Outline(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	level, err := outline.Level(t.Context(), "p", journal.Page{})
	if err != nil || len(level.Branches) != 1 || level.Branches[0].Recorded != 1 {
		t.Errorf("Outline: %+v, %v; want one branch with a result", level, err)
	}
}

// Lookups use an index, and Follow starts at its position, however many records the run
// has.
func TestLookupsUseIndexes(t *testing.T) {
	db := open(t, "", Options{})
	for want, s := range map[string]log.Selection{
		"INDEX nodes (<expr>=? AND node>? AND node<?)": {Node: new([2]dag.ID)},
		"INDEX paths (<expr>=? AND path=?)":            {Path: "p"},
		"INTEGER PRIMARY KEY (rowid>? AND rowid<?)":    {After: 7, Steps: true, Heads: true},
		"INTEGER PRIMARY KEY (rowid=?)":                {Seq: 7},
	} {
		text, args := selecting(1, s)
		plan := planOf(t, db, text, args)
		if !slices.ContainsFunc(plan, func(line string) bool { return strings.HasSuffix(line, want) }) ||
			slices.ContainsFunc(plan, func(line string) bool { return strings.HasPrefix(line, "SCAN records") }) {
			t.Errorf("%+v: the plan is %q; want %q, and no scan of all records", s, plan, want)
		}
	}
}

// Lists use an index for whatever a query asks for, and a page of them reads few rows. Times are
// read from the index alone.
func TestListsUseIndexes(t *testing.T) {
	db := open(t, "", Options{})
	for want, s := range map[string]log.RunSelection{
		"SEARCH r USING INDEX states (state=? AND run<?)":                     {Before: 7, States: []string{"failed"}},
		"SEARCH r USING INDEX states (state=? AND run<?) ":                    {Before: 7, States: []string{"done", "failed"}},
		"SEARCH r USING INDEX states (state=?)":                               {States: []string{"", "running"}, Labels: map[string]string{"a": "b"}},
		"SEARCH l USING PRIMARY KEY (name=? AND value=? AND run<?)":           {Before: 7, Labels: map[string]string{"a": "b", "c": "d"}, States: []string{"done"}},
		"SEARCH l USING PRIMARY KEY (name=? AND value=? AND run>? AND run<?)": {Before: 7, Labels: map[string]string{"a": "b"}, Ended: 7},
		"SEARCH r USING INDEX piped (pipeline=? AND state=? AND run<?)":       {Before: 7, Pipeline: "p", States: []string{"done"}},
		"SEARCH r USING INDEX pipelines (pipeline=? AND run<?)":               {Before: 7, Pipeline: "p"},
		"SCAN r USING INDEX failures":                                         {Failed: true, Failure: "x"},
		"SEARCH r USING INDEX costs (cost>?)":                                 {Cost: 1},
		"SEARCH r USING INDEX pipelines (pipeline=? AND run>?)":               {Pipeline: "p", Started: 7},
		"SEARCH r USING COVERING INDEX ends (ended>?)":                        {Before: 7, Ended: 7, States: []string{"done", "failed", "canceled", "waiting"}},
		"SEARCH r USING COVERING INDEX starts (started>?)":                    {Before: 7, Started: 7},
		"SEARCH r USING INTEGER PRIMARY KEY (rowid<?)":                        {Before: 7},
	} {
		text, args := selectingRuns(s, 100)
		plan := planOf(t, db, text, args)
		if !slices.Contains(plan, strings.TrimSpace(want)) || slices.ContainsFunc(plan, func(line string) bool {
			return strings.HasPrefix(line, "SCAN ") && !slices.Contains([]string{"SCAN found", "SCAN s0", "SCAN s1", "SCAN r USING INDEX failures", "SCAN few", "SCAN many", "SCAN costly", "SCAN r"}, line)
		}) {
			t.Errorf("%+v: the plan is\n%s\nwant %q, and no scan", s, strings.Join(plan, "\n"), want)
		}
	}
}
