package remote

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/stonelayer/stone/address"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// desk sends the orders of one run and waits for their results.
type desk struct {
	*Executor
	run   string
	board journal.Board

	mu      sync.Mutex
	waiting map[dag.ID]*pending
	seen    int64              // position of the last result that was read
	stop    context.CancelFunc // of the goroutine that reads, nil if there is none
	queues  map[*Route][]*pending
	parts   map[dag.ID]bool // large contents that are on the board
}

// pending is an order that waits for its result.
type pending struct {
	order step.Order
	route *Route
	slice *slice
	batch *batch
	since int64 // results that do not count for ever are newer than this position
	done  chan outcome
	gone  bool // nobody waits for it
}

// outcome is a result, or why there is none.
type outcome struct {
	result
	err error
}

func newDesk(e *Executor, run string) *desk {
	return &desk{Executor: e, run: run, board: e.cfg.Journal, waiting: map[dag.ID]*pending{}, queues: map[*Route][]*pending{}, parts: map[dag.ID]bool{}}
}

// do sends an order and returns its result.
func (d *desk) do(ctx context.Context, p *pending) (result, error) {
	d.enter(ctx, p)
	select {
	case got := <-p.done:
		return got.result, got.err
	case <-ctx.Done():
		drained := errors.Is(context.Cause(ctx), journal.ErrDrained)
		d.leave(ctx, p, !drained) // the next process wants the results of a drained one
		return result{}, context.Cause(ctx)
	}
}

// enter queues an order, and sees to it that the results are read.
func (d *desk) enter(ctx context.Context, p *pending) {
	ctx = context.WithoutCancel(ctx)
	p.since = math.MaxInt64
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting[p.order.Key.Digest] = p
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
	if d.waiting[p.order.Key.Digest] != p {
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
	delete(d.waiting, p.order.Key.Digest)
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
	if d.waiting[p.order.Key.Digest] == p {
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
		digest, err := digestOf(item.Key)
		d.mu.Lock()
		if ctx.Err() != nil {
			d.mu.Unlock()
			return
		}
		d.seen = item.Seq
		p := d.waiting[digest]
		d.mu.Unlock()
		if err == nil && p != nil {
			d.arrived(p, item)
		}
	}
}

// arrived settles an order with an item of a result, if that counts.
func (d *desk) arrived(p *pending, item journal.Item) {
	d.mu.Lock()
	since := p.since
	d.mu.Unlock()
	if !final(item.Key) && item.Seq <= since {
		return
	}
	var got outcome
	got.err = read(item, &got.result)
	d.settle(p, got)
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

// bring records the steps within a leaf that other processes have done.
func (d *desk) bring(ctx context.Context, leaf string, got result) error {
	if got.Given {
		steps, err := d.stepsIn(ctx, leaf)
		if err != nil {
			return err
		}
		return journal.Import(ctx, steps...)
	}
	if len(got.Steps) == 0 {
		return nil
	}
	keys := make([]string, len(got.Steps))
	for i, digest := range got.Steps {
		keys[i] = stepKey + digest.String()
	}
	items, err := d.board.Posted(ctx, d.run, keys...)
	if err != nil {
		return err
	}
	steps := make([]journal.DoneStep, len(keys))
	for i, key := range keys {
		if err := read(items[key], &steps[i]); err != nil {
			return err
		}
	}
	return journal.Import(ctx, steps...)
}

// stepsIn returns the steps on the board that are within a leaf.
func (d *desk) stepsIn(ctx context.Context, leaf string) (steps []journal.DoneStep, err error) {
	end, err := d.board.Post(ctx, d.run, journal.Item{Key: stepKey + "end/" + rand.Text()})
	if err != nil {
		return nil, err
	}
	for item, err := range d.board.Watch(ctx, d.run, stepKey, 0) {
		if err != nil {
			return nil, err
		}
		if item.Seq >= end[0].Seq {
			break
		}
		if strings.HasPrefix(item.Key, stepKey+"end/") {
			continue
		}
		var s journal.DoneStep
		if err := read(item, &s); err != nil {
			return nil, err
		}
		if address.Within(s.Key.Path, leaf) {
			steps = append(steps, s)
		}
	}
	return steps, nil
}

// batch is work that was sent.
type batch struct {
	work     Work
	open     int           // orders without a result
	ended    chan struct{} // closed when none is open
	canceled bool          // nobody waits for the last one
	// again is when the work is sent once more. The carrier may still have work that was sent
	// before and ends just now: then it is soon, and later each time.
	again time.Duration
}

// shortest is the first pause before work is sent once more.
const shortest = 200 * time.Millisecond

func (r *Route) size() int { return min(max(r.Batch, 1), MaxBatch) }

// fill is how long a batch that is not full waits for further orders.
const fill = 2 * time.Millisecond

// send takes orders of a route from its queue, sends them, and sends them again until all
// have a result.
func (d *desk) send(ctx context.Context, route *Route) {
	d.slots <- struct{}{}
	defer func() { <-d.slots }()
	if route.size() > 1 {
		time.Sleep(fill)
	}
	d.mu.Lock()
	var taken []*pending
	queue := d.queues[route]
	for len(queue) > 0 && len(taken) < route.size() {
		if !queue[0].gone {
			taken = append(taken, queue[0])
		}
		queue = queue[1:]
	}
	d.queues[route] = queue
	d.mu.Unlock()
	if len(taken) == 0 {
		return
	}
	batches, err := d.post(ctx, taken)
	if err != nil {
		for _, p := range taken {
			d.settle(p, outcome{err: fmt.Errorf("the order cannot be written: %w", err)})
		}
		return
	}
	var wait sync.WaitGroup
	for _, b := range batches {
		wait.Go(func() { d.deliver(ctx, route.Pool, b) })
	}
	wait.Wait()
}

// deliver sends a batch until it has ended.
func (d *desk) deliver(ctx context.Context, pool string, b *batch) {
	again, pause, trouble := b.again, shortest, time.Time{}
	for {
		err := d.cfg.Carrier.Send(ctx, pool, b.work)
		wait := again
		switch now := time.Now(); {
		case err == nil:
			again, pause, trouble = min(2*again, d.cfg.Again), shortest, time.Time{}
		case trouble.IsZero():
			trouble = now
			fallthrough
		default:
			if now.Sub(trouble) > d.cfg.Patience {
				d.abandon(b, err)
			}
			wait, pause = min(pause, d.cfg.Again), min(2*pause, 10*time.Second)
		}
		timer := time.NewTimer(wait)
		select {
		case <-b.ended:
			timer.Stop()
			d.mu.Lock()
			canceled := b.canceled
			d.mu.Unlock()
			if canceled { // perhaps while it was sent
				d.cancel(ctx, b)
			}
			return
		case <-timer.C:
		}
	}
}

// cancel stops work. Nobody waits for it, so it does no harm if it continues.
func (d *desk) cancel(ctx context.Context, b *batch) {
	_ = d.cfg.Carrier.Cancel(context.WithoutCancel(ctx), b.work)
}

// abandon ends the wait for a batch that cannot be sent.
func (d *desk) abandon(b *batch, err error) {
	d.mu.Lock()
	var all []*pending
	for _, p := range d.waiting {
		if p.batch == b {
			all = append(all, p)
		}
	}
	d.mu.Unlock()
	for _, p := range all {
		d.settle(p, outcome{err: fmt.Errorf("the order could not be sent for %v: %w", d.cfg.Patience, err)})
	}
}

// post writes orders on the board and returns them in batches. An order that was sent before
// may have its result; otherwise it stays in the batch with which it went out, so that no two
// workers get it.
func (d *desk) post(ctx context.Context, taken []*pending) ([]*batch, error) {
	id := rand.Text()
	items, err := d.items(taken, id)
	if err != nil {
		return nil, err
	}
	kept, err := d.board.Post(ctx, d.run, items...)
	if err != nil {
		return nil, err
	}
	last := int64(0)
	d.mu.Lock()
	for _, item := range kept {
		last = max(last, item.Seq)
		if part, ok := strings.CutPrefix(item.Key, partKey); ok {
			digest, _ := dag.ParseID(part) // the key is our own
			d.parts[digest] = true
		}
	}
	d.mu.Unlock()
	works := make([]Work, len(taken))
	results := make([]*journal.Item, len(taken))
	since, old := make([]int64, len(taken)), make([]bool, len(taken))
	for i, p := range taken {
		var o order
		if err := read(kept[i], &o); err != nil {
			return nil, err
		}
		works[i], since[i] = o.work(), last
		if old[i] = o.Post != id; old[i] {
			if results[i], since[i], err = d.earlier(ctx, p, id); err != nil {
				return nil, err
			}
		}
	}
	batches := d.join(taken, works, since, old)
	for i, found := range results {
		if found != nil {
			d.arrived(taken[i], *found)
		}
	}
	return batches, nil
}

// items returns what is posted for orders that go out together: first the orders.
func (d *desk) items(taken []*pending, id string) (items []journal.Item, err error) {
	add := func(key string, v any) {
		i, wrong := item(key, v)
		items, err = append(items, i), errors.Join(err, wrong)
	}
	members := make([]dag.ID, len(taken))
	h := sha256.New()
	h.Write([]byte(id))
	for i, p := range taken {
		members[i] = p.order.Key.Digest
		h.Write(members[i][:])
	}
	var many *dag.ID
	if len(taken) > 1 {
		many = new(dag.ID(h.Sum(nil)))
	}
	parts := map[dag.ID]json.RawMessage{}
	for _, p := range taken {
		o := order{Order: p.order, Post: id, Batch: many, Slice: p.slice.limits}
		var contents map[dag.ID]json.RawMessage
		o.Reads, contents = o.Reads.Detach(large)
		add(orderKey+p.order.Key.Digest.String(), o)
		maps.Copy(parts, contents)
	}
	d.mu.Lock()
	maps.DeleteFunc(parts, func(digest dag.ID, _ json.RawMessage) bool { return d.parts[digest] })
	d.mu.Unlock()
	for digest, content := range parts {
		items = append(items, journal.Item{Key: partKey + digest.String(), Data: content})
	}
	for _, p := range taken {
		if p.slice.number > 0 {
			add(fmt.Sprintf("%s%s/%d", sliceKey, p.order.Key.Digest, p.slice.number), p.slice.limits)
		}
	}
	if many != nil {
		add(batchKey+many.String(), members)
	}
	return items, err
}

// earlier returns the result of an order that was sent before, perhaps by another process, if
// it is there, and the position after which a result counts that does not count for ever.
func (d *desk) earlier(ctx context.Context, p *pending, id string) (*journal.Item, int64, error) {
	digest := p.order.Key.Digest.String()
	mark, err := d.board.Post(ctx, d.run, journal.Item{Key: againKey + digest + "/" + id})
	if err != nil {
		return nil, 0, err
	}
	items, err := d.board.Posted(ctx, d.run, resultKey+digest)
	if found, ok := items[resultKey+digest]; ok {
		return &found, 0, nil
	}
	return nil, mark[0].Seq, err
}

// join makes batches of orders that somebody still waits for.
func (d *desk) join(taken []*pending, works []Work, since []int64, old []bool) (batches []*batch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	index := map[Work]*batch{}
	for i, p := range taken {
		if p.gone {
			continue
		}
		b := index[works[i]]
		if b == nil {
			b = &batch{work: works[i], ended: make(chan struct{}), again: d.cfg.Again}
			index[works[i]], batches = b, append(batches, b)
		}
		p.batch, p.since = b, since[i]
		if b.open++; old[i] {
			b.again = min(shortest, b.again)
		}
	}
	return batches
}
