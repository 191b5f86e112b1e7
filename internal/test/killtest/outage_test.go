//go:build unix

package killtest

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/stores"
	"github.com/stonelayer/stone/internal/test/pgtest"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/postgres"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/serve/api"
)

// outageDisk has room for the log of all runs.
const outageDisk = 32 << 20

// The store is away while a server has runs under way, for less than the patience of a write, about as long, and longer. All runs
// end done, and no step is worked twice. From STONE_FAULTS=50 on, the outages last 1 to 15 s, otherwise a tenth of that.
func TestOutages(t *testing.T) {
	unit := 100 * time.Millisecond
	if percent, err := strconv.Atoi(os.Getenv("STONE_FAULTS")); err == nil && percent >= 50 {
		unit = time.Second
	}
	server := sync.OnceValue(func() *pgtest.Server { return pgtest.New(t, "fsync=off", "full_page_writes=off") })
	for _, fault := range []struct {
		name    string
		prepare func(*victim)
		begin   func(*victim) (undo func())
	}{
		{"locked", func(*victim) {}, (*victim).lock},
		{"disk full", func(v *victim) { v.disk(outageDisk) }, func(v *victim) func() { return v.fillUp(outageDisk) }},
		{"server stopped", func(v *victim) { v.on(server().Database(v)) }, func(v *victim) func() {
			if err := server().Stop(); err != nil {
				v.Fatal(err)
			}
			return func() {
				if err := server().Start(); err != nil {
					v.Error(err)
				}
			}
		}},
	} {
		t.Run(fault.name, func(t *testing.T) {
			if t.Parallel(); fault.name == "server stopped" {
				server() // of the whole test
			}
			for _, units := range []int{1, 3, 6, 15} {
				for _, step := range []time.Duration{2 * time.Millisecond, unit / 3} {
					t.Run(fmt.Sprintf("%v, steps of %v", time.Duration(units)*unit, step), func(t *testing.T) {
						v := newVictim(t)
						fault.prepare(v)
						v.outage(unit, step, func() {
							undo := fault.begin(v)
							time.Sleep(time.Duration(units) * unit)
							undo()
						})
					})
				}
			}
		})
	}
}

// outage serves runs, has the outage in their midst, and checks their ends.
func (v *victim) outage(unit, step time.Duration, outage func()) {
	const runs, steps = 6, 30
	v.Helper()
	patience, lease := 5*unit, max(5*unit, rivalLease)
	var db stores.Store
	var err error
	if v.server != "" {
		db, err = postgres.Open(v.Context(), v.server, postgres.Options{Lease: lease, Retry: patience})
	} else {
		db, err = sqlite.Open(v.database(), sqlite.Options{Lease: lease, Retry: patience})
	}
	if err != nil {
		v.Fatal(err)
	}
	var mu sync.Mutex
	worked, all := map[string]int{}, 0
	done := dag.NewType[int]("done")
	p := stone.Func0("pay", done, func(ctx context.Context) (int, error) {
		for i := range steps {
			_, err := stone.Step(ctx, fmt.Sprint("call-", i), i, func(ctx context.Context, i int) (int, error) {
				at := stone.In(ctx)
				mu.Lock()
				worked[at.RunID()+"/"+at.Path()]++
				all++
				mu.Unlock()
				time.Sleep(step)
				return i, nil
			})
			if err != nil {
				return 0, err
			}
		}
		return steps, nil
	})
	s, err := serve.New(serve.Config{Journal: db, Scan: 50 * time.Millisecond, Pipelines: []serve.Pipeline{{Name: "pay", Result: "done", Ashlar: p}}})
	if err != nil {
		v.Fatal(errors.Join(err, db.Close()))
	}
	ctx, stop := context.WithCancel(v.Context())
	var serving sync.WaitGroup
	serving.Go(func() { s.Run(ctx) })
	front := httptest.NewServer(s)
	defer func() {
		front.Close()
		stop()
		serving.Wait()
		if err := db.Close(); err != nil {
			v.Error(err)
		}
	}()
	client := &api.Client{URL: front.URL}
	for i := range runs {
		if _, err := client.Start(ctx, fmt.Sprint("run-", i), api.Start{Pipeline: "pay"}); err != nil {
			v.Fatal(err)
		}
	}
	for begun := func() bool { mu.Lock(); defer mu.Unlock(); return all >= 2*runs }; !begun(); {
		time.Sleep(time.Millisecond)
	}
	outage()
	end := time.Now().Add(still)
	for i := range runs {
		id := fmt.Sprint("run-", i)
		for ; ; time.Sleep(10 * time.Millisecond) {
			run, err := db.Find(ctx, id)
			if err == nil && run.State == journal.Done {
				break
			}
			if err == nil && run.State == journal.Failed || time.Now().After(end) {
				v.Errorf("%s is %s: %+v, %v", id, run.State, run.Failure, err)
				break
			}
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for path, n := range worked {
		if n != 1 {
			v.Errorf("%s was worked %d times", path, n)
		}
	}
	if len(worked) != runs*steps {
		v.Errorf("%d steps were worked, want %d", len(worked), runs*steps)
	}
}
