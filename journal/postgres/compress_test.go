package postgres

import (
	"fmt"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/need"
	"github.com/stonelayer/stone/internal/pgtest"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/internal/log"
	"github.com/stonelayer/stone/journal/journaltest"
)

// A journal that compresses every content of a run as soon as it ends is like any other.
func TestCompressed(t *testing.T) {
	need.Time(t)
	before := log.Worth
	log.Worth = func(int, int) bool { return true }
	t.Cleanup(func() { log.Worth = before })
	journaltest.TestJournal(t, func() func() journal.Journal {
		address := pgtest.Database(t)
		return func() journal.Journal {
			return journaltest.Compressing{Compressor: open(t, address, Options{Lease: time.Second})}
		}
	})
}

func TestCompress(t *testing.T) {
	journaltest.TestCompress(t, func() (func() journaltest.Compressor, func([]byte)) {
		address := pgtest.Database(t)
		return func() journaltest.Compressor { return open(t, address, Options{Lease: time.Second}) }, func(content []byte) {
			pgtest.Exec(t, address, fmt.Sprintf(`UPDATE stone.records SET content = '\x%x' WHERE digest IS NOT NULL`, content))
		}
	})
}
