// Package memdb provides journals for tests whose records are not needed after the test.
package memdb

import "github.com/stonelayer/stone/journal/sqlite"

// A T is a testing.TB, or a *rapid.T.
type T interface {
	Helper()
	Fatal(args ...any)
	Error(args ...any)
	Cleanup(f func())
}

// New returns an empty journal, which is closed after the test.
func New(t T) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(sqlite.Memory, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}
