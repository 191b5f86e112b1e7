package remote

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/record"
	"github.com/stonelayer/stone/internal/runvalue"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/limit"
	"github.com/stonelayer/stone/step"
)

// A Carrier tells workers what to do. Its methods are called by several goroutines at once.
type Carrier interface {
	// Send has a worker of the pool do the work. It is called again until the results are
	// there, and does nothing while a worker has the work already. The executor retries
	// after an error.
	Send(ctx context.Context, pool string, work Work) error
	// Cancel stops the work, if that is possible: nobody waits for it.
	Cancel(ctx context.Context, work Work) error
}

// A Route sends leaves to a pool of workers.
type Route struct {
	Leaf  string // name of the leaves, or empty for every leaf
	Pool  string // empty keeps the leaves in the process of the run
	Batch int    // at most so many leaves that are ready go out together; 1 if zero, 500 at most
}

// Config configures an executor.
type Config struct {
	Journal journal.Journal // of the run
	Carrier Carrier
	// Routes are tried in order; a leaf that no route names stays in the process of the run.
	// Where a leaf runs is not part of a pipeline, and does not change its fingerprint.
	Routes []Route
	// Window is how much work is out at once for all runs, a batch counting as one: as many
	// as the workers can do at once. The work of a run waits with its limit.Rank. It is 64 if zero.
	Window int
	// Again is how long the executor waits for a result before it sends the work once more;
	// 30 s if zero.
	Again time.Duration
	// Patience is how long the carrier may fail without interruption before the run ends with
	// an error; an hour if zero. The run can then be resumed.
	Patience time.Duration
}

// maxBatch is the largest Route.Batch.
const maxBatch = 500

// An Executor is a step.Executor that sends leaves to workers. One Executor may serve any
// number of runs.
type Executor struct {
	cfg   Config
	slots *limit.Limiter
	lanes atomic.Int64 // goroutines of fan-outs
}

// New returns an executor.
func New(cfg Config) *Executor {
	cfg.Window = cmp.Or(cfg.Window, 64)
	cfg.Again, cfg.Patience = cmp.Or(cfg.Again, 30*time.Second), cmp.Or(cfg.Patience, time.Hour)
	return &Executor{cfg: cfg, slots: limit.New(limit.Limits{Concurrency: cfg.Window})}
}

// Leaf implements [step.Executor].
func (e *Executor) Leaf(t step.Task, d dag.DAG) dag.DAG {
	return t.DoBy(d, e.perform)
}

// Decide implements [step.Executor].
func (e *Executor) Decide(t step.Task, d dag.DAG) (any, error) { return t.Decide(d) }

// maxLanes bounds the goroutines of all fan-outs.
const maxLanes = 4096

// Fan implements [step.Executor]. The goroutine that fans out works too, so that nested
// fan-outs never wait for each other.
func (e *Executor) Fan(t step.Task, n int, lane func(context.Context, int)) {
	var next atomic.Int64
	var wait sync.WaitGroup
	work := func() {
		for i := next.Add(1) - 1; i < int64(n) && t.Err() == nil; i = next.Add(1) - 1 {
			lane(t.Context(), int(i))
		}
	}
	defer wait.Wait()
	for range min(n, t.Lanes()) - 1 {
		if e.lanes.Add(1) > maxLanes {
			e.lanes.Add(-1)
			break
		}
		wait.Go(func() {
			defer e.lanes.Add(-1)
			work()
		})
	}
	work()
}

// route returns the route of a leaf, or nil.
func (e *Executor) route(leaf string) *Route {
	for i, r := range e.cfg.Routes {
		if r.Leaf == "" || r.Leaf == leaf {
			if r.Pool == "" {
				return nil
			}
			return &e.cfg.Routes[i]
		}
	}
	return nil
}

// perform has a worker do the leaf.
func (e *Executor) perform(ctx context.Context, o step.Order) (step.Record, error) {
	route := e.route(o.Key.Name)
	d := runvalue.Of(ctx, e, func() *desk { return newDesk(e, o.Key.RunID) })
	if route == nil {
		if inherited, err := d.inherited(ctx); err != nil || !inherited {
			return step.Record{}, cmp.Or(err, step.ErrLocal)
		}
	}
	if err := context.Cause(d.held); err != nil {
		return step.Record{}, err
	}
	if err := d.recall(ctx); err != nil {
		return step.Record{}, err
	}
	leaf := leafOf(o.Key)
	found, err := d.history(ctx, leaf)
	if err != nil {
		return step.Record{}, err
	}
	s := newSlice(ctx, found)
	p := &pending{order: o, leaf: leaf, route: route, slice: s}
	local := d.anew(o.Key.Path) || route == nil && found.result == nil
	if !local && found.result == nil {
		if local, err = d.stays(ctx, o.Key); err != nil {
			return step.Record{}, err
		}
	}
	if local {
		return step.Record{}, d.home(ctx, p, nil)
	}
	for got := found.result; ; got = nil {
		if got == nil {
			if s.need != (budget.Quote{}) {
				if err := s.more(ctx); err != nil {
					return step.Record{}, d.home(ctx, p, err)
				}
			}
			p = &pending{order: o, leaf: leaf, route: route, rank: limit.RankOf(ctx), slice: s, done: make(chan outcome, 1)}
			out, err := d.do(ctx, p)
			if err != nil {
				return step.Record{}, d.drop(ctx, p, err)
			}
			got = &out
		}
		if got.More != nil || got.Record != nil {
			bound, err := d.bound(ctx, p, got)
			if err == nil && !bound {
				return step.Record{}, d.home(ctx, p, nil)
			}
			if err == nil {
				got.Spent, err = d.spent(ctx, leaf, got.Spent, s.charged)
			}
			if err != nil {
				return step.Record{}, d.drop(ctx, p, err)
			}
		}
		switch {
		case got.More != nil && route != nil:
			s.settle(got.Spent)
			s.need = *got.More
		case got.Record == nil:
			return step.Record{}, d.home(ctx, p, nil)
		default:
			s.settle(got.Spent)
			for _, n := range got.Notices {
				event.At(ctx).Send(n)
			}
			return *got.Record, d.bring(ctx, o.Key, got.Steps)
		}
	}
}

// drop ends the wait for a leaf because of an error.
func (d *desk) drop(ctx context.Context, p *pending, err error) error {
	if d.held.Err() != nil || errors.Is(err, journal.ErrDrained) { // the next process takes the results
		d.sent(p)
		p.slice.cancel()
		return err
	}
	if trouble := d.revoke(ctx, p); trouble != nil {
		err = errors.Join(err, trouble)
	}
	return err
}

// home has the holder do a leaf, after the steps that other processes have done: it returns
// step.ErrLocal, or the end of ctx. If the account cannot pay, the leaf fails here as it would without
// workers.
func (d *desk) home(ctx context.Context, p *pending, refused error) error {
	if refused != nil && !record.Refused(refused) {
		return d.drop(ctx, p, refused)
	}
	if err := d.revoke(ctx, p); err != nil {
		return err
	}
	if err := d.bring(ctx, p.order.Key, 1); err != nil {
		return err
	}
	return step.ErrLocal
}
