package log

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
)

// run is a run whose lease this Journal holds or is acquiring.
type run struct {
	id    string
	outer *run // the run whose lease covers this run; nil if it has its own lease

	acquired bool        // set by Acquire; protected by the Journal's lock, like leaving
	leaving  *write      // the write that releases the run; queued after the run's results
	held     atomic.Bool // true while the writer renews the lease

	unwritten atomic.Int64 // number of results in the queue
	aside     aside

	// taking is locked while the lease is being acquired, which requires waiting for the writer. It is separate from mu, because
	// the writer locks mu to report its commits, so mu must never be locked while waiting for the writer.
	taking sync.Mutex

	// The following fields are used by the writer, and are protected by the writer's lock.
	row      int64
	rows     int64 // number of records; negative until the run is loaded
	next     int64
	beat     int64
	nodes    map[half]bool
	recent   recent
	outlined int64 // number of the last record in the run's outline; 0 if unknown

	mu      sync.Mutex
	tenure  tenure
	news    sync.Cond // signals changes to known and loading
	ready   bool      // loading has started
	fresh   bool      // created by this Journal, so there is nothing to load
	begun   bool      // only for a fresh run that is not an inner run: the fields from over on are set
	over    bool      // done and not started again, so no step may run
	failed  error     // error of a lazy write: no step can start, and the run cannot end, until it is acquired again
	last    *write    // the last lazy write; nil once it is settled
	opening *write    // the queued start of the run; nil once it is settled
	reuse   string    // see journal.RunInfo.Reuse
	account string    // see journal.RunInfo.Account
	shared  []budget.Shared
	known   known
	loading *loading

	attempts map[dag.ID]int // number of attempts at each step without a result

	origins map[string]*origins // see originsOf; the keys are values of RunInfo.Reuse
	names   map[int64]string    // IDs of the runs from which results were reused, by number
}

// tenure is the time during which this Journal holds a run. Its context is canceled when the tenure ends. The caller of its
// methods must hold the run's lock.
type tenure struct {
	context.Context // nil before the first tenure
	cancel          context.CancelCauseFunc
}

// begin starts a tenure, unless the last one has not ended yet. The new tenure ends no later than the outer run's tenure.
func (t *tenure) begin(outer context.Context) {
	if t.Context == nil || t.Err() != nil {
		t.Context, t.cancel = context.WithCancelCause(outer)
	}
}

func (t *tenure) end(why error) {
	if t.Context != nil {
		t.cancel(why)
	}
}

// lastTenure returns the context of the last tenure, or nil.
func (r *run) lastTenure() context.Context {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tenure.Context
}

// endTenure ends the tenure. The reason why becomes the cause of the tenure's context.
func (r *run) endTenure(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tenure.end(why)
}

func newRun(id string) *run {
	r := &run{id: id, rows: -1, nodes: map[half]bool{}, known: newKnown(), attempts: map[dag.ID]int{}, origins: map[string]*origins{}, names: map[int64]string{}}
	r.news.L = &r.mu
	return r
}

// owner returns the owner stored in the run's row while this Journal, us, holds the run. It is empty for an inner run.
func (r *run) owner(us string) string {
	if r.outer != nil {
		return ""
	}
	return us
}

// entry returns the entry for the run with the ID, and creates it if necessary. If the run is being released, it waits. It returns
// with the Journal locked, unless there is an error.
func (j *Journal) entry(id string) (*run, error) {
	for {
		j.mu.Lock()
		if j.closed {
			j.mu.Unlock()
			return nil, journal.ErrClosed
		}
		r := j.runs[id]
		if r == nil {
			r = newRun(id)
			r.outer = j.around(id)
			j.runs[id] = r
			return r, nil
		}
		if r.leaving == nil {
			return r, nil
		}
		leaving := r.leaving
		j.mu.Unlock()
		if err := j.out.wait(leaving); err != nil {
			return nil, err
		}
	}
}

// around returns the held run of which the run with the ID is an inner run, or nil.
func (j *Journal) around(id string) *run {
	for i := strings.LastIndexByte(id, '/'); i > 0; i = strings.LastIndexByte(id[:i], '/') {
		if r := j.runs[id[:i]]; r != nil && r.held.Load() && r.leaving == nil {
			if r.outer != nil {
				return r.outer
			}
			return r
		}
	}
	return nil
}

// open returns the run with the ID. It acquires the lease and starts loading the records if necessary.
func (j *Journal) open(ctx context.Context, id string) (*run, error) {
	r, err := j.entry(id)
	if err != nil {
		return nil, err
	}
	j.mu.Unlock()
	if ready, err := r.isReady(); ready || err != nil {
		return r, err
	}
	r.taking.Lock()
	defer r.taking.Unlock()
	if ready, err := r.isReady(); ready || err != nil {
		return r, err
	}
	if !r.held.Load() {
		if _, err := j.acquire(ctx, r); err != nil {
			return nil, j.data.Explain(err)
		}
	}
	r.mu.Lock()
	begun := r.fresh && r.begun
	r.mu.Unlock()
	var info journal.RunInfo
	if !begun {
		if info, err = j.info(ctx, r); err != nil {
			return nil, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !begun {
		r.over, r.account, r.shared = info.State == journal.Done, info.Account, named(info.Budgets)
		if r.reuse = info.Reuse; info.ID == "" {
			r.reuse = journal.AnyRun
		}
	}
	j.startLoading(r)
	r.ready = true
	return r, nil
}

// payer returns the account of the run, or, if it has none, of its outer run.
func (r *run) payer() string {
	r.mu.Lock()
	account := r.account
	r.mu.Unlock()
	if account == "" && r.outer != nil {
		return r.outer.payer()
	}
	return account
}

func (r *run) hasNode(id dag.ID) bool { return r.nodes[halfOf(id)] }

func (r *run) isReady() (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ready, r.failed
}

func (r *run) isOver() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}

// settled updates the run after a write has been committed or has failed.
func (r *run) settled(x *write) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if errors.As(x.err, new(*journal.HeldError)) {
		// The run has another owner. The next step will try to acquire the lease again.
		r.ready, r.fresh = false, false
		r.held.Store(false)
		r.tenure.end(x.err)
	}
	if x.lazy && x.err != nil && r.failed == nil && (x.result != nil || !errors.Is(x.err, errStale)) { // a stale intent is harmless
		r.failed = x.err // failed must be set before the run counts as settled
	}
	if r.last == x {
		r.last = nil
	}
	if r.opening == x {
		r.opening = nil
	}
	if x.result == nil {
		return
	}
	digest := dag.ID(x.result.Digest)
	r.unwritten.Add(-1)
	delete(r.known.pending, halfOf(digest))
	if x.err == nil {
		r.known.rows[halfOf(digest)] = uint32(x.result.Seq)
		if place, ok := x.result.place(); ok {
			r.known.places[halfOf(place)] = uint32(x.result.Seq)
		}
		delete(r.attempts, digest)
	}
}

// failure returns the first error of a lazy write, or nil.
func (r *run) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// fail stores the error of a lazy write.
func (r *run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = err
	}
}

// forgive clears a failure that was caused by the loss of the run. When the run is acquired again, its records are read again.
func (r *run) forgive() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if errors.As(r.failed, new(*journal.HeldError)) {
		r.failed = nil
	}
}

// queue queues a lazy write, which no caller waits for. The writer executes it after a short delay, or with the next write that a
// caller waits for. If the write fails, the run fails.
func (j *Journal) queue(x *write) error {
	x.lazy, x.done = true, make(chan struct{})
	x.run.mu.Lock()
	defer x.run.mu.Unlock()
	err := j.out.put(x)
	if err == nil {
		x.run.last = x
	}
	return err
}

// Settled implements [journal.Journal].
func (j *Journal) Settled(id string) (wait func(now bool) error) {
	j.mu.Lock()
	r := j.runs[id]
	j.mu.Unlock()
	if r == nil {
		return nil
	}
	r.mu.Lock()
	last, failed := r.last, r.failed
	r.mu.Unlock()
	switch {
	case last == nil && failed == nil:
		return nil
	case last == nil:
		return func(bool) error { return failed }
	}
	return func(now bool) error {
		if now {
			j.out.rouse()
		}
		return cmp.Or(j.out.wait(last), r.failure())
	}
}

// settle waits until all records of a run are durable.
func (j *Journal) settle(id string) error {
	if wait := j.Settled(id); wait != nil {
		return wait(true)
	}
	return nil
}

// send queues a write of a run and waits for it. For an inner run it does not wait; an error is returned by the next step of the
// inner or the outer run.
func (j *Journal) send(x *write) error {
	if x.run.outer == nil {
		return j.out.write(x)
	}
	x.stays = true
	then := x.then
	x.then = func(err error) {
		if err != nil {
			x.run.fail(err)
			x.run.outer.fail(err)
		}
		if then != nil {
			then(err)
		}
	}
	return j.out.put(x)
}
