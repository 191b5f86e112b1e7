package sqlite

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/test/memdir"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/step"
)

// TestReadAhead resumes a run of 40 MB. In whatever order callers ask for its steps, they find all
// of them, and most are not in memory.
func TestReadAhead(t *testing.T) {
	need.Time(t)
	const n, callers = 3000, 8
	file := filepath.Join(memdir.New(t), "stone.db")
	content := func(i int) string { return fmt.Sprintf("%q", fmt.Sprint(i, strings.Repeat(" lorem ipsum", 680))) }
	ask := func(db *DB, order []int, work func(i int) (step.Record, error)) {
		t.Helper()
		var next atomic.Int64
		var group sync.WaitGroup
		for range callers {
			group.Go(func() {
				for at := int(next.Add(1)) - 1; at < len(order); at = int(next.Add(1)) - 1 {
					i := order[at]
					rec, err := db.Do(context.Background(), benchKey(i), func(context.Context) (step.Record, error) { return work(i) })
					if err != nil || string(rec.Content) != content(i) {
						t.Errorf("step %d: %.20s, %v", i, rec.Content, err)
						return
					}
				}
			})
		}
		group.Wait()
	}
	forth, back := make([]int, n), make([]int, n)
	for i := range n {
		forth[i], back[n-1-i] = i, i
	}
	db := open(t, file, Options{})
	ask(db, forth, func(i int) (step.Record, error) {
		return step.Record{Content: []byte(content(i)), Time: time.Unix(1_800_000_000, 0)}, nil
	})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for name, order := range map[string][]int{"as recorded": forth, "backwards": back, "at random": rand.Perm(n), "the last one": {n - 1}} {
		t.Run(name, func(t *testing.T) {
			before := used()
			db := open(t, file, Options{})
			defer db.Close()
			ask(db, order, func(int) (step.Record, error) { return step.Record{}, errors.New("the step is repeated") })
			if after := used(); after > before+16<<20 {
				t.Errorf("%d MB are in memory", (after-before)>>20)
			}
		})
	}
}

// used returns the size of the heap after a collection.
func used() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
