package stone

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

// In returns the place of a body in its run. Ctx is the context that the body was
// given, or one derived from it.
func In(ctx context.Context) Body { return Body{ctx} }

// A Body is the place in a run at which a body runs; see [In]. Its methods may be
// called from several goroutines at once. Outside of a run RunID and Path are empty,
// Grant allows nothing, no event is sent, and the other methods fail.
type Body struct{ ctx context.Context }

// RunID returns the id of the run.
func (b Body) RunID() string {
	if f := frameOf(b.ctx); f != nil {
		return f.run.id
	}
	return ""
}

// Path returns the address of the ashlar, the attempt or the Step, for example
// "review/loop[2]/lane[17]/draft~2". RunID and Path together are the same when a run
// is resumed, and never the same twice within a run: use them as the idempotency key
// of what the body calls.
func (b Body) Path() string {
	if f := frameOf(b.ctx); f != nil {
		return f.path()
	}
	return ""
}

// Recorded reports whether the run has the result of the [Step] of the body with that name. Recorded means that the
// recorder has it from an earlier process or a worker, repeated that an earlier attempt at the body in this process
// made it. Package budget uses it to charge a step once.
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

// remembering is a Recorder with a method Has, see step.Recorder.
type remembering interface{ Has(step.Key) bool }

// Grant returns the effects that the run allows at this place; nil allows all. Check
// against it all effects that are known only when the body runs.
func (b Body) Grant() []string {
	f := frameOf(b.ctx)
	if f == nil {
		return []string{}
	}
	return f.granted()
}

// Event sends an event to the watcher of the run. Name is the event, for example
// "cache-hit". If no watcher wants the level, Event does nothing.
func (b Body) Event(level slog.Level, name string, attrs ...slog.Attr) {
	if f := frameOf(b.ctx); f != nil && f.Wants(level) {
		f.Send(event.Custom{Name: name, At: level, Attrs: slices.Clone(attrs)})
	}
}

// Enabled reports whether a watcher wants events of the level. Call it before computing
// expensive attributes.
func (b Body) Enabled(level slog.Level) bool {
	f := frameOf(b.ctx)
	return f != nil && f.Wants(level)
}

// RunChild runs a child of the ashlar: of a Scoped, or of a leaf with Children. It
// returns d with the nodes of the child added, and with a failure in flight if the child
// failed. Two runs of one child at the same time are an error.
func (b Body) RunChild(child Ashlar, d dag.DAG) dag.DAG {
	f := frameOf(b.ctx)
	if f == nil {
		return outside(d)
	}
	return f.inner(b.ctx, child, d)
}

// RunDynamic runs an ashlar that was made during the run, for example from a plan
// that a model wrote. It returns d with the nodes of p added, and with a failure in
// flight if p failed. P is part of the run: its addresses start with the body's address,
// and it is recorded, watched and cancelled like every other step. To keep the nodes of
// p, a leaf calls Keep.
//
// RunDynamic first validates p with d as its input. If p is refused, nothing of it
// runs, and the failure has kind "invalid" and unwraps to *finding.Invalid. P may need
// only effects that both grant and the run around it allow; a nil grant adds no limit.
//
// P reads what its own queries name, independently of the body's queries, and the
// returned DAG can be read without declared queries. Within a Flow, d has only the nodes
// that the queries of the leaf name; see Await. Two ashlars of one name at the same time
// are an error. If p is a child of the ashlar, RunDynamic runs the replacement that Replace made: a leaf declares
// such pipelines with Children, and Validate checks them.
func (b Body) RunDynamic(p Ashlar, d dag.DAG, grant []string) dag.DAG {
	f := frameOf(b.ctx)
	if f == nil {
		return outside(d)
	}
	return f.dynamic(b.ctx, p, d.Within(nil), grant)
}

// Await blocks until every earlier step of the enclosing Flow has been committed and
// returns the complete DAG at that point, which can be read without declared
// queries. Use it in the body of a leaf that discovers its inputs at run time, such
// as one that calls RunDynamic. D is the DAG that the body was given. The node of
// the leaf then follows what Await returned, and the steps of the Flow that read
// that node see everything before it.
//
// Outside of a Flow, Await returns d at once. Call it in the body itself, not within a
// Step. Whether the body calls it may depend only on what the body has read, since a
// resumed run waits in the same places. Await fails when the context is done, and with
// an error that is kind.Waiting if an earlier step waits for an answer.
func (b Body) Await(d dag.DAG) (dag.DAG, error) {
	body, leaf := bodyOf(b.ctx)
	if body == nil {
		return d, errNoRun
	}
	body.unshare()
	return leaf.await(b.ctx, body, d.Within(nil))
}

// Keep adds lanes beside the node that a leaf makes, for example what RunDynamic
// returned. They stay in the DAG and are found by dag.All, like the lanes of a
// fan-out. D is the DAG that the body was given, or the one that Await returned, and
// every lane extends it; if it is empty, call [dag.Origin] first. A body that builds its
// node itself builds it on the DAG that Keep returns. Call Keep once, with all
// lanes, in the body itself and not within a Step.
//
// In a Flow, kept nodes are visible to the steps that read what the leaf produces.
func (b Body) Keep(d dag.DAG, lanes ...dag.DAG) (dag.DAG, error) {
	body, leaf := bodyOf(b.ctx)
	if body == nil {
		return d, errNoRun
	}
	if body.spec.form != leafForm {
		return d, Fail(kind.Error, "Keep is for leaves: %q brings its lanes together with dag.Join", body.spec.name)
	}
	base := d.Within(nil)
	full, err := leaf.keep(body, base, lanes)
	if err != nil {
		return d, badContent(err)
	}
	return full.Within(body), nil
}

var errNoRun = Fail(kind.Error, "no run: give In the context that the body was given")

func outside(d dag.DAG) dag.DAG {
	return d.WithFailure(dag.NewFailure(d, dag.FailureContent{Kind: kind.Error, Reason: errNoRun.Error()}, nil, time.Time{}), errNoRun)
}
