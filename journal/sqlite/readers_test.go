package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/test/journaltest"
	"github.com/stonelayer/stone/internal/test/memdir"
	"github.com/stonelayer/stone/journal"
)

// Two connections suffice for any number of readers: none of them has one while it works.
func TestTwoConnections(t *testing.T) {
	before := readers
	readers = 2
	t.Cleanup(func() { readers = before })
	journaltest.TestReaders(t, func() func() journal.Journal {
		file := filepath.Join(memdir.New(t), "stone.db")
		return func() journal.Journal { return open(t, file, Options{Lease: time.Second}) }
	})
}
