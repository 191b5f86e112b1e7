package sqlite

import (
	"context"
	"errors"
	"io"
	"iter"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stonelayer/stone/internal/export"
	"github.com/stonelayer/stone/internal/test/memdir"
	"github.com/stonelayer/stone/internal/test/year"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/internal/log"
)

// What reads a run one by one keeps few bytes a step: a list of the steps keeps 600.
func TestBounded(t *testing.T) {
	before := log.Small
	log.Small = 100
	t.Cleanup(func() { log.Small = before })
	db := open(t, filepath.Join(memdir.New(t), "stone.db"), Options{})
	sizes := map[string]int{"small": 1500, "large": 4500}
	for run, n := range sizes {
		for as, every := range map[string]int{"": 0, " again": 500} {
			if err := year.Steps(t.Context(), db, run+as, n, every); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, read := range map[string]func(run string, at func(n int)) error{
		"steps": func(run string, at func(int)) error { return ranged(counted(db.EachStep(t.Context(), run), at)) },
		"nodes": func(run string, at func(int)) error { return ranged(counted(db.EachNode(t.Context(), run), at)) },
		"trace": func(run string, at func(int)) error {
			return export.Chrome(io.Discard, journal.RunInfo{ID: run}, counted(db.EachStep(t.Context(), run), at))
		},
		"equal runs": func(run string, at func(int)) error {
			_, err := journal.Diff(t.Context(), watched{db, at}, run, run)
			return err
		},
		"unequal runs": func(run string, at func(int)) error {
			_, err := journal.Diff(t.Context(), watched{db, at}, run, run+" again")
			return err
		},
	} {
		live := map[string]int64{}
		for run, n := range sizes {
			err := read(run, func(i int) {
				if i == n*9/10 {
					live[run] = max(live[run], inUse())
				}
			})
			if err != nil || live[run] == 0 {
				t.Fatalf("%s of run %s: %v, %d bytes", name, run, err, live[run])
			}
		}
		if each := float64(live["large"]-live["small"]) / 3000; each > 100 {
			t.Errorf("%s: %.0f bytes a step stay in memory, want at most 100", name, each)
		}
	}
	found, err := journal.Diff(t.Context(), db, "large", "large again")
	if err != nil || len(found) != 9 || found[1].Path != "fan/things[500]/measure" {
		t.Errorf("%d differences, %v: %+v", len(found), err, found)
	}
}

// watched calls at while Diff reads.
type watched struct {
	journal.Journal
	at func(n int)
}

func (w watched) EachStep(ctx context.Context, run string) iter.Seq2[journal.Step, error] {
	return counted(w.Journal.EachStep(ctx, run), w.at)
}

func (w watched) EachNode(ctx context.Context, run string) iter.Seq2[journal.NodeInfo, error] {
	return counted(w.Journal.EachNode(ctx, run), w.at)
}

func inUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func ranged[T any](all iter.Seq2[T, error]) (err error) {
	for _, e := range all {
		err = errors.Join(err, e)
	}
	return err
}

func counted[T any](all iter.Seq2[T, error], at func(n int)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		n := 0
		for one, err := range all {
			if n++; n%50 == 0 {
				at(n)
			}
			if !yield(one, err) {
				return
			}
		}
	}
}
