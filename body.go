package stone

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

// In returns the Body to which ctx belongs. The context ctx must be the one passed to the body, or derived from it.
func In(ctx context.Context) Body { return Body{ctx} }

// A Body is the place in a run where a leaf's or Scoped's body runs; see [In]. Its methods may be called from several goroutines
// at once. Outside a run, RunID and Path are empty, Grant allows nothing, no event is sent, and the other methods fail.
type Body struct{ ctx context.Context }

// RunID returns the run's id.
func (b Body) RunID() string {
	if f := frameOf(b.ctx); f != nil {
		return f.run.id
	}
	return ""
}

// Path returns the address of the ashlar, the attempt or the Step, for example "review/loop[2]/lane[17]/draft~2". RunID and Path
// together stay the same when a run is resumed and are unique within a run: use them as the idempotency key of calls to other
// services.
func (b Body) Path() string {
	if f := frameOf(b.ctx); f != nil {
		return f.path()
	}
	return ""
}

// Recorded reports whether the run already has the result of the body's [Step] with the given name. If recorded is true, an
// earlier process or a worker has produced the result; if repeated is true, an earlier attempt in this process has. Package
// budget uses Recorded to charge a step only once.
func (b Body) Recorded(name string) (recorded, repeated bool) {
	f := frameOf(b.ctx)
	if f == nil {
		return false, false
	}
	path := f.path() + "/" + address.Escape(name)
	if r, ok := f.run.recorder.(remembering); ok {
		recorded = r.Has(step.Key{RunID: f.run.id, Path: path, Kind: stepKind, Name: name})
	}
	return recorded, f.repeated(path)
}

// remembering is the interface of Recorders with the optional method Has; see step.Recorder.
type remembering interface{ Has(step.Key) bool }

// Grant returns the effects that the run and its Policy allow at this place; nil means that all are allowed. Use it to check
// effects that are known only when the body runs.
func (b Body) Grant() []string {
	f := frameOf(b.ctx)
	switch {
	case f == nil:
		return []string{}
	case f.run.policy != nil:
		return f.run.policy.Narrow(b.ctx, f.granted())
	}
	return f.granted()
}

// Ashlar returns the leaf or Scoped whose body runs, or outside a run the zero Ashlar.
func (b Body) Ashlar() Ashlar {
	if body, _ := bodyOf(b.ctx); body != nil {
		return Ashlar{body.spec}
	}
	return Ashlar{}
}

// Event sends an event with the given name, for example "cache-hit", to the run's watcher. If no watcher wants events of that
// level, Event does nothing.
func (b Body) Event(level slog.Level, name string, attrs ...slog.Attr) {
	if f := frameOf(b.ctx); f != nil && f.Wants(level) {
		f.Send(event.Custom{Name: name, At: level, Attrs: slices.Clone(attrs)})
	}
}

// Enabled reports whether a watcher wants events of the given level. Call it before computing expensive attributes.
func (b Body) Enabled(level slog.Level) bool {
	f := frameOf(b.ctx)
	return f != nil && f.Wants(level)
}

// RunChild runs a child of the Scoped, or of the leaf with Children, whose body calls it. It returns d with the child's nodes
// added, and with a failure in flight if the child failed. Running one child twice at the same time is an error.
func (b Body) RunChild(child Ashlar, d dag.DAG) dag.DAG {
	f := frameOf(b.ctx)
	if f == nil {
		return outside(d)
	}
	return f.inner(b.ctx, child, d)
}

// RunDynamic runs an ashlar that was made during the run, for example from a plan that a model wrote. It returns d with the nodes
// of p added, and with a failure in flight if p failed. The ashlar becomes part of the run: its addresses start with the body's
// address, and it is recorded, watched and cancelled like every other step. A leaf that wants to keep the nodes of p calls Keep.
//
// RunDynamic first validates p with d as its input. If p is rejected, none of it runs, and the failure has kind "invalid" and
// unwraps to *Invalid. The ashlar may need only effects that both grant and the enclosing run allow. A nil grant adds no limit.
//
// The ashlar can read whatever its own queries name, independently of the body's queries. The returned DAG can be read without
// declared queries. Within a Flow, d has only the nodes that the leaf's queries name; see Await. Running two ashlars with the
// same name at the same time is an error. A leaf can declare p beforehand with Children: Validate then checks p, and after
// Replace, RunDynamic runs its replacement.
func (b Body) RunDynamic(p Ashlar, d dag.DAG, grant []string) dag.DAG {
	f := frameOf(b.ctx)
	if f == nil {
		return outside(d)
	}
	return f.dynamic(b.ctx, p, d.Within(nil), grant)
}

// Await blocks until every earlier step of the enclosing Flow has been committed and returns the complete DAG at that point,
// which can be read without declared queries. Use it in the body of a leaf that discovers its inputs at run time, such as one
// that calls RunDynamic. The argument d must be the DAG that the body was given. The leaf's node is then appended to the DAG that
// Await returned, and the steps of the Flow that read the node also see everything before it.
//
// Outside of a Flow, Await returns d at once. Call it in the body itself, not within a Step. Whether the body calls Await may
// depend only on the nodes that the body has read, because a resumed run must wait in the same places. Await fails when the
// context is done, and with an error that is kind.Waiting if an earlier step is waiting for an answer.
func (b Body) Await(d dag.DAG) (dag.DAG, error) {
	body, leaf := bodyOf(b.ctx)
	if body == nil {
		return d, errNoRun
	}
	body.unshare()
	return leaf.await(b.ctx, body, d.Within(nil))
}

// Keep returns d with lanes, such as the DAG that RunDynamic returned, added beside the node that the leaf makes. The lanes stay
// in the DAG, and dag.All finds them, like the lanes of a fan-out. The argument d must be the body's DAG, or the DAG that Await
// returned, and every lane must extend it; if d is empty, call [dag.Origin] first. A body that builds its node itself builds it
// on the DAG that Keep returns. Call Keep once, with all lanes, in the body itself and not within a Step.
//
// In a Flow, kept nodes are visible to the steps that read what the leaf produces.
func (b Body) Keep(d dag.DAG, lanes ...dag.DAG) (dag.DAG, error) {
	body, leaf := bodyOf(b.ctx)
	if body == nil {
		return d, errNoRun
	}
	if body.spec.form != leafForm {
		return d, Fail(kind.Error, "Keep works only in a leaf: join the lanes of %q with dag.Join", body.spec.name)
	}
	base := d.Within(nil)
	full, err := leaf.keep(body, base, lanes)
	if err != nil {
		return d, badContent(err)
	}
	return full.Within(body), nil
}

var errNoRun = Fail(kind.Error, "no run: call In with the context that the body received")

func outside(d dag.DAG) dag.DAG {
	return d.WithFailure(dag.NewFailure(d, dag.FailureContent{Kind: kind.Error, Reason: errNoRun.Error()}, nil, time.Time{}), errNoRun)
}

// ground holds the DAGs to which the result of a leaf that called Await or Keep is appended.
type ground struct {
	from    dag.DAG // the DAG that the body was given
	awaited bool
	bare    dag.DAG // the result of Await, to which a failure of the leaf is appended
	full    dag.DAG // bare and the kept nodes, to which the leaf's node is appended
	kept    dag.Delta
}

// bodyOf returns the frame of the body to which ctx was passed, and the frame around all its attempts.
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

// grounds returns the DAGs to which a leaf whose body was given d appends its failure and its node.
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
	if !same(g.from, d) && (d.Len() > 0 || g.from.Len() != 1) { // g.from may also be the origin of an empty d
		return bare, bare, Fail(kind.BadContent, "Await and Keep need the DAG that the body received: pass that DAG")
	}
	return bare, g.full, nil
}

func same(a, b dag.DAG) bool { return a.Len() == b.Len() && a.Extends(b) }

// standOn sets the ground of the leaf at f to g. It returns an error if the run has continued without the body.
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
			return Fail(kind.Error, "call Await at most once, and Keep once after it")
		case !same(before.bare, g.from):
			return Fail(kind.Error, "want lanes that extend the DAG returned by Await")
		}
		g.from, g.awaited, g.bare = before.from, true, before.bare
	}
	x.ground.Store(g)
	return nil
}

// leftBehind marks the frame of an abandoned body. The run no longer waits for it.
func (f *frame) leftBehind() {
	x := f.visit().more()
	x.leave.Lock()
	defer x.leave.Unlock()
	f.more().left = true
}

// keepNothing drops the nodes that a failed attempt passed to Keep.
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
		if g := x.ground.Load(); g != nil && g.awaited { // Await has returned, in this call or an earlier one
			return g.bare, nil
		}
	}
	return out, nil
}

// lift rebases d, which extends the DAG with which a step of the flow around f started, onto the committed DAG before that step,
// once all earlier steps are committed. It does the same for every outer flow. Before changing anything, it calls agree with the
// DAG that it will return; if agree fails, nothing is changed.
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
	if awaited { // Await has already lifted d with the step.
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
	if err == nil && !asked { // no enclosing flow was rebased
		err = move(front)
	}
	return out, err
}

// inFlow returns the flow around f and the index of the flow's step that contains f. It returns nil if f is not in a flow, or if
// the body of another ashlar lies between f and the flow.
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

// inVain returns the error for a wait that can no longer succeed.
func (f *frame) inVain(ctx context.Context) error {
	if err := f.over(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return stopped(ctx)
	}
	return Fail(kind.Waiting, "a step before %q waits for an answer", f.spec.name)
}

// turn returns the semaphore that allows one call of Await at a time within step i.
func (w *flowing) turn(i int) chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.steps[i].turn == nil {
		w.steps[i].turn = make(chan struct{}, 1)
	}
	return w.steps[i].turn
}

// keptRecord is the form in which a leaf's Record contains its ground.
type keptRecord struct {
	Awaited bool      `json:"awaited,omitempty"`
	Nodes   dag.Delta `json:"nodes,omitempty"`
}

// groundRecord encodes the ground of f for the leaf's record. A failed leaf keeps no nodes.
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

// restoreGround restores the ground of a recorded leaf. The body may have run in this process too, if another process recorded
// its result first.
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
