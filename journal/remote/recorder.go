package remote

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/record"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// recorder records one order on the board.
type recorder struct {
	*Worker
	delivery *delivery
	order    *order
	leaf     dag.ID // its id
	grant    grant
	slice    int // its number
	account  *budget.Account
	redact   step.Recorder

	mu       sync.Mutex
	trouble  error // of the journal
	attempts int   // of the leaf
	steps    map[dag.ID]bool
	notices  []event.Notice

	counted map[dag.ID]int // attempts of steps that the account was charged with before the leaf started
}

// count charges the account with the attempts before the last one of steps that have a result, and with
// all of others, which may have been paid for and lost. That happens before the leaf draws for
// those steps, so that it draws no more than its slice has left.
func (r *recorder) count(ctx context.Context) error {
	paid, err := paid(ctx, r.Journal, r.delivery.Run, r.leaf)
	if err != nil {
		return err
	}
	r.counted = map[dag.ID]int{}
	for _, s := range paid {
		if s.Record != nil {
			s.Attempts--
		}
		r.counted[s.Key.Digest] = s.Attempts
		r.account.Charge(s.Declared.Times(s.Attempts))
	}
	return nil
}

func (r *recorder) ended() (steps int, trouble error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.steps), r.trouble
}

// Do implements [step.Recorder].
func (r *recorder) Do(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	if key.Digest == r.order.Key.Digest {
		n, err := r.delivery.attempt()
		if err != nil {
			return step.Record{}, r.fail(err)
		}
		if n > 1 { // otherwise nobody has started a step of it: who does notes the attempt at the work first
			if err := r.count(ctx); err != nil {
				return step.Record{}, r.fail(err)
			}
		}
		r.mu.Lock()
		r.attempts = n
		r.mu.Unlock()
		rec, err := r.redact.Do(ctx, key, func(ctx context.Context) (step.Record, error) { return work(record.WithAttempt(ctx, n)) })
		if err == nil && n > 1 {
			err = r.tellUnused(ctx)
		}
		return rec, err
	}
	rec, err := r.inner(ctx, key, work)
	if err == nil {
		r.met(key.Digest)
	}
	return rec, err
}

// inner records a step within the leaf.
func (r *recorder) inner(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	found, err := r.find(ctx, key)
	if err != nil {
		return step.Record{}, r.fail(err)
	}
	if found != nil {
		return r.replay(found, key)
	}
	done := record.Done{Key: key, Declared: record.Declared(ctx)}
	r.mu.Lock()
	done.Attempts = r.attempts
	r.mu.Unlock()
	if done.Declared != (budget.Amount{}) {
		if done.Attempts, err = r.begin(ctx, key, done.Declared); record.Refused(err) {
			return step.Record{}, err // a budget over several runs does not pay: the holder waits, or ends the run
		} else if err != nil {
			return step.Record{}, r.fail(err)
		}
	}
	n := done.Attempts
	rec, err := r.redact.Do(ctx, key, func(ctx context.Context) (step.Record, error) { return work(record.WithAttempt(ctx, n)) })
	if err != nil {
		return rec, err
	}
	if done.Declared == (budget.Amount{}) {
		done.Attempts = 1 // the others may have ended before this step
	}
	done.Record = &rec
	ctx = context.WithoutCancel(ctx)
	first, err := r.keep(ctx, done)
	if err == nil && !first {
		if found, err = r.find(ctx, key); err == nil {
			return r.replay(found, key)
		}
	}
	if err != nil {
		return step.Record{}, r.fail(err)
	}
	return rec, nil
}

// find returns the step that the board has for a key, by the rule of step.Recorder: the record with its
// digest, or else the record of other work at its place.
func (r *recorder) find(ctx context.Context, key step.Key) (*record.Done, error) {
	name, at := stepOf(r.leaf, key.Digest), placeOfStep(r.leaf, key)
	items, err := r.Journal.Posted(ctx, r.delivery.Run, name, at)
	if err != nil {
		return nil, err
	}
	found, ok := items[name]
	if place, other := items[at]; !ok && other && key.Placed() {
		var digest dag.ID
		if err := read(place, &digest); err != nil {
			return nil, err
		}
		name = stepOf(r.leaf, digest)
		if items, err = r.Journal.Posted(ctx, r.delivery.Run, name); err != nil {
			return nil, err
		}
		found, ok = items[name]
	}
	if !ok {
		return nil, nil
	}
	done, err := readStep(found, r.order.Key)
	return &done, err
}

// keep writes a step that was done. It reports whether the board had none with its digest, and none at its
// place.
func (r *recorder) keep(ctx context.Context, done record.Done) (first bool, err error) {
	own, err := item(stepOf(r.leaf, done.Key.Digest), done)
	if err != nil {
		return false, err
	}
	items := []journal.Item{own}
	if !done.Key.Loose {
		at, err := item(placeOfStep(r.leaf, done.Key), done.Key.Digest)
		if err != nil {
			return false, err
		}
		items = append(items, at)
	}
	kept, err := r.Journal.Post(ctx, r.delivery.Run, items...)
	first = err == nil
	for i := range kept {
		first = first && string(kept[i].Data) == string(items[i].Data)
	}
	return first, err
}

// replay returns the record of a step, and charges the attempts before its last one.
func (r *recorder) replay(done *record.Done, key step.Key) (step.Record, error) {
	r.account.Charge(done.Declared.Times(max(done.Attempts-1-r.counted[done.Key.Digest], 0)))
	rec := *done.Record
	rec.Replayed, rec.Path, rec.Differs = true, done.Key.Path, done.Key.Digest != key.Digest
	r.met(done.Key.Digest)
	return rec, nil
}

// tellUnused keeps a notice if the body has not asked for steps that earlier attempts have recorded.
func (r *recorder) tellUnused(ctx context.Context) error {
	steps, err := stepsOf(ctx, r.Journal, r.order.Key)
	if err != nil {
		return r.fail(err)
	}
	done := map[string]bool{r.order.Key.Path: true}
	for _, s := range steps {
		done[s.Key.Path] = s.Key.Kind == "step"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var unused []string
	for _, s := range steps {
		up := address.Parent(s.Key.Path)
		for !done[up] { // nobody asks for what is below a step with a result
			up = address.Parent(up)
		}
		if s.Key.Kind == "step" && !r.steps[s.Key.Digest] && up == r.order.Key.Path {
			unused = append(unused, s.Key.Path)
		}
	}
	if len(unused) > 0 {
		r.notices = append(r.notices, event.Notice{Code: event.UnusedRecords, Path: r.order.Key.Path, Text: text.Unused(unused)})
	}
	return nil
}

// notice keeps a notice of the leaf for the run's process.
func (r *recorder) notice(e event.Event) {
	if n, ok := e.Data.(event.Notice); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.notices = append(r.notices, n)
	}
}

// errReplaced means that the slice of an order was closed or replaced, that another process
// holds the run, or that another worker spends the slice too. The leaf starts once more.
var errReplaced = errors.New("the process of the run has granted another slice of its budget")

// begin notes an attempt of a step that costs money, and returns its number among those that count. An attempt starts,
// and counts, if its slice was the last one where the note is on the board, and the account was charged with all earlier
// attempts that count: see counts. So whoever reads the board knows whether it starts, however slow its worker is.
func (r *recorder) begin(ctx context.Context, key step.Key, declared budget.Amount) (n int, err error) {
	if _, err := r.current(ctx, math.MaxInt64); err != nil {
		return 0, err
	}
	of := fmt.Sprintf("%s%s/%s/", tryKey, r.leaf, key.Digest)
	own := try{Key: &key, Declared: declared, Holder: r.grant.Holder, Slice: r.slice, Counted: r.counted[key.Digest]}
	n, at, err := note(ctx, r.Journal.Post, r.delivery.Run, of, own)
	if n == 1 {
		_, err = r.current(ctx, at)
		return n, err
	}
	var tries []journal.Item
	if err == nil {
		tries, err = r.Journal.PostedUnder(ctx, r.delivery.Run, of)
	}
	if err != nil {
		return 0, err
	}
	that, err := counts(ctx, r.Journal, r.delivery.Run, r.leaf, tries)
	started := 0
	for _, a := range that {
		if a.Seq <= at {
			started++
		}
		if a.Seq == at {
			return started, err
		}
	}
	return 0, cmp.Or(err, errReplaced)
}

// current returns errReplaced if the slice was not the last one at a position of the board, or paid for nothing more,
// and otherwise the number of the last slice that the board had there.
func (r *recorder) current(ctx context.Context, until int64) (n int, err error) {
	last, n, err := r.Worker.slice(ctx, r.delivery.Run, r.leaf, r.grant, r.slice, until)
	if err == nil && (last.Post != r.grant.Post || last.Closed) {
		err = errReplaced
	}
	return n, err
}

// note writes an attempt to the board and returns its number and its position. The attempt is one at work, at a step that
// costs money, or to hold the run.
func note(ctx context.Context, post func(context.Context, string, ...journal.Item) ([]journal.Item, error), run, prefix string, own try) (n int, at int64, err error) {
	own.Post = rand.Text()
	for n := 1; ; n++ {
		i, err := item(fmt.Sprint(prefix, n), own)
		if err != nil {
			return 0, 0, err
		}
		kept, err := post(ctx, run, i)
		if err != nil {
			return 0, 0, err
		}
		var found try
		if err := read(kept[0], &found); err != nil {
			return 0, 0, err
		}
		if found.Post == own.Post {
			return n, kept[0].Seq, nil
		}
	}
}

// met notes a step within the leaf.
func (r *recorder) met(digest dag.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.steps == nil {
		r.steps = map[dag.ID]bool{}
	}
	r.steps[digest] = true
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
