package remote

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/limit"
)

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

func (r *Route) size() int { return min(max(r.Batch, 1), maxBatch) }

// fill is how long a batch that is not full waits for a further order, and longest how long for all of them. What a
// batch costs its carrier is about the same for any number of orders.
const fill, longest = 2 * time.Millisecond, 25 * time.Millisecond

// send takes orders of a route from its queue, sends them, and sends them again until all
// have a result.
func (d *desk) send(ctx context.Context, route *Route) {
	// Without the other values of ctx: a wait for the window is none for a model, which ends no timeout.
	place, _ := d.slots.Enter(limit.Ranked(context.Background(), limit.RankOf(ctx)), limit.Request{})
	defer place.Leave(0)
	taken := d.gather(route)
	if len(taken) == 0 {
		return
	}
	for _, p := range taken {
		p.slice.first(d.cfg.Window * route.size())
	}
	batches, err := d.post(ctx, taken)
	for _, p := range taken {
		close(p.out)
	}
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

// gather takes orders of a route from its queue: a full batch, or what is there once no more come.
func (d *desk) gather(route *Route) (taken []*pending) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for waited, before := time.Duration(0), 0; ; waited += fill {
		now := len(d.queues[route])
		if now >= route.size() || now == before || waited >= longest {
			break
		}
		before = now
		d.mu.Unlock()
		time.Sleep(fill)
		d.mu.Lock()
	}
	queue := d.queues[route]
	for len(queue) > 0 && len(taken) < route.size() {
		if !queue[0].gone {
			queue[0].out = make(chan struct{})
			taken = append(taken, queue[0])
		}
		queue = queue[1:]
	}
	d.queues[route] = queue
	return taken
}

// deliver sends a batch until it has ended.
func (d *desk) deliver(ctx context.Context, pool string, b *batch) {
	again, pause, trouble := b.again, shortest, time.Time{}
	select {
	case <-b.ended: // the results were there before
		return
	default:
	}
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
// may have its result; otherwise it stays in the batch in which it went out, so that no two
// workers get it.
func (d *desk) post(ctx context.Context, taken []*pending) ([]*batch, error) {
	id := rand.Text()
	orders, items, err := d.items(taken, id)
	if err != nil {
		return nil, err
	}
	kept, err := d.board.Post(ctx, d.run, items...)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	for _, item := range kept {
		if part, ok := strings.CutPrefix(item.Key, partKey); ok {
			digest, _ := dag.ParseID(part) // the key is our own
			d.parts[digest] = true
		}
	}
	d.mu.Unlock()
	works := make([]Work, len(taken))
	results := make([]*journal.Item, len(taken))
	old := make([]bool, len(taken))
	for i, p := range taken {
		o := &orders[i]
		if !bytes.Equal(kept[i].Data, items[i].Data) {
			o = new(order)
			if err := read(kept[i], o); err != nil {
				return nil, err
			}
		}
		works[i] = o.work()
		d.mu.Lock()
		p.slice.posts[o.Post] = true
		d.mu.Unlock()
		if o.Key.Digest != p.order.Key.Digest { // it is found by its place, and is of other work
			d.settle(p, outcome{})
			continue
		}
		if old[i] = o.Post != id; old[i] {
			if results[i], err = d.earlier(ctx, p); err != nil {
				return nil, err
			}
			if results[i] != nil {
				continue
			}
			if err = p.slice.post(ctx, d, p.leaf, grant{Limits: p.slice.limits, Whole: p.slice.whole}); err != nil {
				return nil, err
			}
		}
	}
	batches := d.join(taken, works, old)
	for i, found := range results {
		if found != nil {
			d.arrived(taken[i], *found)
		}
	}
	return batches, nil
}

// items returns orders that go out together, and what is posted for them: first the orders.
func (d *desk) items(taken []*pending, id string) (orders []order, items []journal.Item, err error) {
	add := func(key string, v any) {
		i, wrong := item(key, v)
		items, err = append(items, i), errors.Join(err, wrong)
	}
	members := make([]dag.ID, len(taken))
	h := sha256.New()
	h.Write([]byte(id))
	for i, p := range taken {
		members[i] = p.leaf
		h.Write(members[i][:])
	}
	var many *dag.ID
	if len(taken) > 1 {
		many = new(dag.ID(h.Sum(nil)))
	}
	parts := map[dag.ID]json.RawMessage{}
	for _, p := range taken {
		o := order{Order: p.order, Rank: p.rank, Post: id, Batch: many, Limits: p.slice.limits, Whole: p.slice.whole, Holder: d.holder}
		var contents map[dag.ID]json.RawMessage
		o.Reads, contents = o.Reads.Detach(large)
		orders = append(orders, o)
		add(orderKey+p.leaf.String(), o)
		maps.Copy(parts, contents)
	}
	d.mu.Lock()
	maps.DeleteFunc(parts, func(digest dag.ID, _ json.RawMessage) bool { return d.parts[digest] })
	d.mu.Unlock()
	for digest, content := range parts {
		items = append(items, journal.Item{Key: partKey + digest.String(), Data: content})
	}
	if many != nil {
		add(batchKey+many.String(), members)
	}
	return orders, items, err
}

// earlier returns the result of an order that was sent before, perhaps by another process. It
// returns nil if there is none.
func (d *desk) earlier(ctx context.Context, p *pending) (*journal.Item, error) {
	key := resultKey + p.leaf.String()
	items, err := d.board.Posted(ctx, d.run, key)
	if found, ok := items[key]; ok {
		return &found, nil
	}
	return nil, err
}

// join makes batches of orders that somebody still waits for.
func (d *desk) join(taken []*pending, works []Work, old []bool) (batches []*batch) {
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
		p.batch = b
		if b.open++; old[i] {
			b.again = min(shortest, b.again)
		}
	}
	return batches
}
