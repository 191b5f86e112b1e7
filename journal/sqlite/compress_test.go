package sqlite

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/test/journaltest"
	"github.com/stonelayer/stone/internal/test/memdir"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/internal/log"
)

// A journal that compresses every content of a run as soon as it ends is like any other.
func TestCompressed(t *testing.T) {
	before := log.Worth
	log.Worth = func(int, int) bool { return true }
	t.Cleanup(func() { log.Worth = before })
	journaltest.TestJournal(t, func() func() journal.Journal {
		file := filepath.Join(memdir.New(t), "stone.db")
		return func() journal.Journal {
			return journaltest.Compressing{Compressor: open(t, file, Options{Lease: time.Second})}
		}
	})
}

func TestCompress(t *testing.T) {
	journaltest.TestCompress(t, func() (func() journaltest.Compressor, func([]byte)) {
		file := filepath.Join(memdir.New(t), "stone.db")
		return func() journaltest.Compressor { return open(t, file, Options{Lease: time.Second}) }, func(content []byte) {
			execute(t, file, fmt.Sprintf("UPDATE records SET content = x'%x' WHERE digest IS NOT NULL", content))
		}
	})
}
