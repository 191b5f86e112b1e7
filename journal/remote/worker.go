package remote

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/limit"
	"github.com/stonelayer/stone/step"
)

// A Worker does leaves of runs that other processes hold. Its methods may be called by
// several goroutines at once.
type Worker struct {
	Journal journal.Journal
	// Pipelines are the pipelines whose leaves the worker runs. Several versions of a pipeline may
	// be among them.
	Pipelines []stone.Ashlar
	// Secrets are as in journal.Options.
	Secrets []string
}

// ErrOther means that no pipeline of a worker has the leaf of an order in its version. Another
// worker may have it.
var ErrOther = errors.New("no pipeline of this worker has the leaf in this version")

// Do does work and returns nil when the board has a result for each order, or the run needs
// none. Otherwise the work must be delivered again, to any worker: after ErrOther, after the
// cause of ctx, and after an error of the journal. What was done is not done again.
func (w *Worker) Do(ctx context.Context, work Work) error {
	return w.each(ctx, work, w.do)
}

// GiveBack leaves the orders of the work that have no result to the process that holds the
// run. Call it when no worker can be found for them.
func (w *Worker) GiveBack(ctx context.Context, work Work) error {
	return w.each(ctx, work, func(ctx context.Context, d *delivery, o *order) error {
		last, n, err := w.slice(ctx, d.Run, o.id(), o.first(), 0, math.MaxInt64)
		if err != nil {
			return err
		}
		return w.post(ctx, d, o, result{Grant: last.Post, Slice: n})
	})
}

// A delivery is an attempt at work. The leaves of a batch start together, so one note counts the
// attempt for all of them.
type delivery struct {
	Work
	attempt func() (int, error) // notes the attempt once, and returns its number
	results *results
}

func (w *Worker) deliver(ctx context.Context, work Work, r *results) *delivery {
	return &delivery{work, sync.OnceValues(func() (int, error) {
		n, _, err := note(ctx, w.Journal.Post, work.Run, tryKey+work.ID.String()+"/", try{})
		return n, err
	}), r}
}

// results posts the results of a batch together if they come within fill: whoever posts locks the board.
type results struct {
	mu   sync.Mutex
	left int // orders without a result
	next *parcel
}

// parcel is posted at once.
type parcel struct {
	items []journal.Item
	done  chan struct{} // closed when errs are set
	errs  []error       // of the items
}

// add posts an item with those that come meanwhile, and returns when it is posted.
func (r *results) add(i journal.Item, post func(...journal.Item) error) error {
	r.mu.Lock()
	if r.next == nil {
		p := &parcel{done: make(chan struct{})}
		r.next = p
		time.AfterFunc(fill, func() { r.send(p, post) })
	}
	p, at := r.next, len(r.next.items)
	p.items = append(p.items, i)
	r.left--
	last := r.left <= 0
	r.mu.Unlock()
	if last {
		r.send(p, post)
	}
	<-p.done
	return p.errs[at]
}

// send posts a parcel, once. If that fails, it posts each item alone: one may be too large.
func (r *results) send(p *parcel, post func(...journal.Item) error) {
	r.mu.Lock()
	mine := r.next == p
	if mine {
		r.next = nil
	}
	r.mu.Unlock()
	if !mine {
		return
	}
	p.errs = make([]error, len(p.items))
	if err := post(p.items...); err != nil && len(p.items) == 1 {
		p.errs[0] = err
	} else if err != nil {
		for at, i := range p.items {
			p.errs[at] = post(i)
		}
	}
	close(p.done)
}

// each calls f for the orders of the work that have no result.
func (w *Worker) each(ctx context.Context, work Work, f func(context.Context, *delivery, *order) error) error {
	all, err := w.open(ctx, work)
	if err != nil {
		return err
	}
	d := w.deliver(ctx, work, &results{left: len(all)})
	errs := make([]error, len(all))
	var wait sync.WaitGroup
	for i, o := range all {
		wait.Go(func() { errs[i] = f(ctx, d, o) })
	}
	wait.Wait()
	return errors.Join(errs...)
}

// open returns the orders of the work that have no result. An ended run has none.
func (w *Worker) open(ctx context.Context, work Work) (orders []*order, err error) {
	all := []dag.ID{work.ID}
	if work.Many {
		key := batchKey + work.ID.String()
		items, err := w.Journal.Posted(ctx, work.Run, key)
		if err != nil || len(items) == 0 {
			return nil, err
		}
		if err := read(items[key], &all); err != nil {
			return nil, err
		}
	}
	if len(all) > maxBatch {
		return nil, fmt.Errorf("a batch of run %q has %d orders: want at most %d", work.Run, len(all), maxBatch)
	}
	keys := make([]string, 0, 3*len(all))
	for _, id := range all {
		keys = append(keys, resultKey+id.String(), orderKey+id.String(), sliceOf(id, 1))
	}
	items, err := w.Journal.Posted(ctx, work.Run, keys...)
	if err != nil {
		return nil, err
	}
	for _, id := range all {
		item, ordered := items[orderKey+id.String()]
		if _, done := items[resultKey+id.String()]; done || !ordered {
			continue
		}
		o := new(order)
		if err := read(item, o); err != nil {
			return nil, err
		}
		_, o.sliced = items[sliceOf(id, 1)]
		if o.work() == work { // otherwise it went out before, with other orders
			orders = append(orders, o)
		}
	}
	return orders, w.attach(ctx, work.Run, orders)
}

// attach puts the large contents into the orders that read them.
func (w *Worker) attach(ctx context.Context, run string, orders []*order) error {
	contents := map[dag.ID]json.RawMessage{}
	for _, o := range orders {
		for _, digest := range o.Reads.Apart() {
			contents[digest] = nil
		}
	}
	if len(contents) == 0 {
		return nil
	}
	keys := make([]string, 0, len(contents))
	for digest := range contents {
		keys = append(keys, partKey+digest.String())
	}
	items, err := w.Journal.Posted(ctx, run, keys...)
	if err != nil {
		return err
	}
	for digest := range contents {
		contents[digest] = items[partKey+digest.String()].Data
	}
	for _, o := range orders {
		if err := o.Reads.Attach(contents); err != nil {
			return err
		}
	}
	return nil
}

// do does an order with the pipeline of its run, or else with a version of it that has the
// same leaf.
func (w *Worker) do(ctx context.Context, d *delivery, o *order) error {
	var same, others []stone.Ashlar
	for _, p := range w.Pipelines {
		if p.Fingerprint() == o.Pipeline {
			same = append(same, p)
		} else if begins(o.Key.Path, p) {
			others = append(others, p)
		}
	}
	for _, p := range append(same, others...) {
		other, err := w.doWith(ctx, d, o, p)
		if !other || err != nil {
			return err
		}
	}
	return fmt.Errorf("%s of run %q: %w", o.Key.Path, d.Run, ErrOther)
}

// begins reports whether a path is one of the pipeline.
func begins(path string, p stone.Ashlar) bool {
	for segment := range address.Segments(path) {
		return address.Parse(segment).Name == p.Name()
	}
	return false
}

// doWith does an order with a pipeline. It reports whether that has another version of the
// leaf.
func (w *Worker) doWith(ctx context.Context, d *delivery, o *order, p stone.Ashlar) (other bool, err error) {
	for sliced := o.sliced; ; sliced = true {
		last, n := o.first(), 0
		if sliced {
			if last, n, err = w.slice(ctx, d.Run, o.id(), last, 0, math.MaxInt64); err != nil || last.Closed {
				return false, err
			}
		}
		r := &recorder{Worker: w, delivery: d, order: o, leaf: o.id(), grant: last, slice: n, account: last.account()}
		other, err := w.doWithin(ctx, r, o, p)
		if !errors.Is(err, errReplaced) {
			return other, err
		}
		d = w.deliver(ctx, d.Work, d.results) // the leaf starts once more
	}
}

// doWithin does an order within a slice. The error is errReplaced if another slice has replaced it.
func (w *Worker) doWithin(ctx context.Context, r *recorder, o *order, p stone.Ashlar) (other bool, err error) {
	ctx = limit.Ranked(budget.With(ctx, r.account), o.Rank)
	var rec step.Record
	cfg := stone.Config{RunID: r.delivery.Run, Frontend: elsewhere{}, Watch: event.Func(slog.LevelWarn, r.notice)}
	open, err := journal.Redact(w.Secrets...).OpenRun(ctx, p, cfg)
	if err == nil {
		ctx, err = open.Begin(ctx)
	}
	if err == nil {
		r.redact, open.Config.Recorder = open.Config.Recorder, r
		rec, err = stone.Perform(ctx, p, o.Order, open.Config)
	}
	steps, trouble := r.ended()
	done := result{Grant: r.grant.Post, Spent: r.account.Spent(), Steps: steps, Slice: r.slice, Notices: r.notices}
	var failure *stone.Failure
	switch done.More = r.account.Refused(); {
	case trouble != nil:
		return false, trouble
	case done.More != nil:
		// Whatever the body made of the refusal: the account of the run decides.
	case err == nil:
		done.Record = &rec
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case errors.As(err, &failure) && failure.Kind == kind.Replay:
		return true, nil
	default: // the holder does the rest, and finds out what is wrong
	}
	return false, w.post(ctx, r.delivery, o, done)
}

// post writes the result of an order. The run may have ended meanwhile.
func (w *Worker) post(ctx context.Context, d *delivery, o *order, r result) error {
	key := resultKey + o.id().String()
	r.Leaf = o.Key.Digest
	if r.Record == nil {
		key += "/" + rand.Text()
	}
	i, err := item(key, r)
	if err != nil {
		return err
	}
	return d.results.add(i, func(all ...journal.Item) error {
		_, err := w.Journal.Post(context.WithoutCancel(ctx), d.Run, all...)
		if errors.Is(err, journal.ErrNoBoard) {
			return nil
		}
		return err
	})
}

// slice returns the last slice of a leaf and the number of the last one on the board. It starts at slice
// n, which is last. A process that has lost the run may still write slices: they do not count after a
// slice of its successor. The last slice is closed if a later process holds the run. What is on the board from a position
// on does not count.
func (w *Worker) slice(ctx context.Context, run string, leaf dag.ID, last grant, n int, until int64) (grant, int, error) {
	for ; ; n++ {
		next, newer := sliceOf(leaf, n+1), fmt.Sprint(holderKey, last.Holder+1)
		items, err := w.Journal.Posted(ctx, run, next, newer)
		if err != nil {
			return last, n, err
		}
		found, ok := items[next]
		if !ok || found.Seq > until {
			over, lost := items[newer]
			last.Closed = last.Closed || lost && over.Seq < until
			return last, n, nil
		}
		var g grant
		if err := read(found, &g); err != nil {
			return last, n, err
		}
		if g.Holder >= last.Holder {
			last = g
		}
	}
}

// elsewhere is the frontend of a worker: the process of the run asks.
type elsewhere struct{}

// Ask implements [ask.Frontend].
func (elsewhere) Ask(context.Context, ask.Question) (ask.Answer, error) {
	return ask.Answer{}, &stone.Failure{Kind: kind.Waiting, Reason: "the process of the run asks"}
}
