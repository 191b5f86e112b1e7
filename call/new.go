package call

import (
	"cmp"
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/finding"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/schema"
)

// New makes a call: an ashlar that finds a capability to answer it, and whose node
// of type produces holds the out that was accepted. A Record of how that went
// stands beside the node. Its failure is an *Error, whose Type is the kind of the
// failure of the step; with Dispatch.AllowFailure the run goes on, with a node of
// type Failed(produces) in place of the other.
//
// The Applicator must be complete when the ashlar is validated or run. Validate
// reports a call that nobody can answer as "no-candidate", and names that nobody
// knows as "unknown-schema" and "unknown-check".
func New(name string, produces dag.AnyType, spec Spec) stone.Ashlar {
	if name == "" && produces != nil {
		name = produces.Name()
	}
	c := &caller{name: name, produces: produces, spec: spec}
	effects := slices.DeleteFunc(slices.Clone(spec.Effects), func(e string) bool { return e == effect.None })
	leaf := stone.Leaf(name, produces, c.run, stone.Queries(spec.reads()...), stone.Effects(effects...), stone.Detail(c))
	if !spec.Dispatch.AllowFailure || produces == nil {
		return leaf
	}
	return stone.Rescue(name, leaf, heal(name, produces))
}

// reads returns what the parts of the call read.
func (s *Spec) reads() (queries []dag.Querier) {
	for _, part := range []dag.Reader[any]{s.Input, s.Context, s.Constraints} {
		if part != nil {
			queries = append(queries, part)
		}
	}
	return queries
}

// heal makes the node of an allowed failure.
func heal(name string, produces dag.AnyType) stone.Ashlar {
	out := Failed(produces)
	return stone.New(name+" failed", out, func(_ context.Context, d dag.DAG) (Record, error) {
		n, err := d.Nearest(dag.Failure.Name())
		if err != nil {
			return Record{}, err
		}
		return failureRecord(n), nil
	}, stone.Queries(dag.Failure))
}

// SpecOf returns what is said about a call, if the ashlar is the leaf of one.
func SpecOf(a stone.Ashlar) (Spec, bool) {
	c, ok := a.Detail().(*caller)
	if !ok {
		return Spec{}, false
	}
	return c.spec, true
}

// Failed is the type of the node that stands for an allowed failure: its content
// is the Record of the call.
func Failed(produces dag.AnyType) dag.Type[Record] {
	return dag.NewType[Record]("stone/failed/" + produces.Name())
}

// A caller is a call as it stands in a pipeline. It is the Detail of its leaf.
type caller struct {
	name     string
	produces dag.AnyType
	spec     Spec
	once     sync.Once
	resolved *resolved
}

// resolved is what a call comes to among the capabilities and policies that there
// are, which is found once.
type resolved struct {
	effective
	candidates []candidate
	inputs     map[*entry]*schema.Schema // what a candidate takes, if that is not anything
	must       []namedCheck
	should     []namedCheck
	in         *schema.Schema   // of the intent; nil is anything
	outSchemas []*schema.Schema // of the call or its intent, then that of the type
	judge      *entry
	repairs    int
	repairer   *entry // nil is who answered
	faults     []finding.Finding
}

// A session is one call while it is answered.
type session struct {
	*caller
	*resolved
	app     *Applicator
	ctx     context.Context // ends with the time of the account
	dag     dag.DAG
	account *budget.Account
	request Request
	reasons []string // why a candidate was not asked, in their order

	awaited   sync.Once // then dag is all that came before, and base is for plans: see ground
	base      dag.DAG
	groundErr error
}

// run is the body of the leaf.
func (c *caller) run(ctx context.Context, d dag.DAG) (*dag.Node, error) {
	if len(c.resolve().faults) > 0 {
		return nil, &Error{Type: InvalidRequest, Message: c.resolved.faults[0].Message}
	}
	s := &session{caller: c, resolved: c.resolved, app: c.spec.Applicator, ctx: ctx, dag: d}
	if err := s.prepare(); err != nil {
		return nil, err
	}
	s.account = budget.From(ctx).Sub(c.spec.Budget)
	s.ctx = budget.With(ctx, s.account) // for pipelines and agents that are asked
	if _, limited := s.account.Deadline(); limited {
		var cancel context.CancelFunc
		s.ctx, cancel = s.account.Context(s.ctx)
		defer cancel()
	}
	s.request.Trace = traceOf(ctx)
	if err := s.nested(); err != nil {
		return nil, err
	}
	begun := time.Now()
	win, tried, err := s.dispatch()
	if err != nil {
		return nil, err
	}
	rec := s.record(win, tried, time.Since(begun))
	s.tell(rec)
	if win.failure != nil {
		failure := *win.failure
		failure.Record = rec
		return nil, &failure
	}
	if d, err = s.keep(ctx, win); err != nil {
		return nil, err
	}
	return dag.NewNode(dag.Spec{Type: c.produces.Name(), Content: win.out, Parents: d.Next(), Meta: rec.meta()})
}

// prepare makes the request.
func (s *session) prepare() (err error) {
	spec := &s.spec
	r := &s.request
	*r = Request{Intent: spec.Intent, Requires: spec.Requires, Done: s.done}
	typed, err := (*schema.Schema)(nil), error(nil)
	if r.Input, typed, err = readPart(spec.Input, s.dag); err != nil {
		return err
	}
	if r.Input == nil {
		r.Input = JSON("{}")
	}
	if r.Context, _, err = readPart(spec.Context, s.dag); err != nil {
		return err
	}
	if r.Constraints, _, err = readPart(spec.Constraints, s.dag); err != nil {
		return err
	}
	if s.in != nil && s.in != typed {
		if err := s.in.Validate(s.ctx, r.Input); err != nil {
			return s.refused(&Error{Type: InputInvalid, Message: "the input is not what the intent " + spec.Intent + " takes: " + err.Error(), Where: "input"})
		}
	}
	return nil
}

// refused is the failure of a call before anybody was asked.
func (s *session) refused(e *Error) error {
	e.Record = &Record{Intent: s.spec.Intent, Failure: e.Type, Error: e.Message}
	s.tell(e.Record)
	return e
}

// readPart makes a part of the request. A Go value needs no check against the schema of
// its own type, which is returned: it is what the value is written by.
func readPart(part dag.Reader[any], d dag.DAG) (JSON, *schema.Schema, error) {
	if part == nil {
		return nil, nil, nil
	}
	v, err := part.From(d)
	if err != nil {
		return nil, nil, err
	}
	if raw, ok := v.(json.RawMessage); ok {
		data, err := canon.AppendJSON(nil, raw)
		return data, nil, err
	}
	data, err := canon.Append(nil, v)
	if err != nil || v == nil {
		return data, nil, err
	}
	typed, _ := schema.ForType(reflect.TypeOf(v)) // no schema is no shortcut
	return data, typed, nil
}

// record tells how the call went.
func (s *session) record(win *outcome, tried []Attempt, took time.Duration) *Record {
	rec := &Record{Intent: s.spec.Intent, Attempts: len(tried), Plan: win.planned, Tried: tried,
		MustFailed: names(win.verdict.must), ShouldFailed: names(win.verdict.should)}
	for i, reason := range s.reasons {
		if reason != "" {
			rec.Rejected = append(rec.Rejected, Rejection{Cap: s.candidates[i].id, Reason: reason})
		}
	}
	if win.out != nil {
		rec.Score = &win.verdict.score
	}
	rec.Cap, rec.Version = win.cap, win.version
	if win.failure != nil {
		rec.Failure, rec.Error, rec.Out = win.failure.Type, win.failure.Message, win.out
	}
	// With judges, checks, and what plans that were answered have asked.
	rec.Usage = Usage{Usage: s.account.Used(), Attempts: len(tried), LatencyMS: took.Milliseconds(), Cap: win.cap}
	return rec
}

// failureRecord is the record of a failure that is allowed: that of the call, or
// what is known where something else failed.
func failureRecord(n *dag.Node) Record {
	if r := RecordOf(n); r != nil {
		return r.timeless()
	}
	f, err := dag.Failure.Of(n)
	if err != nil {
		f.Reason = err.Error()
	}
	return Record{Failure: string(cmp.Or(f.Kind, kind.Error)), Error: f.Reason}
}
