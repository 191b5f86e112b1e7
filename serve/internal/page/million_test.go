package page_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/test/cputime"
	"github.com/stonelayer/stone/internal/test/pgtest"
	"github.com/stonelayer/stone/internal/test/year"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/postgres"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/serve/internal/page"
)

// million is how many steps the run of BenchmarkPages has; STONE_STEPS changes it.
const million = 1_000_000

// BenchmarkPages opens pages of a run with a fan-out of a million lanes. The first
// opening has a new connection to the journal. STONE_PAGES_DB names a file that is made
// once and kept.
func BenchmarkPages(b *testing.B) {
	steps := million
	if text := os.Getenv("STONE_STEPS"); text != "" {
		var err error
		if steps, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	for name, open := range map[string]func(*testing.B) func() journal.Journal{"sqlite": inFile, "postgres": inServer} {
		b.Run(name, func(b *testing.B) {
			open := open(b)
			if err := year.Steps(b.Context(), open(), "million", steps, 0); err != nil {
				b.Fatal(err)
			}
			for _, p := range []string{"?", "?at=fan/things", "?at=fan/things&from=fan/things[500000]", "?at=fan/things&only=failed", "?at=fan/things[777]", "?view=graph", "/step?path=fan/things[777]/measure"} {
				for _, when := range []string{"first", "again"} {
					b.Run(when+" "+p, func(b *testing.B) {
						j := open()
						for b.Loop() {
							if when == "first" {
								b.StopTimer()
								j = open()
								b.StartTimer()
							}
							used := cputime.Used()
							show(b, j, p)
							b.ReportMetric((cputime.Used() - used).Seconds(), "cpu-s/op")
						}
					})
				}
			}
		})
	}
}

func inFile(b *testing.B) func() journal.Journal {
	file := os.Getenv("STONE_PAGES_DB")
	if file == "" {
		file = filepath.Join(b.TempDir(), "stone.db")
	}
	return func() journal.Journal {
		db, err := sqlite.Open(file, sqlite.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { db.Close() })
		return db
	}
}

func inServer(b *testing.B) func() journal.Journal {
	address := pgtest.Database(b)
	return func() journal.Journal {
		db, err := postgres.Open(b.Context(), address, postgres.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { db.Close() })
		return db
	}
}

// show gets a page of the run.
func show(b *testing.B, j journal.Journal, at string) {
	pages := page.Handler(page.Config{View: func(*http.Request) page.View { return page.View{Journal: j} }, API: "/v1"})
	w := httptest.NewRecorder()
	pages.ServeHTTP(w, httptest.NewRequest("GET", "/runs/million"+strings.NewReplacer("[", "%5B", "]", "%5D").Replace(at), nil))
	text, err := io.ReadAll(w.Body)
	if elements := strings.Count(string(text), "<") - strings.Count(string(text), "</"); err != nil || w.Code != 200 || elements > 2000 {
		b.Fatalf("%s: status %d, %d elements, %v\n%.300s", at, w.Code, elements, err, text)
	}
}
