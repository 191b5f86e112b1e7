package postgres

import (
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/pgtest"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/journaltest"
)

// open opens a database that is closed when the test ends. Without an address it is a new
// one.
func open(t testing.TB, address string, opts Options) *DB {
	t.Helper()
	if address == "" {
		address = pgtest.Database(t)
	}
	db, err := Open(t.Context(), address, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return db
}

func TestDB(t *testing.T) {
	journaltest.TestJournal(t, func() func() journal.Journal {
		address := pgtest.Database(t)
		return func() journal.Journal { return open(t, address, Options{Lease: time.Second}) }
	})
}
