package remote

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/limit"
	"github.com/stonelayer/stone/step"
)

// desk sends the orders of one run and waits for their results.
type desk struct {
	*Executor
	run    string
	board  journal.Board
	held   context.Context // ends when this process loses the run
	holder int             // number of this process among those that have held the run
	ledger ledger

	mu      sync.Mutex
	waiting map[dag.ID]*pending // by the ids of the leaves
	seen    int64               // position of the last result that was read
	stop    context.CancelFunc  // of the goroutine that reads, nil if there is none
	queues  map[*Route][]*pending
	parts   map[dag.ID]bool // large contents that are on the board
}

// pending is an order that waits for its result.
type pending struct {
	order step.Order
	leaf  dag.ID // its id
	route *Route
	rank  limit.Rank
	slice *slice
	batch *batch
	done  chan outcome
	out   chan struct{} // closed once it is written or has failed; nil while it is queued
	gone  bool          // nobody waits for it
}

// outcome is a result, or why there is none.
type outcome struct {
	result
	err error
}

func newDesk(e *Executor, run string) *desk {
	return &desk{Executor: e, run: run, board: e.cfg.Journal, held: e.cfg.Journal.Held(run),
		ledger:  ledger{noted: map[string]noted{}, before: map[dag.ID]budget.Amount{}},
		waiting: map[dag.ID]*pending{}, queues: map[*Route][]*pending{}, parts: map[dag.ID]bool{}}
}

// do sends an order and returns its result. It stops when this process loses the run, even if it
// has the run again afterwards: meanwhile another one has granted slices.
func (d *desk) do(ctx context.Context, p *pending) (result, error) {
	d.enter(ctx, p)
	select {
	case got := <-p.done:
		d.sent(p) // another process's result may come while the order is written, with its slice
		return got.result, got.err
	case <-d.held.Done():
		d.leave(ctx, p, false) // the next process wants the result
		return result{}, context.Cause(d.held)
	case <-ctx.Done():
		drained := errors.Is(context.Cause(ctx), journal.ErrDrained)
		d.leave(ctx, p, !drained) // the next process wants the results of a drained one
		return result{}, context.Cause(ctx)
	}
}

// enter queues an order, and sees to it that the results are read.
func (d *desk) enter(ctx context.Context, p *pending) {
	ctx = context.WithoutCancel(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting[p.leaf] = p
	if d.stop == nil {
		reading, stop := context.WithCancel(ctx)
		d.stop = stop
		go d.read(reading, d.seen)
	}
	queue := append(d.queues[p.route], p)
	d.queues[p.route] = queue
	if (len(queue)-1)%p.route.size() == 0 {
		go d.send(ctx, p.route)
	}
}

// leave removes an order for which nobody waits any more.
func (d *desk) leave(ctx context.Context, p *pending, cancel bool) {
	d.mu.Lock()
	if d.waiting[p.leaf] != p {
		d.mu.Unlock()
		return
	}
	b := p.batch
	cancel = cancel && b != nil && b.open == 1
	if cancel {
		b.canceled = true
	}
	d.remove(p)
	d.mu.Unlock()
	if cancel {
		d.cancel(ctx, b)
	}
}

// remove is called with the lock.
func (d *desk) remove(p *pending) {
	delete(d.waiting, p.leaf)
	p.gone = true
	if b := p.batch; b != nil {
		if b.open--; b.open == 0 {
			close(b.ended)
		}
	}
	if len(d.waiting) == 0 && d.stop != nil {
		d.stop()
		d.stop = nil
	}
}

// settle gives an order its outcome.
func (d *desk) settle(p *pending, got outcome) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting[p.leaf] == p {
		d.remove(p)
		p.done <- got
	}
}

// read settles orders as their results come, until it is stopped.
func (d *desk) read(ctx context.Context, after int64) {
	for item, err := range d.board.Watch(ctx, d.run, resultKey, after) {
		if err != nil {
			if ctx.Err() == nil {
				d.fail(err)
			}
			return
		}
		leaf, err := idOf(item.Key)
		d.mu.Lock()
		if ctx.Err() != nil {
			d.mu.Unlock()
			return
		}
		d.seen = item.Seq
		p := d.waiting[leaf]
		d.mu.Unlock()
		if err == nil && p != nil {
			d.arrived(p, item)
		}
	}
}

// arrived settles an order with a result. It ignores a leaf that comes back from an earlier slice
// once more.
func (d *desk) arrived(p *pending, item journal.Item) {
	var got outcome
	got.err = read(item, &got.result)
	d.mu.Lock()
	earlier := p.batch == nil || got.Slice < p.slice.number
	d.mu.Unlock()
	if final(item.Key) || !earlier {
		d.settle(p, got)
	}
}

// fail ends the wait for all results.
func (d *desk) fail(err error) {
	d.mu.Lock()
	var all []*pending
	for _, p := range d.waiting {
		all = append(all, p)
	}
	d.mu.Unlock()
	for _, p := range all {
		d.settle(p, outcome{err: fmt.Errorf("the results of other processes cannot be read: %w", err)})
	}
}

// tried calls each with the attempts after a position that are on the board now, and returns the
// position up to which it has read.
func (d *desk) tried(ctx context.Context, since int64, each func(journal.Item) error) (until int64, err error) {
	end, err := d.board.Post(ctx, d.run, journal.Item{Key: tryKey + endKey + rand.Text()})
	if err != nil {
		return 0, err
	}
	for item, err := range d.board.Watch(ctx, d.run, tryKey, since) {
		switch {
		case err != nil:
			return 0, err
		case item.Seq >= end[0].Seq:
			return end[0].Seq, nil
		case len(item.Data) == 0: // another end
		default:
			if err := each(item); err != nil {
				return 0, err
			}
		}
	}
	return 0, context.Cause(ctx)
}

// sent waits until an order that was taken from its queue is written, or has failed. It reports
// whether it was taken.
func (d *desk) sent(p *pending) bool {
	d.mu.Lock()
	out := p.out
	d.mu.Unlock()
	if out != nil {
		<-out
	}
	return out != nil
}
