package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/test/journaltest"
	"github.com/stonelayer/stone/internal/test/memdir"
	"github.com/stonelayer/stone/journal"
)

// open opens a database that is closed when the test ends. Without a file it is
// a new one.
func open(t testing.TB, file string, opts Options) *DB {
	t.Helper()
	if file == "" {
		file = filepath.Join(memdir.New(t), "stone ?%.db") // characters of a URI
	}
	db, err := Open(file, opts)
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
		file := filepath.Join(memdir.New(t), "stone.db")
		return func() journal.Journal { return open(t, file, Options{Lease: time.Second}) }
	})
}
