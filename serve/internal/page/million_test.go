package page_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/cputime"
	"github.com/stonelayer/stone/internal/pgtest"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/postgres"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/serve/internal/page"
	"github.com/stonelayer/stone/step"
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
			record(b, open(), steps)
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

// record records a run with so many lanes, of which one in a thousand fails, unless the
// journal has it.
func record(b *testing.B, j journal.Journal, steps int) {
	ctx := context.Background()
	if _, err := j.Find(ctx, "million"); err == nil {
		return
	}
	info := journal.RunInfo{ID: "million", Pipeline: "fan", Started: time.Now(), Shape: []journal.Part{
		{Path: "fan", Form: "seq"}, {Path: "fan/things", Form: "map"}, {Path: "fan/things/measure", Form: "leaf"},
	}}
	if _, err := j.Acquire(ctx, info.ID); err != nil {
		b.Fatal(err)
	}
	if err := j.Begin(ctx, info, dag.DAG{}); err != nil {
		b.Fatal(err)
	}
	var next atomic.Int64
	var group sync.WaitGroup
	started := time.Now()
	for range 64 {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < steps; i = int(next.Add(1)) - 1 {
				var number [8]byte
				binary.BigEndian.PutUint64(number[:], uint64(i))
				key := step.Key{RunID: info.ID, Path: fmt.Sprintf("fan/things[%d]/measure", i), Kind: "leaf", Name: "measure", Digest: sha256.Sum256(number[:])}
				_, err := j.Do(ctx, key, func(context.Context) (step.Record, error) { return measured(i) })
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	b.Logf("%d steps recorded in %v", steps, time.Since(started).Round(time.Second))
	outcome := journal.Outcome{State: journal.Done, Ended: time.Now(), Steps: steps}
	if err := errors.Join(j.End(ctx, info.ID, outcome), j.Release(info.ID)); err != nil {
		b.Fatal(err)
	}
}

func measured(i int) (step.Record, error) {
	now := time.Unix(1_800_000_000, 0)
	if i%1000 == 999 {
		return step.Record{Failure: &dag.FailureContent{Kind: "unreadable", Reason: fmt.Sprintf("thing %d cannot be measured", i)}, Time: now}, nil
	}
	n, err := dag.NewNode(dag.Spec{Type: "measure", Content: strings.Repeat(strconv.Itoa(i), 20), Time: now})
	if err != nil {
		return step.Record{}, err
	}
	return step.Record{Node: n, Type: n.Type(), Content: n.Content(), Time: now}, nil
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
