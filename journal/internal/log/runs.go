package log

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/internal/jsonv2"
	"github.com/stonelayer/stone/internal/record"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/internal/outline"
)

// seal sets the checksum of a run's description. The shape has its own half of the checksum.
func (r *Run) seal() { r.Seal = seal(r.Shape, r.fields()...) }

func (r *Run) fields() [][]byte {
	places := binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, uint64(r.Tail)), uint64(r.Tip))
	return [][]byte{[]byte(r.ID), []byte(r.State), r.Info, r.Outcome, places}
}

// opened checks and decodes the description of a run. It includes the shape if that was read.
func (j *Journal) opened(r *Run, shape bool) (info journal.RunInfo, err error) {
	if r.Info == nil && r.Outcome == nil && r.Seal == nil {
		return info, nil
	}
	if !unbroken(r.Seal, r.Shape, shape, r.fields()...) {
		err = errChanged
	} else if err = jsonv2.UnmarshalV1(r.Info, &info); err == nil {
		info.Outcome = journal.Outcome{} // fields that the JSON omits must be zero
		if err = jsonv2.UnmarshalV1(r.Outcome, &info.Outcome); err == nil && shape {
			err = jsonv2.UnmarshalV1(r.Shape, &info.Shape)
		}
	}
	if err != nil {
		err = &journal.DamageError{Where: j.data.Name(), Run: r.ID, Reason: err.Error()}
	}
	return info, err
}

// info returns the description of a run that this Journal holds, or a zero RunInfo if the run has not been started.
func (j *Journal) info(ctx context.Context, r *run) (journal.RunInfo, error) {
	r.mu.Lock()
	fresh, begun := r.fresh, r.begun
	r.mu.Unlock()
	if fresh && (r.outer != nil || !begun) { // the run may not be in the database yet
		return journal.RunInfo{}, nil
	}
	row, err := j.data.Run(ctx, r.id)
	if err != nil || row == nil {
		return journal.RunInfo{}, j.data.Explain(err)
	}
	return j.opened(row, true)
}

// Begin implements [journal.Journal].
func (j *Journal) Begin(ctx context.Context, info journal.RunInfo, input dag.DAG) error {
	r := j.holding(info.ID)
	if r == nil {
		return j.notHeld(info.ID)
	}
	if err := bounds.CheckRun(info.Pipeline, info.Labels); err != nil {
		return err
	}
	var given *result
	if input.Len() > 0 {
		key, rec, err := journal.InputStep(info, input)
		if err != nil {
			return err
		}
		if given, err = newResult(background, key, rec, "", j.now()); err != nil {
			return err
		}
	}
	shape, err := json.Marshal(info.Shape)
	if err != nil {
		return fmt.Errorf("shape of run %q: %w", info.ID, err)
	}
	reuse := info.Reuse
	info.Shape, info.Owner = nil, ""
	info.Outcome = journal.Outcome{State: journal.Running, Steps: info.Steps, Usage: info.Usage}
	text, err := json.Marshal(info)
	if err != nil {
		return fmt.Errorf("facts about run %q: %w", info.ID, err)
	}
	outcome, err := json.Marshal(info.Outcome)
	if err != nil {
		return err
	}
	r.stopLoading()
	j.fleet.Leave(info.ID, false)
	term := j.term(r.id)
	r.mu.Lock()
	fresh, opens := r.fresh, r.fresh && r.outer == nil && record.Begins(ctx)
	x := &write{run: r, free: opens, do: func(t *transaction) error {
		as := Run{
			ID: r.id, Owner: j.owner, Lease: term.Milliseconds(),
			State: string(journal.Running), Pipeline: Column(info.Pipeline), Started: millis(info.Started), Info: text, Shape: shape, Outcome: outcome,
		}
		return t.begin(r, as, info.Labels, given, opens)
	}}
	if opens {
		r.opening = x
	}
	r.mu.Unlock()
	switch {
	case opens:
		err = j.queue(x)
	case fresh:
		err = j.send(x)
	default:
		err = j.out.write(x)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.account, r.shared = info.Account, named(info.Budgets)
	if fresh {
		r.reuse, r.begun = reuse, err == nil && r.outer == nil
	} else {
		r.ready = false // the records in memory may be out of date
	}
	return err
}

// begin records that a run starts or continues, and its input if that is new. It deletes the records that belonged only to the
// last outcome, and detaches the failures to retry.
func (t *transaction) begin(r *run, as Run, labels map[string]string, input *result, opens bool) error {
	p := t.find(r)
	if p.row != 0 && opens { // this process may have lost the run, and the run may have been removed since then
		switch row, err := t.Run(background, r.id); {
		case err != nil:
			return err
		case row == nil:
			p.row = 0
		}
	}
	switch {
	case p.row == 0 && r.outer != nil: // the lease could not be acquired
		return refused{cmp.Or(r.failure(), t.j.notHeld(r.id))}
	case p.row == 0:
		row, now, err := t.j.lease(background, t, r.id)
		switch {
		case err != nil:
			return err
		case row == nil:
			return t.make(p, as, labels, input)
		case !now.free() || row.Info != nil || row.Rows > 0:
			return refused{t.j.held(r.id, cmp.Or(now.owner, "another process"))}
		}
		if _, err := t.take(r, row, time.Duration(as.Lease)*time.Millisecond); err != nil { // the run exists because it has a question, but was never started
			return err
		}
		p.rows, p.next = 0, 0
	}
	t.part(r)
	if err := t.flush(); err != nil {
		return err
	}
	row, err := t.Run(background, r.id)
	if err != nil {
		return err
	}
	before, err := t.j.opened(row, true)
	if err != nil {
		return refused{err}
	}
	if isRemoving(before.Outcome) {
		return refused{fmt.Errorf("run %q: %s", r.id, interrupted)}
	}
	var removed int64
	if row.Tail > 0 {
		if removed, err = t.Delete(row.Row, row.Tail, row.Tip); err != nil {
			return err
		}
		clear(r.nodes) // the remaining nodes are read again before the run ends
	}
	if before.State == journal.Failed {
		if err := t.forget(p, row, before.Retry); err != nil {
			return err
		}
	}
	row.State, row.Info, row.Shape, row.Outcome, row.Tail, row.Tip = as.State, as.Info, as.Shape, as.Outcome, 0, 0
	row.Pipeline, row.Started, row.Ended = as.Pipeline, as.Started, 0
	row.seal()
	if err := t.Put(row, All); err != nil {
		return err
	}
	if !maps.Equal(labels, before.Labels) {
		if err := t.Label(row.Row, labels); err != nil {
			return err
		}
	}
	loaded := p.rows >= 0
	p.rows, p.touched = row.Rows-removed, true
	if input != nil {
		if err := t.beginWith(p, input); err != nil {
			return err
		}
	}
	if err = t.flush(); !loaded {
		p.rows = -1
	}
	return err
}

// make records the start of a new run. The same write acquires the lease.
func (t *transaction) make(p *part, as Run, labels map[string]string, input *result) error {
	as.seal()
	if err := t.Insert(&as); err != nil {
		return err
	}
	p.row, p.rows, p.next, p.beat, p.ours, p.recent, p.outlined = as.Row, 0, 0, 0, true, recent{}, 0
	clear(p.run.nodes)
	if len(labels) > 0 {
		if err := t.Label(p.row, labels); err != nil {
			return err
		}
	}
	if input != nil {
		t.append(p, input.Row, input.event)
	}
	return t.flush()
}

// beginWith appends the input of a run, unless it is already recorded.
func (t *transaction) beginWith(p *part, input *result) error {
	if p.rows > 0 {
		for row, err := range t.Rows(background, p.row, Selection{Path: input.Path, Heads: true}) {
			if err != nil || id(row.Digest) == id(input.Digest) {
				return err
			}
		}
		for row, err := range t.Rows(background, p.row, Selection{After: p.next, Heads: true}) {
			if err != nil {
				return err
			}
			p.next = row.Seq
		}
	}
	t.append(p, input.Row, input.event)
	return nil
}

// forget detaches failures from the steps with the given paths. Their rows are kept, because the cost of the attempts still
// counts.
func (t *transaction) forget(p *part, r *Run, paths []string) error {
	var events []outline.Event
	for _, path := range paths {
		var failures []*Row
		for row, err := range t.Rows(background, r.Row, Selection{Path: path}) {
			if err != nil {
				return err
			}
			err = row.check(true)
			h, bad := row.open()
			if err = cmp.Or(err, bad); err != nil {
				return refused{t.j.damage(r.ID, row, err)}
			}
			if h.Record.Failure != nil {
				events = append(events, outline.Event{What: outline.Forgotten, Path: path, Kind: h.Kind, Seq: row.Seq})
				if row, err = detached(row, h); err != nil {
					return refused{err}
				}
				failures = append(failures, row)
			}
		}
		for _, row := range failures {
			if _, err := t.Delete(row.Run, row.Seq, row.Seq); err != nil {
				return err
			}
		}
		if len(failures) == 0 {
			continue
		}
		if err := t.Append(failures); err != nil {
			return err
		}
	}
	if len(events) == 0 {
		return nil
	}
	return t.forgotten(p, events)
}

// holding returns the run with the ID if this Journal holds it, or nil.
func (j *Journal) holding(id string) *run {
	j.mu.Lock()
	defer j.mu.Unlock()
	if r := j.runs[id]; r != nil && r.held.Load() && r.leaving == nil {
		return r
	}
	return nil
}

func (j *Journal) notHeld(id string) error {
	return fmt.Errorf("run %q in %s %w: acquire it first, as journal.Keep does", id, j.data.Name(), errNotHeld)
}

var errNotHeld = errors.New("is not held by this journal")

// End implements [journal.Journal].
func (j *Journal) End(ctx context.Context, id string, o journal.Outcome) error {
	held := j.holding(id)
	if held == nil {
		return cmp.Or(context.Cause(j.Held(id)), j.notHeld(id))
	}
	if o.State == journal.Refused {
		if err := j.refuse(ctx, held, o); err != nil {
			return err
		}
		return j.Release(id)
	}
	r, err := j.open(ctx, id)
	if err == nil {
		err = r.loaded()
	}
	if err != nil {
		return err
	}
	r.mu.Lock()
	fresh := r.fresh
	r.mu.Unlock()
	nodes := o.DAG
	o.Heads, o.DAG = record.HeadsOf(nodes), dag.DAG{}
	text, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("outcome of run %q: %w", id, err)
	}
	x := &write{run: r, stays: true, done: make(chan struct{}), do: func(t *transaction) error {
		if err := r.failure(); err != nil {
			return refused{err}
		}
		p := t.part(r)
		tail := p.next + 1
		for n := range nodes.Nodes() {
			if !r.hasNode(n.ID()) {
				if err := t.node(p, n); err != nil {
					return err
				}
			}
		}
		if err := t.flush(); err != nil {
			return err
		}
		if p.next >= outlineEvery && p.next > p.outlined {
			if err := t.summarise(p); err != nil {
				return err
			}
		}
		if !fresh && o.State == journal.Done {
			if err := t.clearAside(p.row); err != nil {
				return err
			}
		}
		row, err := t.Run(background, id)
		if err != nil {
			return err
		}
		if err := t.possible(p, row, o); err != nil {
			return err
		}
		row.State, row.Outcome, row.Tail, row.Tip = string(o.State), text, 0, 0
		row.Ended = millis(o.Ended)
		if tail <= p.next {
			row.Tail, row.Tip = tail, p.next
		}
		row.Lease, row.Outer = 0, ""
		row.seal()
		if err := t.Put(row, Ending); err != nil {
			return err
		}
		return t.stops(r, row, o)
	}}
	x.then = func(err error) {
		if err == nil {
			j.left(r, o.State == journal.Waiting)
			return
		}
		j.mu.Lock()
		defer j.mu.Unlock()
		r.leaving = nil
	}
	j.mu.Lock()
	r.leaving = x
	j.mu.Unlock()
	if r.outer != nil {
		err = j.send(x)
	} else {
		err = j.out.put(x)
	}
	if err != nil {
		x.settle(err)
		return err
	}
	if r.outer == nil {
		if err := cmp.Or(j.out.wait(x), r.failure()); err != nil {
			return err
		}
	}
	return j.data.Check()
}

// possible charges the estimated cost of the run's lost attempts, which is known now that the run ends.
func (t *transaction) possible(p *part, row *Run, o journal.Outcome) error {
	var before journal.Outcome
	if err := json.Unmarshal([]byte(cmp.Or(string(row.Outcome), "{}")), &before); err != nil {
		return refused{&journal.DamageError{Where: t.j.data.Name(), Run: row.ID, Reason: err.Error()}}
	}
	now, then := o.Usage.Possible, before.Usage.Possible
	p.paid.USD, p.paid.Tokens, p.paid.Roundtrips = p.paid.USD+now.USD-then.USD, p.paid.Tokens+now.Tokens-then.Tokens, p.paid.Roundtrips+now.Attempts-then.Attempts
	return nil
}

// refuse records a Refused outcome, which keeps the nodes of the previous outcome.
func (j *Journal) refuse(ctx context.Context, r *run, o journal.Outcome) error {
	text, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("outcome of run %q: %w", r.id, err)
	}
	info, err := j.info(ctx, r)
	if err != nil {
		return err
	}
	r.mu.Lock() // the account and budgets of a run that did not begin are not set yet
	r.account, r.shared = info.Account, named(info.Budgets)
	r.mu.Unlock()
	return j.send(&write{run: r, do: func(t *transaction) error {
		p := t.part(r)
		if err := t.flush(); err != nil {
			return err
		}
		row, err := t.Run(background, r.id)
		if err == nil {
			err = t.possible(p, row, o)
		}
		if err != nil {
			return err
		}
		row.State, row.Outcome, row.Ended = string(o.State), text, millis(o.Ended)
		row.seal()
		if err := t.Put(row, Ending); err != nil {
			return err
		}
		return t.stops(r, row, o)
	}})
}
