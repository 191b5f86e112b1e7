package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdir"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// downgrade makes a file of an older version of one of this version.
func downgrade(t *testing.T, file string, to int) {
	t.Helper()
	execute(t, file, `CREATE TABLE old (
			run INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, owner TEXT NOT NULL, beat INTEGER NOT NULL, lease INTEGER NOT NULL,
			outside TEXT NOT NULL DEFAULT '', rows INTEGER NOT NULL DEFAULT 0, state TEXT NOT NULL DEFAULT '',
			tail INTEGER NOT NULL DEFAULT 0, tip INTEGER NOT NULL DEFAULT 0, seal BLOB, info TEXT, outcome TEXT, shape TEXT) STRICT;
		INSERT INTO old SELECT run, id, owner, beat, lease, outside, rows, state, tail, tip, seal, info, outcome, shape FROM runs;
		DROP TABLE runs; ALTER TABLE old RENAME TO runs; DROP TABLE labels; DROP TABLE spending; DROP TABLE holds; DROP TABLE rates;
		CREATE INDEX unfinished ON runs (run) WHERE state NOT IN ('done', 'failed', 'canceled'); PRAGMA user_version = 4`)
	if to == 3 {
		execute(t, file, "DROP TABLE blocks; DROP INDEX unfinished; DROP INDEX nodes; CREATE INDEX nodes ON records (node) WHERE node IS NOT NULL; PRAGMA user_version = 3")
	}
}

// A file of version 3 has no outlines. It is upgraded when it is opened, and then its large runs
// get outlines.
func TestVersion3(t *testing.T) {
	file := filepath.Join(memdir.New(t), "stone.db")
	db := open(t, file, Options{})
	lanes(t, db, 0, 4500)
	wantLanes(t, db, 4500, "some")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	downgrade(t, file, 3)
	db = open(t, file, Options{})
	wantLanes(t, db, 4500, "none")
	wantNodes(t, db, 4500)
	lanes(t, db, 4500, 4501)
	wantLanes(t, db, 4501, "some")
	wantNodes(t, db, 4501)
	if runs, err := db.Runs(t.Context(), journal.Query{States: []journal.State{journal.Running}}); err != nil || len(runs) != 1 {
		t.Errorf("%d running runs, %v; want 1", len(runs), err)
	}
}

// A file of version 4 is upgraded once, by several processes that open it at once. Its runs are then
// found by all that a query asks for, and a damaged one among them does no harm.
func TestVersion4(t *testing.T) {
	file := filepath.Join(memdir.New(t), "stone.db")
	db := open(t, file, Options{})
	started := time.Date(2026, 3, 4, 5, 6, 7, 891_234_567, time.FixedZone("", -5400))
	for _, id := range []string{"one", "damaged", "last"} {
		_, err := db.Acquire(t.Context(), id)
		info := journal.RunInfo{ID: id, Pipeline: "p-" + id, Started: started, Labels: map[string]string{"team": "a", "name": id}}
		if err := errors.Join(err, db.Begin(t.Context(), info, dag.DAG{}), db.End(t.Context(), id, journal.Outcome{State: journal.Done, Ended: started.Add(time.Hour)}), db.Release(id)); err != nil {
			t.Fatal(err)
		}
	}
	last := rowOf(t, db, "last")
	if err := errors.Join(db.Close()); err != nil {
		t.Fatal(err)
	}
	downgrade(t, file, 4)
	execute(t, file, "UPDATE runs SET info = '{' WHERE id = 'damaged'")
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			db, err := Open(file, Options{})
			if err != nil {
				t.Error(err)
				return
			}
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	db = open(t, file, Options{})
	for want, q := range map[string]journal.Query{
		"last":              {Pipeline: "p-last"},
		"one":               {Labels: map[string]string{"team": "a", "name": "one"}},
		"last one":          {Labels: map[string]string{"team": "a"}, Since: started, Ended: started.Add(time.Hour)},
		"last one ":         {Since: started},
		"last damaged one ": {Ended: started.Add(time.Hour), Until: started.Add(1)},
		"":                  {Until: started, Pipeline: "p-one"},
		" ":                 {Ended: started.Add(time.Hour + 1), Pipeline: "p-one"},
		"last damaged one":  {Limit: 3},
	} {
		runs, err := db.Runs(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, r := range runs {
			ids = append(ids, r.ID)
		}
		if got := strings.Join(ids, " "); got != strings.TrimSpace(want) {
			t.Errorf("Runs(%+v) = %q, want %q", q, got, want)
		}
	}
	if err := db.Remove(t.Context(), "last"); err != nil {
		t.Fatal(err)
	}
	do(t, db, stepKey("next", 1))
	if next := rowOf(t, db, "next"); next <= last {
		t.Errorf("after run %d was removed, the next one is %d: want a new number", last, next)
	}
}

func rowOf(t *testing.T, db *DB, id string) int64 {
	t.Helper()
	r, err := db.file.Run(t.Context(), id)
	if err != nil || r == nil {
		t.Fatalf("run %s: %v", id, err)
	}
	return r.Row
}

// An old file that cannot be written is refused in words.
func TestOldFileReadOnly(t *testing.T) {
	const inside = "STONE_TEST_WITHOUT_OVERRIDE"
	if os.Geteuid() == 0 && os.Getenv(inside) == "" { // root may write everything, but for this capability
		cmd := exec.CommandContext(t.Context(), need.Program(t, "setpriv"), "--bounding-set=-dac_override,-dac_read_search", os.Args[0], "-test.run=^TestOldFileReadOnly$", "-test.v")
		cmd.Env = append(os.Environ(), inside+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS")) {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	dir := memdir.New(t)
	file := filepath.Join(dir, "stone.db")
	db := open(t, file, Options{})
	do(t, db, stepKey("r", 1))
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	downgrade(t, file, 4)
	if err := errors.Join(os.Chmod(file, 0o400), os.Chmod(dir, 0o500)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	_, err := Open(file, Options{})
	wantError(t, err, fmt.Sprintf("has schema 4, this program needs %d and cannot upgrade it: ", version), "cannot be written: check the permissions")
}

// before7 takes back what version 7 has added.
const before7 = `DROP TABLE holds; DROP TABLE rates;
	ALTER TABLE spending DROP COLUMN tokens; ALTER TABLE spending DROP COLUMN roundtrips;
	ALTER TABLE spending DROP COLUMN held_usd; ALTER TABLE spending DROP COLUMN held_tokens; ALTER TABLE spending DROP COLUMN held_roundtrips; `

// A file of version 6 keeps what was spent, and programs of that version add to it.
func TestVersion6(t *testing.T) {
	file := filepath.Join(memdir.New(t), "stone.db")
	db := open(t, file, Options{})
	do(t, db, step.Key{RunID: "old", Path: "p", Kind: "step", Name: "p"})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	today := time.Now()
	ada := budget.Shared{Name: "ada", Per: budget.Day, Payer: true}
	_, day := ada.Key(today)
	spend := fmt.Sprintf("INSERT INTO spending (account, day, usd) VALUES ('ada', %d, 2) ON CONFLICT DO UPDATE SET usd = usd + excluded.usd", day)
	execute(t, file, before7+"PRAGMA user_version = 6; "+spend)
	db = open(t, file, Options{})
	do(t, db, step.Key{RunID: "new", Path: "p", Kind: "step", Name: "p"}) // the first write upgrades
	execute(t, file, spend)
	if b, err := db.Balance(t.Context(), ada, today); err != nil || b.Used != (budget.Amount{USD: 4}) {
		t.Errorf("%+v, %v; want 4 USD", b, err)
	}
}

// A file of version 5 gets costs and failures as columns, which stay correct while a program of version 5 writes.
func TestVersion5(t *testing.T) {
	file := filepath.Join(memdir.New(t), "stone.db")
	db := open(t, file, Options{})
	for _, id := range []string{"before", "since", "damaged", "fine"} {
		_, err := db.Acquire(t.Context(), id)
		out := journal.Outcome{State: journal.Failed, Failure: &journal.Failure{Kind: "http", Path: "ask", Reason: "The Xylophone \"broke\""}, Usage: budget.Total{Usage: budget.Usage{USD: 7}}}
		if id == "fine" {
			out = journal.Outcome{State: journal.Done}
		}
		if err := errors.Join(err, db.Begin(t.Context(), journal.RunInfo{ID: id}, dag.DAG{}), db.End(t.Context(), id, out), db.Release(id)); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, file, `CREATE TABLE kept AS SELECT outcome, seal FROM runs WHERE id = 'since'; UPDATE runs SET outcome = NULL WHERE id = 'since';
		UPDATE runs SET outcome = '{' WHERE id = 'damaged';
		DROP INDEX costs; DROP INDEX failures; DROP INDEX piped; ALTER TABLE runs DROP COLUMN cost; ALTER TABLE runs DROP COLUMN failure; `+before7+`PRAGMA user_version = 5`)
	db = open(t, file, Options{})
	do(t, db, step.Key{RunID: "new", Path: "p", Kind: "step", Name: "p"}) // the first write upgrades
	execute(t, file, "UPDATE runs SET outcome = (SELECT outcome FROM kept) WHERE id = 'since'")
	for _, q := range []journal.Query{{Text: "XYLOPHONE \"b"}, {Text: "http ask the"}, {MinCost: 6}, {Text: "x", MinCost: 6}, {States: []journal.State{journal.Failed}, Text: "xylo"}} {
		runs, err := db.Runs(t.Context(), q)
		var found []string
		for _, r := range runs {
			found = append(found, r.ID)
		}
		if err != nil || strings.Join(found, " ") != "since before" {
			t.Errorf("%+v finds %v, %v", q, found, err)
		}
	}
}
