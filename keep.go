package stone

import (
	"context"
	"encoding/json"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

// ground is the DAG under the node of a leaf that has called Await or Keep.
type ground struct {
	from    dag.DAG // the DAG that the body was given
	awaited bool
	bare    dag.DAG // the result of Await, for the failure of the leaf
	full    dag.DAG // bare and the kept nodes, for its node
	kept    dag.Delta
}

// bodyOf returns the frame of the body that was given ctx, and the frame of its visit.
func bodyOf(ctx context.Context) (body, visit *frame) {
	for body = frameOf(ctx); body != nil; body = body.up {
		if body.spec.body != nil || body.spec.scope != nil {
			return body, body.visit()
		}
	}
	return nil, nil
}

// visit returns the frame around all attempts of a leaf.
func (f *frame) visit() *frame {
	for f.up != nil && f.up.spec == f.spec && f.seg != visitSegment {
		f = f.up
	}
	return f
}

// grounds returns, for a leaf that was given d, the DAG to which its failure is added,
// and the one to which its node is added.
func (f *frame) grounds(d dag.DAG) (bare, full dag.DAG, err error) {
	x := f.visit().extra.Load()
	if x == nil {
		return d, d, nil
	}
	g := x.ground.Load()
	if g == nil {
		return d, d, nil
	}
	if bare = d; g.awaited {
		bare = g.bare
	}
	if !same(g.from, d) && (d.Len() > 0 || g.from.Len() != 1) { // or its origin
		return bare, bare, Fail(kind.BadContent, "Await and Keep need the DAG that the body was given: pass it")
	}
	return bare, g.full, nil
}

func same(a, b dag.DAG) bool { return a.Len() == b.Len() && a.Extends(b) }

// standOn makes g the ground of a leaf, unless the run has left its body behind.
func (f *frame) standOn(body *frame, g *ground) error {
	x := f.more()
	x.leave.Lock()
	defer x.leave.Unlock()
	if b := body.extra.Load(); b != nil && b.left {
		return Fail(kind.Canceled, "the run has continued without this body")
	}
	if before := x.ground.Load(); before != nil {
		switch {
		case before.kept != nil || g.awaited:
			return Fail(kind.Error, "want Await, if at all, and then Keep, each once")
		case !same(before.bare, g.from):
			return Fail(kind.Error, "want lanes on the DAG that Await returned")
		}
		g.from, g.awaited, g.bare = before.from, true, before.bare
	}
	x.ground.Store(g)
	return nil
}

// leftBehind is called on the frame of a body when its attempt stops waiting for it.
func (f *frame) leftBehind() {
	x := f.visit().more()
	x.leave.Lock()
	defer x.leave.Unlock()
	f.more().left = true
}

// keepNothing drops the nodes that a failed attempt has kept.
func (f *frame) keepNothing() {
	x := f.visit().more()
	if g := x.ground.Load(); g != nil && g.awaited {
		x.ground.Store(&ground{from: g.from, awaited: true, bare: g.bare, full: g.bare})
	} else {
		x.ground.Store(nil)
	}
}

func (f *frame) keep(body *frame, d dag.DAG, lanes []dag.DAG) (dag.DAG, error) {
	full, err := dag.Join(d, lanes)
	if err != nil {
		return d, err
	}
	kept, err := d.Delta(lanes...)
	if err != nil {
		return d, err
	}
	return full, f.standOn(body, &ground{from: d, bare: d, full: full, kept: kept})
}

func (f *frame) await(ctx context.Context, body *frame, d dag.DAG) (dag.DAG, error) {
	out, err := f.lift(ctx, d, func(to dag.DAG) error {
		return f.standOn(body, &ground{from: d, awaited: true, bare: to, full: to})
	})
	if err != nil {
		return d, err
	}
	if x := f.extra.Load(); x != nil {
		if g := x.ground.Load(); g != nil && g.awaited { // by this call, or an earlier one
			return g.bare, nil
		}
	}
	return out, nil
}

// lift rebases d, which extends the DAG with which a step of the flow around f started,
// onto the committed DAG before that step, once all earlier steps are committed. It
// does the same for every flow further out. Before changing anything it calls agree with
// the DAG that it will return; if agree fails, nothing is changed.
func (f *frame) lift(ctx context.Context, d dag.DAG, agree func(dag.DAG) error) (dag.DAG, error) {
	w, i := f.inFlow()
	if w == nil {
		return d, nil
	}
	s := &w.steps[i]
	if !w.wait(ctx, &s.front) {
		return d, f.inVain(ctx)
	}
	turn := w.turn(i)
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return d, f.inVain(ctx)
	}
	w.mu.Lock()
	front, awaited := w.at[i], s.awaited
	w.mu.Unlock()
	if awaited { // and d was lifted with the step
		return d, nil
	}
	out, asked := d, false
	move := func(front dag.DAG) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if asked = true; same(front, s.start) {
			return nil
		}
		moved, err := dag.Rebase(front, d, s.start)
		if err == nil {
			err = agree(moved)
		}
		if err != nil {
			return err
		}
		out, s.start, s.awaited = moved, front, true
		w.awaited = append(w.awaited, i)
		return nil
	}
	_, err := w.f.lift(ctx, front, move)
	if err == nil && !asked { // nothing was changed further out
		err = move(front)
	}
	return out, err
}

// inFlow returns the flow and the number of its step that f is part of. It returns nil
// outside a flow, and if the body of another ashlar is between the two.
func (f *frame) inFlow() (*flowing, int) {
	for ; f.up != nil && f.seg != visitSegment; f = f.up {
		if f.up.spec.form == flowForm && f.seg == childSegment {
			if x := f.up.extra.Load(); x != nil && x.flow != nil {
				return x.flow, int(f.index)
			}
		}
	}
	return nil, 0
}

// inVain returns the error of a wait that will never succeed.
func (f *frame) inVain(ctx context.Context) error {
	if err := f.over(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return stopped(ctx)
	}
	return Fail(kind.Waiting, "a step before %q waits for an answer", f.spec.name)
}

// turn returns the semaphore that serializes the calls of Await within step i.
func (w *flowing) turn(i int) chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.steps[i].turn == nil {
		w.steps[i].turn = make(chan struct{}, 1)
	}
	return w.steps[i].turn
}

// keptRecord is the ground of a leaf in its Record.
type keptRecord struct {
	Awaited bool      `json:"awaited,omitempty"`
	Nodes   dag.Delta `json:"nodes,omitempty"`
}

// groundRecord returns the ground of f for its record. A failed leaf keeps no nodes.
func (f *frame) groundRecord(failed bool) (json.RawMessage, error) {
	x := f.extra.Load()
	if x == nil {
		return nil, nil
	}
	g := x.ground.Load()
	if g == nil || failed && !g.awaited {
		return nil, nil
	}
	rec := keptRecord{Awaited: g.awaited}
	if !failed {
		rec.Nodes = g.kept
	}
	return canon.Append(nil, rec)
}

// restoreGround restores the ground of a recorded leaf. The body may have run as well,
// if the record of another process was first.
func (f *frame) restoreGround(key step.Key, d dag.DAG, raw json.RawMessage) error {
	if x := f.extra.Load(); x != nil && x.ground.Load() != nil {
		f.keepNothing()
	}
	if len(raw) == 0 {
		return nil
	}
	var rec keptRecord
	if err := json.Unmarshal(raw, &rec); err != nil {
		return f.mismatch(key, "its kept nodes cannot be read: %w", err)
	}
	if rec.Awaited {
		var err error
		if d, err = f.await(f, f, d); err != nil {
			return err
		}
	}
	if len(rec.Nodes) == 0 {
		return nil
	}
	f.run.lossy.Store(true) // lanes may have been lost within it
	d, err := dag.Origin(d)
	if err == nil {
		var lane dag.DAG
		if lane, err = rec.Nodes.Apply(d); err == nil {
			_, err = f.keep(f, d, []dag.DAG{lane})
		}
	}
	if err != nil {
		return f.mismatch(key, "its kept nodes are invalid: %w", err)
	}
	return nil
}
