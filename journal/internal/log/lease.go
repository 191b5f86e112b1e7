package log

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/internal/record"
	"github.com/stonelayer/stone/journal"
)

// lease is the observed state of a lease.
type lease struct {
	exists bool // whether the run exists
	owner  string
	beat   int64
	time   int64 // validity in milliseconds; 0 if the run has no holder
}

func (l lease) free() bool { return l.time == 0 }

// patience returns how long the owner may be silent before the run can be taken over.
func (l lease) patience() time.Duration { return time.Duration(l.time) * time.Millisecond }

// lease reads a run and the lease that covers it: its own, or its outer run's.
func (j *Journal) lease(ctx context.Context, from Reader, id string) (*Run, lease, error) {
	now, err := from.Run(ctx, id)
	if err != nil || now == nil {
		return nil, lease{}, err
	}
	has := now
	if now.Outer != "" {
		outer, err := from.Run(ctx, now.Outer)
		if err != nil {
			return nil, lease{}, err
		}
		if outer != nil {
			has = outer
		}
	}
	return now, lease{true, has.Owner, has.Beat, has.Lease}, nil
}

// mostDoubled is the maximum number of times that a run's lease is doubled.
const mostDoubled = 3

// mostLosses is the maximum number of lost runs to remember.
const mostLosses = 10_000

// term returns the duration of the lease with which this process acquires a run. If this process has lost the run, it was too
// slow to renew its lease. Each loss doubles the duration, at most mostDoubled times, so that others wait longer before they take
// over the run.
func (j *Journal) term(id string) time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.opts.Lease << min(j.losses[id], mostDoubled)
}

// Acquire implements [journal.Journal].
func (j *Journal) Acquire(ctx context.Context, id string) (journal.RunInfo, error) {
	r, row, err := j.hold(ctx, id)
	if err != nil {
		return journal.RunInfo{}, err
	}
	var info journal.RunInfo
	if row != nil {
		info, err = j.opened(row, true)
	} else {
		info, err = j.info(ctx, r)
	}
	if err != nil { // after an error the caller will not release the run
		return journal.RunInfo{}, errors.Join(err, j.Release(id))
	}
	return info, nil
}

// hold acquires the lease of a run. If it has read the run's row, it returns that too. The row may be damaged.
func (j *Journal) hold(ctx context.Context, id string) (*run, *Run, error) {
	r, err := j.entry(id)
	if err != nil {
		return nil, nil, err
	}
	if r.acquired || r.held.Load() {
		j.mu.Unlock()
		return nil, nil, j.held(id, j.owner)
	}
	r.acquired = true
	j.mu.Unlock()
	r.forgive()

	row, err := j.taken(ctx, r)
	if err == nil {
		return r, row, nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if r.acquired = false; !r.held.Load() && j.runs[id] == r {
		delete(j.runs, id)
	}
	return nil, nil, j.data.Explain(err)
}

// taken acquires the lease, unless this Journal already holds the run.
func (j *Journal) taken(ctx context.Context, r *run) (*Run, error) {
	r.taking.Lock()
	defer r.taking.Unlock()
	if r.held.Load() { // Do has acquired the lease in the meantime
		return nil, nil
	}
	return j.acquire(ctx, r)
}

// acquire acquires the lease of a run: immediately if the run has no holder, otherwise as soon as the owner has been silent for as
// long as the lease is valid.
func (j *Journal) acquire(ctx context.Context, r *run) (*Run, error) {
	_, now, err := j.lease(ctx, j.data, r.id)
	if err != nil {
		return nil, err
	}
	for seen := j.sighted(r.id).again(now); ; {
		if seen.free() || seen.owner == j.owner || seen.over() {
			if row, taken, err := j.take(r, seen.lease, record.Begins(ctx) && !seen.exists); taken || err != nil {
				return row, err
			}
		} else {
			select {
			case <-time.After(seen.patience()/8 + time.Millisecond):
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
		_, now, err := j.lease(ctx, j.data, r.id)
		switch {
		case err != nil:
			return nil, err
		case now != seen.lease && !now.free():
			return nil, j.held(r.id, now.owner)
		}
		seen = seen.again(now)
	}
}

// take acquires the lease, unless it has changed since seen was observed. It returns the row of the run. For a new run it returns
// nil; the lease is then acquired by the write that starts the run.
func (j *Journal) take(r *run, seen lease, begins bool) (row *Run, taken bool, err error) {
	term := j.term(r.id)
	var has *Run   // the writer owns has and still until write returns
	var still bool // whether the lease is unchanged
	x := &write{run: r, free: true, do: func(t *transaction) error {
		row, now, err := j.lease(background, t, r.id)
		if err != nil {
			return err
		}
		if still = now == seen || now.owner == j.owner && now.exists; !still {
			if r.outer != nil {
				return refused{j.held(r.id, now.owner)}
			}
			return nil
		}
		has, err = t.take(r, row, term)
		return err
	}}
	switch {
	case r.outer != nil && (seen.free() || seen.owner == j.owner):
		taken = true
		err = j.send(x)
	case begins: // Begin will acquire the lease
		if err := bounds.CheckID(r.id); err != nil {
			return nil, false, err
		}
		r.hold(true)
		return nil, true, nil
	default:
		if err = j.out.write(x); err == nil {
			row, taken = has, still
		}
	}
	if err != nil || !taken {
		return nil, false, err
	}
	r.hold(!seen.exists)
	return row, true, nil
}

// hold records that this Journal now holds the run.
func (r *run) hold(fresh bool) {
	outer := background
	if r.outer != nil { // the outer run's lease covers this run
		outer = r.outer.lastTenure()
	}
	r.mu.Lock()
	r.fresh, r.begun = fresh, false
	r.tenure.begin(outer)
	r.mu.Unlock()
	r.held.Store(true)
}

// take stores this Journal as the owner of the run, and returns the run's row. If row is nil, the run is new.
func (t *transaction) take(r *run, row *Run, term time.Duration) (*Run, error) {
	if r.outer != nil {
		t.part(r.outer)
	}
	p := t.find(r)
	fresh := row == nil
	if fresh {
		if err := bounds.CheckID(r.id); err != nil {
			return nil, refused{err}
		}
		row = &Run{ID: r.id}
	}
	row.Owner, row.Lease, row.Outer = t.j.owner, term.Milliseconds(), ""
	if r.outer != nil {
		row.Owner, row.Lease, row.Outer = "", 0, r.outer.id
	}
	p.beat = row.Beat
	var err error
	if fresh {
		err = t.Insert(row)
		p.rows, p.next = 0, 0
	} else {
		err = t.Put(row, Holding)
		p.rows = -1
	}
	p.row, p.touched, p.ours = row.Row, !fresh, fresh
	return row, err
}

// Release implements [journal.Journal]: it gives up the lease, so that another process can acquire the run, and drops the run from
// memory. If results cannot be written at the moment, it does neither.
func (j *Journal) Release(id string) error {
	j.mu.Lock()
	r := j.runs[id]
	if r == nil || r.leaving != nil {
		j.mu.Unlock()
		return nil
	}
	lost := r.acquired && !r.held.Load()
	if r.acquired = false; !r.held.Load() {
		j.fleet.Leave(id, false)
		if delete(j.runs, id); lost {
			if len(j.losses) >= mostLosses {
				clear(j.losses) // too many to remember: start counting again
			}
			j.losses[id]++
		}
		j.mu.Unlock()
		return nil
	}
	x := j.leave(r)
	x.then = func(error) { j.left(r, false) }
	r.leaving = x
	j.mu.Unlock()
	r.endTenure(j.notHeld(id))
	r.stopLoading()
	later := r.unwritten.Load() > 0
	err := j.out.put(x)
	if err != nil {
		x.settle(err)
	}
	if err != nil || later || r.outer != nil {
		return err
	}
	return cmp.Or(j.out.wait(x), r.failure())
}

// left drops a run that this Journal has released. If waits is set, the run may be waiting for a batch, so its requests stay in
// flight.
func (j *Journal) left(r *run, waits bool) {
	j.fleet.Leave(r.id, waits)
	r.endTenure(j.notHeld(r.id))
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.losses, r.id)
	delete(j.runs, r.id)
}

// Held implements [journal.Journal].
func (j *Journal) Held(id string) context.Context {
	j.mu.Lock()
	r := j.runs[id]
	j.mu.Unlock()
	if r != nil {
		if held := r.lastTenure(); held != nil {
			return held
		}
	}
	never, cancel := context.WithCancelCause(background)
	cancel(j.notHeld(id))
	return never
}

// leave returns the write that gives up the lease of a run. The write removes a run that was never started and has neither
// records nor questions.
func (j *Journal) leave(r *run) *write {
	return &write{run: r, free: true, stays: true, done: make(chan struct{}), do: func(t *transaction) error {
		row, err := t.Run(background, r.id)
		if err != nil || row == nil || row.Owner != r.owner(j.owner) {
			return err
		}
		p := t.find(r)
		empty := row.Info == nil && row.Rows == 0 && p.rows <= 0
		if empty {
			asked, err := asks(background, t, QuestionSelection{Run: row.Row})
			if err != nil {
				return err
			}
			empty = !asked
		}
		p.touched = false
		if empty {
			return t.remove(p)
		}
		row.Lease, row.Outer = 0, ""
		return t.Put(row, Holding)
	}}
}
