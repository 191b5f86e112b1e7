package postgres

import (
	"fmt"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/test/journaltest"
	"github.com/stonelayer/stone/internal/test/pgtest"
)

// The contents of ended runs are compressed. That readers see no difference is tested with SQLite: both share what reads.
func TestCompress(t *testing.T) {
	journaltest.TestCompress(t, func() (func() journaltest.Compressor, func([]byte)) {
		address := pgtest.Database(t)
		return func() journaltest.Compressor { return open(t, address, Options{Lease: time.Second}) }, func(content []byte) {
			pgtest.Exec(t, address, fmt.Sprintf(`UPDATE stone.records SET content = '\x%x' WHERE digest IS NOT NULL`, content))
		}
	})
}
