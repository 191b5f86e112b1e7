package sqlite

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stonelayer/stone/internal/test/year"
)

// BenchmarkYear reads journals of different sizes: what a list, a filter or a search costs shall not depend on the size.
func BenchmarkYear(b *testing.B) {
	for _, n := range year.Sizes() {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			db := open(b, filepath.Join(b.TempDir(), "stone.db"), Options{})
			if err := year.Fill(b.Context(), db, n); err != nil {
				b.Fatal(err)
			}
			year.Bench(b, db, n)
		})
	}
}
