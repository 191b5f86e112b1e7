package cli

import (
	"path/filepath"
	"testing"

	"github.com/stonelayer/stone/internal/test/year"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
)

// Another process may remove the run with which a page ends before the next page is read: no other run is left out, and none
// comes twice.
func TestEachBesideRemoval(t *testing.T) {
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "stone.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const n = 2400
	if err := year.Fill(t.Context(), db, n); err != nil {
		t.Fatal(err)
	}
	all, err := db.Runs(t.Context(), journal.Query{Limit: n})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for r, err := range (&store{Store: db}).each(t.Context(), journal.Query{}) {
		if err != nil {
			t.Fatal(err)
		}
		if seen[r.ID]++; len(seen) == 1 {
			for _, gone := range []journal.RunInfo{all[1997], all[1999]} {
				if err := db.Remove(t.Context(), gone.ID); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for id, times := range seen {
		if times != 1 {
			t.Errorf("%s came %d times", id, times)
		}
	}
	if len(seen) != n { // both had been read
		t.Errorf("%d runs, want %d", len(seen), n)
	}
}
