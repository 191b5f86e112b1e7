package postgres

import (
	"fmt"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/test/pgtest"
	"github.com/stonelayer/stone/internal/test/year"
)

// BenchmarkYear is the same benchmark as for SQLite. It measures the CPU time of this process; the time of the server is in ns/op.
func BenchmarkYear(b *testing.B) {
	for _, n := range year.Sizes() {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			address := pgtest.New(b).Database(b)
			db := open(b, address, Options{Lease: time.Minute})
			if err := year.Fill(b.Context(), db, n); err != nil {
				b.Fatal(err)
			}
			pgtest.Exec(b, address, "VACUUM ANALYZE")
			year.Bench(b, db, n)
		})
	}
}
