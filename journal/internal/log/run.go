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

// run is a run whose lease this Journal has or wants.
type run struct {
	id    string
	outer *run // the run whose lease covers it, nil for its own

	acquired bool        // set by Acquire; under the lock of the Journal, like leaving
	leaving  *write      // the write that releases it, queued after its results
	held     atomic.Bool // the writer renews the lease

	unwritten atomic.Int64 // results in the queue
	aside     aside

	// taking is locked during an attempt to take the lease, which waits for the writer. The writer locks mu to report its
	// commits, so mu must never be locked that long.
	taking sync.Mutex

	// Known to the writer, under its lock.
	row      int64
	rows     int64 // records, negative until it is loaded
	next     int64
	beat     int64
	nodes    map[half]bool
	recent   recent
	outlined int64 // number of the last record in its outline, 0 if unknown

	mu      sync.Mutex
	tenure  tenure
	news    sync.Cond // of known and loading
	ready   bool      // loading has started
	fresh   bool      // made by this Journal, so it needs no loading
	begun   bool      // while fresh and not an inner run: the fields from over on are known
	over    bool      // done and not started again, so it takes no more steps
	failed  error     // error of a write without a waiting caller: no step starts and the run does not end until it is acquired again
	last    *write    // the last such write, nil once settled
	opening *write    // the queued start of the run, until it is settled
	reuse   string    // as in journal.RunInfo
	account string    // as in journal.RunInfo
	shared  []budget.Shared
	known   known
	loading *loading

	attempts map[dag.ID]int // of steps without a result

	origins map[string]*origins // of reused results, by RunInfo.Reuse
	names   map[int64]string    // names of the runs from which results were taken
}

// tenure is the time during which a run is ours. Its methods are called with the lock of the run.
type tenure struct {
	context.Context // nil before the first one
	cancel          context.CancelCauseFunc
}

// begin starts a tenure, unless the last one continues. It ends with the tenure of the outer run at the latest.
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

// endTenure ends the context of the tenure with the reason why this Journal leaves the run.
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

// owner returns the owner that the run's row has if the run is ours.
func (r *run) owner(us string) string {
	if r.outer != nil {
		return ""
	}
	return us
}

// entry returns the run with the id, and creates it if necessary. It waits for a run that is being released. Afterwards the
// Journal is locked, unless there is an error.
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

// around returns the held run whose inner run has the id, or nil.
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

// open returns the run, with its lease taken and its records loading.
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

// payer returns the account of the run, or of its outer run.
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

// settled tells the run the result of a write.
func (r *run) settled(x *write) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if errors.As(x.err, new(*journal.HeldError)) {
		// Another owner has the run. The next step requests the lease again.
		r.ready, r.fresh = false, false
		r.held.Store(false)
		r.tenure.end(x.err)
	}
	if x.lazy && x.err != nil && r.failed == nil && (x.result != nil || !errors.Is(x.err, errStale)) { // a step within a stale intent announces itself
		r.failed = x.err // set before the run counts as settled
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

// failure returns the first error of a write without a waiting caller.
func (r *run) failure() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}

// fail stores the error of a write without a waiting caller.
func (r *run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed == nil {
		r.failed = err
	}
}

// forgive forgets a failure that ends with the loss of the run: what the run has recorded is read again.
func (r *run) forgive() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if errors.As(r.failed, new(*journal.HeldError)) {
		r.failed = nil
	}
}

// queue queues a write for which no caller waits. The writer takes it soon, or with the next write that a caller waits for. If it
// fails, the run has failed.
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

// send queues a write of a run. For an inner run it does not wait: the next step of
// either run gets the error.
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
