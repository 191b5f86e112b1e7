package log

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stonelayer/stone/journal"
)

// A write is an intent, a result or another change. A write with none of these renews a lease.
type write struct {
	run    *run
	also   string // ID of another run that the function do changes
	intent *intent
	result *result
	do     func(*transaction) error
	free   bool            // the function do itself checks whether this Journal holds the run
	then   func(err error) // called when the write has been committed or has failed
	stays  bool            // is retried even if no caller is waiting for it
	paid   bool            // the caller waits for it as long as for a result
	lazy   bool            // may be delayed briefly until there is a write with a waiting caller

	abandoned atomic.Bool   // the caller has stopped waiting
	done      chan struct{} // closed when err is set
	err       error
}

// writer is the state of the goroutine that makes all writes.
type writer struct {
	*Journal
	wake  chan struct{}
	stop  chan struct{}
	ended chan struct{}

	queued    sync.Mutex
	queue     []*write
	callers   int   // number of callers waiting for writes in the queue
	trouble   error // why the last transaction failed, or nil
	broken    error // why no further transaction will start, or nil
	closed    bool
	committed chan struct{} // closed by the next commit; nil if no caller is waiting for it

	wanted int // number of waiting callers at which the writer is woken
	lazy   lazily

	took     time.Duration // duration of the last commit
	expected int           // number of callers expected to join the next commit
	using    sync.Mutex    // locked during a transaction
	idle     bool          // nothing has been written since the last renewal
	lost     error         // error for writes that close could not execute
}

func startWriter(j *Journal) *writer {
	w := &writer{Journal: j, wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}), idle: true}
	go w.loop()
	return w
}

// put queues a write. The write's done channel is closed when the write has been committed or has failed.
func (w *writer) put(x *write) error {
	if x.done == nil {
		x.done = make(chan struct{})
	}
	w.queued.Lock()
	err := w.broken
	if err == nil && w.closed {
		err = journal.ErrClosed
	}
	if err != nil {
		w.queued.Unlock()
		return err
	}
	w.queue = append(w.queue, x)
	enough := false
	if x.lazy {
		w.linger()
	} else {
		w.callers++
		enough = w.callers >= w.wanted
	}
	w.queued.Unlock()
	if enough {
		w.rouse()
	}
	return nil
}

func (w *writer) rouse() {
	select {
	case w.wake <- struct{}{}:
	default: // the writer is already awake
	}
}

// mostLingering is the maximum time that a lazy write stays in the queue before the writer is woken. Usually a run reaches its
// next intent or its end sooner. Tests change mostLingering.
var mostLingering = time.Millisecond

// lazily is the timer for lazy writes in the queue. Its fields are protected by the queue's lock.
type lazily struct {
	timer *time.Timer
	armed bool
	since time.Time // when the oldest lazy write was queued; zero if there is none
}

// linger schedules a wake-up of the writer after mostLingering.
func (w *writer) linger() {
	l := &w.lazy
	if !l.since.IsZero() {
		return
	}
	l.since = time.Now()
	switch {
	case l.timer == nil:
		l.timer = time.AfterFunc(mostLingering, w.lingered)
	case !l.armed:
		l.timer.Reset(mostLingering)
	}
	l.armed = true
}

// lingered wakes the writer, unless it has already taken the writes that the timer was set for.
func (w *writer) lingered() {
	w.queued.Lock()
	defer w.queued.Unlock()
	l := &w.lazy
	l.armed = false
	if l.since.IsZero() {
		return
	}
	if rest := mostLingering - time.Since(l.since); rest > 0 {
		l.armed = true
		l.timer.Reset(rest)
		return
	}
	w.rouse()
}

// patience is the factor by which a caller waits longer for a disk that does not respond than for one that returns errors, because
// the disk may be busy.
const patience = 12

// wait waits until x is on disk, up to a time limit.
func (w *writer) wait(x *write) error {
	limit := w.opts.Retry
	if x.result != nil || x.paid || x.run != nil && x.run.unwritten.Load() > 0 {
		limit = w.opts.RetryResults
	}
	started := time.Now()
	timer := time.NewTimer(w.opts.Retry)
	defer timer.Stop()
	for i := 1; ; i++ {
		select {
		case <-x.done:
			return x.err
		case <-timer.C:
		}
		w.queued.Lock()
		trouble := w.trouble
		w.queued.Unlock()
		spent := time.Since(started)
		if trouble == nil && (i < patience || spent < limit) || trouble != nil && spent < limit {
			timer.Reset(w.opts.Retry)
			continue
		}
		x.abandon()
		if trouble != nil {
			return w.data.Explain(trouble)
		}
		return &Trouble{w.data.Name() + " does not write: check its disk, or set a longer Retry", fmt.Errorf("no answer for %v", spent.Round(time.Millisecond)), true}
	}
}

// abandon records that no caller is waiting for the write any more, and that a queued start of its run must not be retried.
func (x *write) abandon() {
	x.abandoned.Store(true)
	if x.run == nil {
		return
	}
	x.run.mu.Lock()
	defer x.run.mu.Unlock()
	if start := x.run.opening; start != nil {
		start.abandoned.Store(true)
	}
}

// write queues a write and waits for it.
func (w *writer) write(x *write) error {
	if err := w.put(x); err != nil {
		return err
	}
	return w.wait(x)
}

// loop commits the queue repeatedly. It keeps failed writes and retries them. When they have been failing for as long as
// Options.Retry, it logs this once with [slog.Default].
func (w *writer) loop() {
	defer close(w.ended)
	beats := time.NewTicker(max(w.opts.Lease/4, time.Millisecond))
	defer beats.Stop()
	var kept []*write
	var pause time.Duration
	var since time.Time // time of the first of several consecutive failures
	var told bool
	for stopped := false; !stopped; {
		var again <-chan time.Time
		wake := w.wake
		if pause > 0 {
			again, wake = time.After(pause), nil
		}
		var signs []*write
		select {
		case <-again:
		case <-wake:
			w.gather()
		case <-beats.C:
			signs = w.signs()
		case <-w.stop:
			stopped = true
		}
		group := append(kept, w.take()...)
		w.rest(len(group) == 0, signs != nil)
		started := time.Now()
		if kept = w.commit(append(group, signs...)); len(group) > 0 {
			w.took = time.Since(started)
		}
		if len(kept) == 0 {
			pause = 0
			continue
		}
		if pause == 0 {
			since, told = time.Now(), false
		}
		if !told && time.Since(since) >= w.opts.Retry {
			told = true
			slog.Warn(fmt.Sprintf("%v: trying again", w.data.Explain(w.trouble)))
		}
		pause = min(max(2*pause, 5*time.Millisecond), w.longest())
	}
	w.giveUp(kept)
}

// longest returns the maximum delay before a failed write is retried. After an outage, the owner of a run must be able to write
// before other processes presume that it is dead.
func (w *writer) longest() time.Duration {
	return min(max(w.opts.Lease/8, 5*time.Millisecond), time.Second)
}

// signs checks the database, and returns a renewal for every held run that has its own lease.
func (w *writer) signs() []*write {
	if err := w.data.Check(); err != nil {
		w.queued.Lock()
		w.broken = err
		w.queued.Unlock()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	signs := []*write{}
	for _, r := range w.runs {
		if r.held.Load() && r.outer == nil && r.row != 0 { // a run without a row has its start in the queue
			signs = append(signs, &write{run: r})
		}
	}
	return signs
}

// rest calls Database.Idle once after some work, when nothing has been written between two renewals.
func (w *writer) rest(nothing, sign bool) {
	if nothing && sign && !w.idle {
		// An error can be ignored: Idle is called again after more work, and the next commit reports errors that matter.
		_ = w.data.Idle()
	}
	if sign || !nothing {
		w.idle = nothing
	}
}

func (w *writer) take() []*write {
	w.queued.Lock()
	defer w.queued.Unlock()
	group := w.queue
	w.queue, w.callers, w.lazy.since = nil, 0, time.Time{}
	return group
}

// giveUp releases the callers that are waiting for writes that close could not execute.
func (w *writer) giveUp(kept []*write) {
	results := 0
	for _, x := range append(kept, w.take()...) {
		if x.result != nil {
			results++
		}
		x.settle(journal.ErrClosed)
	}
	if results > 0 {
		w.lost = fmt.Errorf("lost results: %d: %w", results, w.data.Explain(w.trouble))
	}
}

// commit executes a group of writes in one transaction, and returns the writes to retry. After a permanent error, it tries each
// write in a transaction of its own.
func (w *writer) commit(group []*write) (kept []*write) {
	if len(group) == 0 {
		return nil
	}
	if w.broken != nil {
		for _, x := range group {
			x.settle(w.broken)
		}
		return nil
	}
	group, err := w.transact(group)
	passing := err != nil && w.data.Passing(err)
	w.queued.Lock()
	if w.trouble = nil; passing {
		w.trouble = err
	}
	w.queued.Unlock()
	switch {
	case err == nil:
		for _, x := range group {
			x.settle(x.err)
		}
	case passing:
		for _, x := range group {
			if x.result != nil || x.stays || (x.intent != nil || x.do != nil) && !x.abandoned.Load() {
				kept = append(kept, x)
			} else if x.lazy { // a lazy start of a run
				x.settle(w.data.Explain(err))
			}
		}
	case len(group) == 1:
		group[0].settle(w.data.Explain(err))
	default:
		for i := range group {
			if kept = w.commit(group[i : i+1 : i+1]); len(kept) > 0 {
				return append(kept, group[i+1:]...)
			}
		}
	}
	return kept
}

// transact executes a group except for the writes of lost runs, whose callers receive the error immediately. It updates the runs
// only after unlocking the writer, because a caller that has locked a run may be waiting for the writer.
func (w *writer) transact(group []*write) ([]*write, error) {
	for careful := false; ; {
		w.using.Lock()
		t := &transaction{j: w.Journal, careful: careful}
		err := w.data.Update(func(tx Tx) error {
			t.Tx = tx
			if err := t.apply(group); err != nil {
				return err
			}
			w.opts.Reached("before commit")
			return nil
		})
		if unknown := (*UnknownError)(nil); errors.As(err, &unknown) {
			w.using.Unlock()
			err = w.lookUp(unknown)
			w.using.Lock()
		}
		t.finish(err == nil)
		w.using.Unlock()
		if errors.Is(err, ErrFenced) && !careful {
			careful = true
			continue
		}
		var lost *lostError
		if err == nil {
			w.tell()
			w.opts.Reached("after commit")
		}
		if !errors.As(err, &lost) {
			return group, err
		}
		var rest []*write
		for _, x := range group {
			if lost.writes[x] {
				x.settle(lost.why)
			} else {
				rest = append(rest, x)
			}
		}
		if group = rest; len(group) == 0 {
			return nil, nil
		}
	}
}

// lookUp asks the database repeatedly until it is certain whether a transaction was committed, or until the writer stops. If the
// transaction was not committed, lookUp returns its error, so that the writes are repeated.
func (w *writer) lookUp(u *UnknownError) error {
	for pause := 5 * time.Millisecond; ; pause = min(2*pause, w.longest()) {
		committed, err := u.Committed()
		switch {
		case committed:
			return nil
		case err == nil:
			return u.Err
		}
		w.queued.Lock()
		w.trouble = err
		w.queued.Unlock()
		select {
		case <-time.After(pause):
		case <-w.stop:
			return err
		}
	}
}

// news returns a channel that will be closed after the next commit.
func (w *writer) news() <-chan struct{} {
	w.queued.Lock()
	defer w.queued.Unlock()
	if w.committed == nil {
		w.committed = make(chan struct{})
	}
	return w.committed
}

// tell closes the channel returned by news.
func (w *writer) tell() {
	w.queued.Lock()
	defer w.queued.Unlock()
	if w.committed != nil {
		close(w.committed)
		w.committed = nil
	}
}

// settle reports to the caller and the run that a write has been committed or has failed with err.
func (x *write) settle(err error) {
	if x.err = err; x.run != nil {
		x.run.settled(x)
	}
	if x.then != nil {
		x.then(err)
	}
	if x.done != nil {
		close(x.done)
	}
}

// close executes the queued writes, and gives up the leases of the runs.
func (w *writer) close(runs []*run) error {
	w.queued.Lock()
	w.closed = true
	w.queued.Unlock()
	close(w.stop)
	<-w.ended
	if w.lost != nil {
		return w.lost
	}
	var group []*write
	for _, r := range runs {
		if r.held.Load() {
			group = append(group, w.leave(r))
		}
	}
	kept := w.commit(group)
	for limit := time.Now().Add(w.opts.Retry); len(kept) > 0 && time.Now().Before(limit); kept = w.commit(kept) {
		time.Sleep(w.longest())
	}
	if len(kept) > 0 {
		return w.data.Explain(w.trouble)
	}
	for _, x := range group {
		if x.err != nil {
			return x.err
		}
	}
	if len(group) > 0 {
		return w.data.Check()
	}
	return nil
}
