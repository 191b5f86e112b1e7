package remote_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/executortest"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/remote"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/step"
)

// pool is a carrier with workers in this process.
type pool struct {
	ctx     context.Context
	workers []*remote.Worker
	sent    atomic.Int64
	turn    atomic.Int64
	wait    sync.WaitGroup

	mu      sync.Mutex
	running map[remote.Work]context.CancelFunc
}

func newPool(t *testing.T, workers ...*remote.Worker) *pool {
	p := &pool{ctx: t.Context(), workers: workers, running: map[remote.Work]context.CancelFunc{}}
	t.Cleanup(p.wait.Wait)
	return p
}

func (p *pool) Send(_ context.Context, _ string, work remote.Work) error {
	p.sent.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.running[work] != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(p.ctx)
	p.running[work] = cancel
	p.wait.Go(func() {
		defer func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.running, work)
			cancel()
		}()
		for range 10 { // as a queue delivers again
			w := p.workers[int(p.turn.Add(1))%len(p.workers)]
			if err := w.Do(ctx, work); !errors.Is(err, remote.ErrOther) || ctx.Err() != nil {
				return
			}
		}
		_ = p.workers[0].GiveBack(ctx, work)
	})
	return nil
}

func (p *pool) Cancel(_ context.Context, work remote.Work) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if cancel := p.running[work]; cancel != nil {
		cancel()
	}
	return nil
}

func TestTrees(t *testing.T) {
	trees := uint64(200)
	if testing.Short() {
		trees = 40
	}
	for name, batch := range map[string]int{"single": 1, "batches": 50} {
		t.Run(name, func(t *testing.T) {
			executortest.TestKept(t, trees, func(t *testing.T, seed uint64) (journal.Journal, step.Executor) {
				j := new(journal.Memory)
				p := executortest.Tree(seed)
				c := newPool(t, &remote.Worker{Journal: j, Pipelines: []stone.Ashlar{p}}, &remote.Worker{Journal: j, Pipelines: []stone.Ashlar{p}})
				return j, remote.New(remote.Config{Journal: j, Carrier: c, Routes: []remote.Route{{Pool: "p", Batch: batch}}})
			})
		})
	}
}

// Two journals over one file, as in two processes.
func TestTreesInFile(t *testing.T) {
	holder, worker := open(t, filepath.Join(t.TempDir(), "s.db"))
	executortest.TestKept(t, 3, func(t *testing.T, seed uint64) (journal.Journal, step.Executor) {
		c := newPool(t, &remote.Worker{Journal: worker, Pipelines: []stone.Ashlar{executortest.Tree(seed)}})
		return holder, remote.New(remote.Config{Journal: holder, Carrier: c, Routes: []remote.Route{{Pool: "p"}}})
	})
}

func open(t *testing.T, name string) (holder, worker journal.Journal) {
	for _, to := range []*journal.Journal{&holder, &worker} {
		db, err := sqlite.Open(name, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
		*to = db
	}
	return holder, worker
}
