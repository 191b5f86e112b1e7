package remote

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/address"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

// A Worker does leaves of runs that other processes hold. Its methods may be called by
// several goroutines at once.
type Worker struct {
	Journal journal.Journal
	// Pipelines are those whose leaves the worker can do. Several versions of a pipeline may
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
	return w.each(ctx, work, func(ctx context.Context, run string, o *order) error { return w.post(ctx, run, o, result{Given: true}) })
}

// each calls f for the orders of the work that have no result.
func (w *Worker) each(ctx context.Context, work Work, f func(context.Context, string, *order) error) error {
	all, err := w.open(ctx, work)
	if err != nil {
		return err
	}
	errs := make([]error, len(all))
	var wait sync.WaitGroup
	for i, o := range all {
		wait.Go(func() { errs[i] = f(ctx, work.Run, o) })
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
	if len(all) > MaxBatch {
		return nil, fmt.Errorf("a batch of run %q has %d orders: want at most %d", work.Run, len(all), MaxBatch)
	}
	keys := make([]string, 0, 2*len(all))
	for _, id := range all {
		keys = append(keys, resultKey+id.String(), orderKey+id.String())
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
func (w *Worker) do(ctx context.Context, run string, o *order) error {
	var same, others []stone.Ashlar
	for _, p := range w.Pipelines {
		if p.Fingerprint() == o.Pipeline {
			same = append(same, p)
		} else if begins(o.Key.Path, p) {
			others = append(others, p)
		}
	}
	for _, p := range append(same, others...) {
		other, err := w.doWith(ctx, run, o, p)
		if !other || err != nil {
			return err
		}
	}
	return fmt.Errorf("%s of run %q: %w", o.Key.Path, run, ErrOther)
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
func (w *Worker) doWith(ctx context.Context, run string, o *order, p stone.Ashlar) (other bool, err error) {
	r := &recorder{Worker: w, run: run, leaf: o.Key.Digest}
	ctx, account, err := w.account(ctx, run, o)
	if err != nil {
		return false, err
	}
	var rec step.Record
	redact, ok := journal.Redact(w.Secrets...).(interface {
		WrapRun(context.Context, stone.Ashlar, stone.Config, func(context.Context, stone.Config) (stone.Result, error)) (stone.Result, error)
	})
	if !ok {
		return false, errors.New("journal.Redact returns no recorder of runs")
	}
	_, err = redact.WrapRun(ctx, p, stone.Config{RunID: run, Frontend: elsewhere{}}, func(ctx context.Context, cfg stone.Config) (_ stone.Result, err error) {
		r.redact, cfg.Recorder = cfg.Recorder, r
		rec, err = stone.Perform(ctx, p, o.Order, cfg)
		return stone.Result{}, err
	})
	steps, trouble := r.ended()
	done := result{Spent: account.Spent(), Steps: steps}
	exhausted := func(k kind.Kind) bool { return o.Slice != nil && k == budget.Kind }
	var failure *stone.Failure
	switch {
	case trouble != nil:
		return false, trouble
	case err == nil && rec.Failure != nil && exhausted(rec.Failure.Kind):
		done.More = true
	case err == nil:
		done.Record = &rec
	case ctx.Err() != nil:
		return false, context.Cause(ctx)
	case errors.As(err, &failure) && failure.Kind == kind.Replay:
		return true, nil
	default: // the holder does the rest, and finds out what is wrong
		done.More = o.Slice != nil && budget.Refused(err)
	}
	return false, w.post(ctx, run, o, done)
}

// post writes the result of an order. The run may have ended meanwhile.
func (w *Worker) post(ctx context.Context, run string, o *order, r result) error {
	key := resultKey + o.Key.Digest.String()
	if r.Record == nil {
		key += "/" + rand.Text()
	}
	i, err := item(key, r)
	if err != nil {
		return err
	}
	_, err = w.Journal.Post(context.WithoutCancel(ctx), run, i)
	if errors.Is(err, journal.ErrNoBoard) {
		return nil
	}
	return err
}

// account opens the account of an order, as large as its last slice.
func (w *Worker) account(ctx context.Context, run string, o *order) (context.Context, *budget.Account, error) {
	limits := o.Slice
	for n := 1; limits != nil; n++ {
		key := fmt.Sprintf("%s%s/%d", sliceKey, o.Key.Digest, n)
		items, err := w.Journal.Posted(ctx, run, key)
		if err != nil {
			return ctx, nil, err
		}
		found, ok := items[key]
		if !ok {
			break
		}
		limits = new(budget.Amount)
		if err := read(found, limits); err != nil {
			return ctx, nil, err
		}
	}
	var l budget.Limits
	if limits != nil {
		l = budget.Limits{Roundtrips: limits.Roundtrips, Tokens: limits.Tokens, USD: limits.USD}
	}
	account := budget.New(l)
	return budget.With(ctx, account), account, nil
}

// elsewhere is the frontend of a worker: the process of the run asks.
type elsewhere struct{}

// Ask implements [ask.Frontend].
func (elsewhere) Ask(context.Context, ask.Question) (string, error) {
	return "", &stone.Failure{Kind: kind.Waiting, Reason: "the process of the run asks"}
}

// recorder records one order on the board.
type recorder struct {
	*Worker
	run    string
	leaf   dag.ID
	redact step.Recorder

	mu       sync.Mutex
	trouble  error // of the journal
	attempts int   // of the leaf
	steps    []dag.ID
	known    map[dag.ID]bool
}

func (r *recorder) ended() (steps []dag.ID, trouble error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.steps, r.trouble
}

// Do implements [step.Recorder].
func (r *recorder) Do(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	if key.Digest == r.leaf {
		n, err := r.attempt(ctx, key.Digest)
		if err != nil {
			return step.Record{}, r.fail(err)
		}
		r.mu.Lock()
		r.attempts = n
		r.mu.Unlock()
		return r.redact.Do(ctx, key, func(ctx context.Context) (step.Record, error) { return work(journal.WithAttempt(ctx, n)) })
	}
	rec, err := r.inner(ctx, key, work)
	if err == nil {
		r.met(key.Digest)
	}
	return rec, err
}

// inner records a step within the leaf.
func (r *recorder) inner(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	name := stepKey + key.Digest.String()
	items, err := r.Journal.Posted(ctx, r.run, name)
	if err != nil {
		return step.Record{}, r.fail(err)
	}
	if found, ok := items[name]; ok {
		return r.replay(found)
	}
	done := journal.DoneStep{Key: key, Declared: budget.Declared(ctx)}
	r.mu.Lock()
	done.Attempts = r.attempts
	r.mu.Unlock()
	if done.Declared != (budget.Amount{}) {
		if done.Attempts, err = r.attempt(ctx, key.Digest); err != nil {
			return step.Record{}, r.fail(err)
		}
	}
	n := done.Attempts
	rec, err := r.redact.Do(ctx, key, func(ctx context.Context) (step.Record, error) { return work(journal.WithAttempt(ctx, n)) })
	if err != nil {
		return rec, err
	}
	if done.Declared == (budget.Amount{}) {
		done.Attempts = 1 // the others may have ended before this step
	}
	done.Record = &rec
	i, err := item(name, done)
	if err != nil {
		return step.Record{}, r.fail(err)
	}
	kept, err := r.Journal.Post(context.WithoutCancel(ctx), r.run, i)
	if err != nil {
		return step.Record{}, r.fail(err)
	}
	if string(kept[0].Data) != string(i.Data) {
		return r.replay(kept[0])
	}
	return rec, nil
}

func (r *recorder) replay(i journal.Item) (step.Record, error) {
	var done journal.DoneStep
	if err := read(i, &done); err != nil {
		return step.Record{}, r.fail(err)
	}
	done.Record.Replayed = true
	return *done.Record, nil
}

// attempt notes that the work of a step starts, and returns how often it was.
func (r *recorder) attempt(ctx context.Context, digest dag.ID) (int, error) {
	own := []byte(rand.Text())
	for n := 1; ; n++ {
		kept, err := r.Journal.Post(ctx, r.run, journal.Item{Key: fmt.Sprintf("%s%s/%d", tryKey, digest, n), Data: own})
		if err != nil {
			return 0, err
		}
		if string(kept[0].Data) == string(own) {
			return n, nil
		}
	}
}

// met notes a step within the leaf.
func (r *recorder) met(digest dag.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.known[digest] {
		if r.known == nil {
			r.known = map[dag.ID]bool{}
		}
		r.known[digest], r.steps = true, append(r.steps, digest)
	}
}

// fail notes an error of the journal: the order must be delivered again.
func (r *recorder) fail(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.trouble == nil {
		r.trouble = err
	}
	return err
}
