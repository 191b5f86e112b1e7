package postgres

import (
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/test/journaltest"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/internal/test/pgtest"
	"github.com/stonelayer/stone/journal"
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
	need.Time(t)
	store := func(opts Options) func() func() journal.Journal {
		return func() func() journal.Journal {
			address := pgtest.Database(t)
			return func() journal.Journal { return open(t, address, opts) }
		}
	}
	journaltest.TestJournal(t, store(Options{Lease: time.Second}))
	t.Run("readers", func(t *testing.T) { // whose server is slow on a busy machine
		journaltest.TestReaders(t, store(Options{Lease: time.Second, Retry: time.Minute}))
	})
}

// A damaged run hides no other and can be removed.
func TestDamage(t *testing.T) {
	const record = " AND run = (SELECT run FROM stone.runs WHERE id = 'run')"
	journaltest.TestDamage(t, func() (func() journal.Journal, func(string)) {
		address := pgtest.Database(t)
		return func() journal.Journal { return open(t, address, Options{Lease: time.Second}) }, func(statement string) { pgtest.Exec(t, address, statement) }
	}, map[string]string{
		"content":        "UPDATE stone.records SET content = '2' WHERE digest IS NOT NULL" + record,
		"lost":           "DELETE FROM stone.records WHERE true" + record,
		"question":       "UPDATE stone.questions SET question = replace(question, 'yes', 'not'), open = true WHERE true" + record,
		"facts: info":    "UPDATE stone.runs SET info = replace(info, 'name', 'nome') WHERE id = 'run'",
		"facts: outcome": "UPDATE stone.runs SET outcome = replace(outcome, '7', '8') WHERE id = 'run'",
	}, func(name string) bool { return strings.HasPrefix(name, "facts") })
}
