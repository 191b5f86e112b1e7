package sqlite

import (
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdir"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// lanes records lanes of a run, two records each.
func lanes(t *testing.T, db *DB, from, to int) {
	t.Helper()
	var group sync.WaitGroup
	for i := from; i < to; i++ {
		group.Go(func() {
			var digest dag.ID
			binary.BigEndian.PutUint64(digest[:], uint64(i))
			key := step.Key{RunID: "r", Path: fmt.Sprintf("all/each[%d]/ask", i), Kind: "step", Name: "ask", Digest: digest}
			_, err := db.Do(t.Context(), key, func(context.Context) (step.Record, error) {
				n, err := said(i)
				return step.Record{Type: "said", Content: n.Content(), Node: n}, err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// said returns the node of a lane.
func said(i int) (*dag.Node, error) { return dag.NewNode(dag.Spec{Type: "said", Content: i}) }

// wantLanes checks the outline of the run, and how many of its lanes are in blocks.
func wantLanes(t *testing.T, db *DB, n int, blocks string) {
	t.Helper()
	o, err := db.Outline(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	l, err := o.Level(t.Context(), "all/each", journal.Page{From: fmt.Sprintf("all/each[%d]", n-1), Limit: 5})
	if err != nil || l.All != n || l.Counts[journal.BranchDone] != n || len(l.Branches) != 1 || l.Branches[0].Recorded != 1 {
		t.Errorf("%+v, %v; want %d lanes that are done, and the last one", l, err, n)
	}
	var found string
	err = db.file.pool.QueryRow("SELECT CASE WHEN count(*) = 0 THEN 'none' ELSE 'some' END FROM blocks WHERE slot <> ''").Scan(&found)
	if err != nil {
		found = err.Error()
	}
	if !strings.Contains(found, blocks) {
		t.Errorf("blocks: %s, want %s", found, blocks)
	}
}

// Damaged blocks are detected, and the outline is made from the records.
func TestDamagedOutline(t *testing.T) {
	need.Time(t)
	for _, damage := range []string{
		"UPDATE blocks SET data = x'01' WHERE slot = ''",
		"UPDATE blocks SET counts = x'0101010101' WHERE slot <> ''",
		"UPDATE blocks SET data = substr(data, 1, 40)",
		"DELETE FROM blocks WHERE slot <> ''",
	} {
		file := filepath.Join(memdir.New(t), "stone.db")
		db := open(t, file, Options{})
		lanes(t, db, 0, 4500)
		execute(t, file, damage)
		wantLanes(t, db, 4500, "")
		lanes(t, db, 4500, 9100)
		wantLanes(t, db, 9100, "")
	}
}

// planOf returns how SQLite executes a query.
func planOf(t *testing.T, db *DB, text string, args []any) (all []string) {
	t.Helper()
	rows, err := db.file.pool.Query("EXPLAIN QUERY PLAN "+text, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var a, b, c int
		var line string
		if err := rows.Scan(&a, &b, &c, &line); err != nil {
			t.Fatal(err)
		}
		all = append(all, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
