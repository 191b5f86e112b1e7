package log

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/fleet"
	"github.com/stonelayer/stone/internal/queue"
	"github.com/stonelayer/stone/internal/record"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// Do implements [step.Recorder]. The first call for a run that was not acquired acquires the lease, or fails with a
// [*journal.HeldError] if the run has another holder.
func (j *Journal) Do(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	intent, err := newIntent(ctx, key)
	if err != nil {
		return step.Record{}, err
	}
	later := queue.Of(ctx)
	var r *run
	for started := false; !started; {
		if r, err = j.open(ctx, key.RunID); err != nil {
			return step.Record{}, err
		}
		if rec, err := j.find(ctx, r, key); err != nil || rec.Replayed || record.Lookup(ctx) {
			return rec, err
		}
		if r.isOver() {
			return step.Record{}, fmt.Errorf("run %q, %s: %w", key.RunID, key.Path, journal.ErrDone)
		}
		if rec, err := j.fromAside(ctx, r, key); err != nil || rec.Replayed {
			return rec, err
		}
		if rec, err := j.fromOrigin(ctx, r, key); err != nil || rec.Replayed {
			return rec, err
		}
		if rec, err := j.reuse(ctx, r, key); err != nil || rec.Replayed {
			return rec, err
		}
		if key.Kind == step.Value {
			return j.value(ctx, r, key, work)
		}
		if _, goesOn := record.Child(ctx); goesOn {
			if err := j.settle(r.id); err != nil {
				return step.Record{}, err
			}
			break
		}
		j.opts.Reached("before intent")
		intent.again = r.hasStarted(key.Digest)
		err := j.announce(r, intent, later&queue.Intent != 0)
		if started = err == nil; !started && !errors.Is(err, errStale) {
			return step.Record{}, err
		}
	}
	j.opts.Reached("after intent")
	if rec, err := j.fromAside(ctx, r, key); err != nil || rec.Replayed {
		return rec, errors.Join(err, j.attempted(r, key, budget.Usage{}, nil))
	}
	rec, err := work(record.WithAttempt(ctx, r.begin(key.Digest)))
	if err != nil {
		return step.Record{}, errors.Join(err, j.ended(ctx, r, key, err))
	}
	j.opts.Reached("after work")
	result, err := newResult(ctx, key, rec, "", j.now())
	if err != nil {
		return step.Record{}, err
	}
	return j.keep(ctx, r, key, result, rec, later&queue.Result != 0)
}

// announce writes an intent. If queued is false or the step has a cost, announce waits until the intent and all earlier records of
// the run are durable.
func (j *Journal) announce(r *run, i *intent, queued bool) error {
	x := &write{run: r, intent: i}
	if !queued || i.Declared != nil || i.claim != (fleet.Claim{}) {
		return j.out.write(x)
	}
	return j.queue(x)
}

// value computes a value and queues its record. A value has no intent, and no caller waits until its record is written. If the
// record is lost, the value is computed again; no later record of the run is written before it.
func (j *Journal) value(ctx context.Context, r *run, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	rec, err := work(ctx)
	if err != nil {
		return step.Record{}, err
	}
	result, err := newResult(ctx, key, rec, "", j.now())
	if err != nil {
		return step.Record{}, err
	}
	first, err := j.put(r, key.Digest, &write{run: r, result: result, stays: true, lazy: true})
	if err == nil && !first {
		return j.find(ctx, r, key)
	}
	return rec, err
}

// ended records that an attempt has ended without a result.
func (j *Journal) ended(ctx context.Context, r *run, key step.Key, cause error) error {
	used, known := record.Ended(record.Declared(ctx), cause)
	if known {
		return j.attempted(r, key, used, cause)
	}
	j.fleet.Lose(r.id, key.Digest, record.Declared(ctx))
	return nil
}

// attempted records the usage of an attempt that has no result. The argument why is the attempt's error, or nil if its result was
// put aside.
func (j *Journal) attempted(r *run, key step.Key, used budget.Usage, why error) error {
	row := new(Row)
	h := head{Kind: key.Kind, Name: key.Name, At: j.now().UnixMilli(), Usage: used, Step: key.Digest.String(), Path: key.Path}
	if err := row.fill(h, step.Record{}, nil); err != nil {
		return err
	}
	return j.out.write(&write{run: r, do: func(t *transaction) error {
		p := t.part(r)
		if p.rows < 0 {
			return refused{errStale}
		}
		t.append(p, row, h.event(key.Path, 0))
		t.end(p, key.Digest, why)
		return nil
	}})
}

// mostUnwritten is the maximum number of queued results per run.
const mostUnwritten = 1024

// keep writes a result and returns its record. If the step already has a result, keep returns the record of that result. A lazy
// result is only queued; it becomes durable before the next intent that a caller waits for.
func (j *Journal) keep(ctx context.Context, r *run, key step.Key, result *result, rec step.Record, lazy bool) (step.Record, error) {
	lazy = lazy && r.unwritten.Load() < mostUnwritten
	for {
		x := &write{run: r, result: result, lazy: lazy}
		if lazy {
			x.then = func(err error) { j.late(r, result, err) }
		}
		first, err := j.put(r, key.Digest, x)
		if err == nil && !first {
			return j.find(ctx, r, key)
		}
		queued := err == nil
		if queued && lazy {
			j.opts.Reached("after queue")
			return rec, nil
		}
		if queued {
			err = j.out.wait(x)
		}
		switch {
		case err == nil:
			j.opts.Reached("after acknowledge")
			return rec, nil
		case !queued || errors.As(err, new(*journal.HeldError)):
			return step.Record{}, j.putAside(r, result, err)
		case !errors.Is(err, errStale):
			return step.Record{}, err
		}
	}
}

// late puts aside a queued result that this Journal can no longer record. The writer calls late when the run has already failed.
func (j *Journal) late(r *run, result *result, err error) {
	if result.failed || !errors.As(err, new(*journal.HeldError)) && !errors.Is(err, errStale) {
		return
	}
	x := j.asideWrite(r, result)
	x.then = func(err error) {
		if err != nil {
			slog.Error("the result of a step is lost", "run", r.id, "path", result.Path, "error", err)
		}
	}
	if err := j.out.put(x); err != nil {
		x.then(err)
	}
}

// put queues a result, unless the step already has one. It does not acquire a lost run again, because no caller would release the
// run.
func (j *Journal) put(r *run, digest dag.ID, x *write) (first bool, err error) {
	first, ready, err := r.put(digest, x, j.out)
	if !ready && err == nil {
		err = cmp.Or(context.Cause(j.Held(r.id)), j.notHeld(r.id))
	}
	return first, err
}

func (r *run) put(digest dag.ID, x *write, out *writer) (first, ready bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.ready && !r.known.has(digest) && !r.loading.over {
		r.waitForMore()
	}
	switch {
	case r.known.has(digest):
		return false, true, nil
	case !r.ready:
		return false, false, r.loading.err
	}
	if err := out.put(x); err != nil {
		return false, true, err
	}
	r.known.pending[halfOf(digest)] = x
	r.unwritten.Add(1)
	if x.lazy {
		r.last = x
	}
	return true, true, nil
}

// hasStarted reports whether a step without a result has started before.
func (r *run) hasStarted(digest dag.ID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.attempts[digest] > 0
}

// begin counts an attempt at a step and returns the attempt's number.
func (r *run) begin(digest dag.ID) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempts[digest]++
	return r.attempts[digest]
}

// find returns the record of the step with Replayed set, or the zero Record if there is none.
func (j *Journal) find(ctx context.Context, r *run, key step.Key) (step.Record, error) {
	k, err := r.look(key)
	switch {
	case err != nil || k == place{}:
		return step.Record{}, err
	case k.pending != nil: // the caller that recorded it has stopped waiting
		if err := j.out.wait(k.pending); err != nil {
			return step.Record{}, err
		}
		k.seq = k.pending.result.Seq
	case k.row != nil: // the row was checked when it was read
		rec, err := j.replay(r.id, k.row)
		rec.Differs = k.differs
		return rec, err
	}
	row, err := j.reread(context.WithoutCancel(ctx), r, k.seq) // like the rest of the step, reading does not end when ctx is done
	if err == nil && row == nil {
		err = j.damage(r.id, &Row{Path: key.Path}, errLost)
	}
	if err != nil {
		return step.Record{}, err
	}
	rec, err := j.replay(r.id, row)
	rec.Differs = k.differs
	return rec, err
}

// reread reads the row with the given number again. It returns nil if there is none. It reads ahead if callers request rows in
// order.
func (j *Journal) reread(ctx context.Context, r *run, seq int64) (row *Row, err error) {
	run, err := j.data.Run(ctx, r.id)
	if err != nil || run == nil {
		return nil, j.data.Explain(err)
	}
	which, most := Selection{Seq: seq}, 1
	if r.inOrder(seq) {
		which, most = Selection{After: seq - 1}, batch
	}
	var rows []*Row
	for row, err := range j.data.Rows(ctx, run.Row, which) {
		if err != nil {
			return nil, j.data.Explain(err)
		}
		if err := row.check(true); err != nil {
			return nil, j.damage(r.id, row, err)
		}
		if rows = append(rows, row); len(rows) == most {
			break
		}
	}
	if len(rows) == 0 || rows[0].Seq != seq {
		return nil, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known.next = max(r.known.next, rows[len(rows)-1].Seq+1)
	for _, row := range rows[1:] {
		if digest := halfOf(id(row.Digest)); row.isResult() && int64(r.known.rows[digest]) == row.Seq {
			r.known.ahead.put(digest, row)
		}
	}
	r.known.ahead.trim(mostAhead)
	return rows[0], nil
}

// inOrder reports whether the row with the given number comes soon after the last rows that were read. Concurrent callers request
// rows only roughly in numerical order.
func (r *run) inOrder(seq int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	from := r.known.next
	if seq < from-4*batch || seq > from+batch {
		r.known.next = seq
	}
	return seq >= from && seq <= from+batch
}

// place is the location of a result. The zero place means that there is no result.
type place struct {
	seq     int64
	row     *Row // nil if the row must still be read
	pending *write
	differs bool // see step.Record
}

// look finds the result of a step, or of different work recorded at the same place. While the run is being loaded, look waits
// until the step has been read.
func (r *run) look(key step.Key) (place, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for digest := halfOf(key.Digest); ; r.waitForMore() {
		if x := r.known.pending[digest]; x != nil {
			return place{pending: x}, nil
		}
		if seq, ok := r.known.rows[digest]; ok {
			row := r.known.ahead.take(digest)
			if r.loading.taken++; r.known.ahead.size <= mostAhead/2 {
				r.loading.resume.Broadcast()
			}
			return place{seq: int64(seq), row: row}, nil
		}
		if !r.loading.over {
			continue
		}
		if seq, ok := r.known.places[halfOf(key.Place())]; ok && key.Placed() && r.loading.err == nil {
			return place{seq: int64(seq), differs: true}, nil
		}
		return place{}, r.loading.err
	}
}

// reuse returns a record of another run with the same Reuse, if this run may use it. It also records the result in this run,
// because the other run may be removed. It does not reuse damaged records.
func (j *Journal) reuse(ctx context.Context, r *run, key step.Key) (step.Record, error) {
	r.mu.Lock()
	from := r.reuse
	r.mu.Unlock()
	if !key.Fresh.IsZero() {
		from = journal.AnyRun
	}
	if key.Reuse == (dag.ID{}) || from == "" {
		return step.Record{}, nil
	}
	ctx = context.WithoutCancel(ctx)
	origins, err := j.originsOf(ctx, r, from)
	if err != nil || origins == nil {
		return step.Record{}, err
	}
	var rec step.Record
	var origin int64
	for row, err := range j.data.Reusable(ctx, key.Reuse[:], origins.from, origins.but) {
		if err != nil {
			return step.Record{}, j.data.Explain(err)
		}
		if row.check(true) != nil {
			continue
		}
		if rec, err = j.replay(from, row); err == nil && !rec.Time.Before(key.Fresh) {
			origin = row.Run
			break
		}
	}
	if origin == 0 {
		return step.Record{}, nil
	}
	name, err := j.nameOf(ctx, r, origin)
	if err != nil {
		return step.Record{}, err
	}
	rec = rec.ReusedFrom(name)
	own, err := newResult(ctx, key, rec, name, j.now())
	if err != nil {
		return step.Record{}, err
	}
	return j.keep(ctx, r, key, own, rec, false)
}

// fromOrigin returns the step's record in the run from which this one was forked, and also records the result in this run. If that
// record is damaged, the step is repeated.
func (j *Journal) fromOrigin(ctx context.Context, r *run, key step.Key) (step.Record, error) {
	o := record.OriginOf(ctx)
	if o.Run == "" {
		return step.Record{}, nil
	}
	ctx = context.WithoutCancel(ctx)
	from, err := j.data.Run(ctx, o.Run)
	if err != nil || from == nil {
		return step.Record{}, j.data.Explain(err)
	}
	var found *Row
	for row, err := range j.data.Rows(ctx, from.Row, Selection{Path: key.Path}) {
		if err != nil {
			return step.Record{}, j.data.Explain(err)
		}
		at, placed := row.place()
		if id(row.Digest) == o.Digest {
			found = row
			break
		}
		if o.Placed && placed && at == step.Place(key.Kind, key.Path) {
			found = row // the last result is the current one
		}
	}
	if found == nil || found.check(true) != nil {
		return step.Record{}, nil
	}
	rec, err := j.replay(o.Run, found)
	if err != nil || rec.Unshared {
		return step.Record{}, nil
	}
	rec = record.As(rec.ReusedFrom(o.Run), id(found.Node))
	own, err := newResult(ctx, key, rec, o.Run, j.now())
	if err != nil {
		return step.Record{}, err
	}
	return j.keep(ctx, r, key, own, rec, true)
}

// origins says from which runs results may be reused: from the run with the number from (all runs if it is 0), but not from the
// run with the number but.
type origins struct{ from, but int64 }

// originsOf is like Journal.origins, but caches the result in the run.
func (j *Journal) originsOf(ctx context.Context, r *run, from string) (*origins, error) {
	r.mu.Lock()
	o := r.origins[from]
	r.mu.Unlock()
	if o != nil {
		return o, nil
	}
	o, err := j.origins(ctx, from, r.id)
	if err == nil && o != nil && o.but != 0 {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.origins[from] = o
	}
	return o, err
}

// nameOf is like name, but caches the result in the run.
func (j *Journal) nameOf(ctx context.Context, r *run, row int64) (string, error) {
	r.mu.Lock()
	name := r.names[row]
	r.mu.Unlock()
	if name != "" {
		return name, nil
	}
	name, err := j.name(ctx, row)
	if err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.names[row] = name
	}
	return name, err
}

func (j *Journal) origins(ctx context.Context, from, own string) (*origins, error) {
	var o origins
	run, err := j.data.Run(ctx, own)
	if err != nil {
		return nil, j.data.Explain(err)
	}
	if run != nil {
		o.but = run.Row
	}
	if from == journal.AnyRun {
		return &o, nil
	}
	other, err := j.data.Run(ctx, from)
	if err != nil || other == nil {
		return nil, j.data.Explain(err)
	}
	o.from = other.Row
	return &o, nil
}

var errNoName = errors.New("the run of a record has no row")

// name returns the ID of the run with the given number.
func (j *Journal) name(ctx context.Context, row int64) (string, error) {
	for run, err := range j.data.Runs(ctx, RunSelection{Before: row + 1, Most: 1}) {
		if err != nil {
			return "", j.data.Explain(err)
		}
		if run.Row == row {
			return run.ID, nil
		}
		break
	}
	return "", errNoName
}

func (j *Journal) replay(run string, row *Row) (step.Record, error) {
	h, err := row.open()
	if err != nil {
		return step.Record{}, j.damage(run, row, err)
	}
	h.Record.Path = row.Path
	return *h.Record, nil
}

func (j *Journal) damage(run string, row *Row, why error) error {
	e := &journal.DamageError{Where: j.data.Name(), Run: run, Path: row.Path, Reason: why.Error()}
	if row.Node != nil {
		e.Node = id(row.Node).String()
	}
	return e
}
