package call

import (
	"bytes"
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
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/prompts"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
)

// New returns a call: an ashlar that selects a capability to answer a request. The call produces a node of type produces, whose
// content is the accepted out and whose meta contains the call's Record. An empty name defaults to the name of produces. A
// failure is an *Error, whose Type is the kind of the step's failure. With Dispatch.AllowFailure, a failed call produces a node
// of type Failed(produces) instead, and the run continues.
//
// The Applicator must be complete when the ashlar is validated or run. Validate reports a
// call that no capability can answer as "no-candidate", and undefined names as
// "unknown-schema" and "unknown-check".
func New(name string, produces dag.AnyType, spec Spec) stone.Ashlar {
	if name == "" && produces != nil {
		name = produces.Name()
	}
	leaf := (&caller{name: name, produces: produces, spec: spec}).leaf()
	if !spec.Dispatch.AllowFailure || produces == nil {
		return leaf
	}
	return stone.Rescue(name, leaf, heal(name, produces)).Glue()
}

// leaf returns the leaf that makes the call.
func (c *caller) leaf() stone.Ashlar {
	spec := &c.spec
	effects := slices.DeleteFunc(slices.Clone(spec.Effects), func(e string) bool { return e == effect.None })
	return stone.Leaf(c.name, c.produces, c.run, stone.Queries(spec.reads()...), stone.Effects(effects...), c.detail())
}

// reads returns the queries of the call's parts.
func (s *Spec) reads() (queries []dag.Querier) {
	queries = append(queries, prompts.Reader)
	for _, part := range []dag.Reader[any]{s.Input, s.Context, s.Constraints} {
		if part != nil {
			queries = append(queries, part)
		}
	}
	if s.CapFrom != nil {
		queries = append(queries, s.CapFrom)
	}
	if s.CandidatesFrom != nil {
		queries = append(queries, s.CandidatesFrom)
	}
	return queries
}

// detail describes the leaf.
func (c *caller) detail() stone.Detail {
	return stone.Detail{
		Value: c, Check: c.check, CheckGrant: c.checkGrant, Fingerprint: c.fingerprint, Render: c.renders, Cached: c.takes, Prompt: c.instructions, Prompts: c.prompts,
		Facts: c.facts, Undeclared: c.undeclared, Unpriced: c.unpriced, Bound: func(ctx context.Context, _ func(stone.Ashlar) budget.Bound) budget.Bound { return c.bound(ctx) },
	}
}

// OnlySteps returns true, because all effects of a call happen in recorded steps.
func (c *caller) OnlySteps() bool { return true }

// heal returns the ashlar that produces the node for an allowed failure.
func heal(name string, produces dag.AnyType) stone.Ashlar {
	out := Failed(produces)
	return stone.New(name+" failed", out, func(_ context.Context, d dag.DAG) (Record, error) {
		n, err := d.Nearest(dag.Failure.Name())
		if err != nil {
			return Record{}, err
		}
		return failureRecord(n), nil
	}, stone.Queries(dag.Failure)).Glue()
}

// SpecOf returns the Spec of a call. It returns false if a is not the leaf of a call.
func SpecOf(a stone.Ashlar) (Spec, bool) {
	c, ok := a.Detail().Value.(*caller)
	if !ok {
		return Spec{}, false
	}
	return c.spec, true
}

// modelled is the interface of leaves that call a model, such as agents, as their Detail's Value.
type modelled interface{ Model() llm.Model }

// TurnOf returns the Spec of an agent's [Model], which makes each turn a call. It returns false if a is not an agent or has another
// model.
func TurnOf(a stone.Ashlar) (Spec, bool) {
	of, _ := a.Detail().Value.(modelled)
	if of == nil {
		return Spec{}, false
	}
	m, ok := of.Model().(*turns)
	if !ok {
		return Spec{}, false
	}
	return m.spec, true
}

// Failed returns the type of the node that a call with Dispatch.AllowFailure produces if it fails. The node's content is the
// Record of the call.
func Failed(produces dag.AnyType) dag.Type[Record] {
	return dag.NewType[Record]("stone/failed/" + produces.Name())
}

// A caller is a call in a pipeline. It is the Detail of its leaf.
type caller struct {
	name     string
	produces dag.AnyType
	spec     Spec
	turn     *llm.Request           // the request to a Model, which is also the Input
	hear     func() func(llm.Delta) // returns the listener for the next invocation; may be nil
	once     sync.Once
	resolved *resolved
}

// resolved is the result of resolving a call, once, against the registered capabilities and the policies.
type resolved struct {
	effective
	candidates []candidate
	inputs     map[*entry]*schema.Schema // the candidates' in-schemas that differ from in
	outputs    map[*entry]*schema.Schema // the candidates' out-schemas that differ from the call's
	answer     bar                       // the checks of an answer
	door       bar                       // the checks of the input
	agree      []namedCheck              // at most one check, which compares the answers of an agreement
	in         *schema.Schema            // the in-schema of the intent; nil accepts anything
	outSchemas []*schema.Schema          // the out-schema of the call or its intent, then the schema of the type
	wanted     *schema.Schema            // the out-schema that models are told
	wantedID   string                    // the digest of wanted
	judge      *entry
	repairs    int
	repairer   *entry // nil means the capability that answered
	faults
}

// A session is one execution of a call.
type session struct {
	*caller
	*resolved
	app     *Applicator
	ctx     context.Context // done at the account's deadline
	dag     dag.DAG
	account *budget.Account
	request Request
	reasons []string // for each candidate, in order: the reason why it is skipped, or ""
	// disagreed is the reason why the first candidates of an agreement did not agree.
	disagreed string
	// admitted is the verdict on the input; nil if there are no checks at the door.
	admitted *Admission
	// offline is the constraint no-web: if set, no candidate with the effect net is invoked.
	offline bool

	awaited   sync.Once // see ground: afterwards, dag is complete and plans start from base
	base      dag.DAG
	groundErr error
}

// run is the body of the leaf.
func (c *caller) run(ctx context.Context, d dag.DAG) (*dag.Node, error) {
	if len(c.resolve().faults) > 0 {
		return nil, &Error{Type: reasons.InvalidRequest, Message: c.resolved.faults[0].Message}
	}
	c, err := c.chosen(d)
	if err != nil {
		return nil, err
	}
	s := &session{caller: c, resolved: c.resolved, app: c.spec.Applicator, ctx: ctx, dag: d}
	if err := s.prepare(); err != nil {
		return nil, err
	}
	s.account = budget.From(ctx).Sub(c.spec.Budget)
	s.ctx = budget.With(ctx, s.account) // for capabilities that are pipelines and agents
	if _, limited := s.account.Deadline(); limited {
		var cancel context.CancelFunc
		s.ctx, cancel = s.account.Context(s.ctx)
		defer cancel()
	}
	s.request.Trace = traceOf(ctx)
	if err := s.nested(); err != nil {
		return nil, err
	}
	if err := s.enter(); err != nil {
		return nil, err
	}
	start := time.Now()
	win, tried, err := s.dispatch()
	if err != nil {
		return nil, err
	}
	rec := s.record(win, tried, time.Since(start))
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
	*r = Request{Intent: spec.Intent, Requires: spec.Requires, Schema: s.wanted, schemaID: s.wantedID, Done: s.done, Cache: s.cache, Turn: s.turn}
	parts, typed, err := s.parts()
	if err != nil {
		return err
	}
	r.Input, r.Context, r.Constraints, r.Prompts = parts.Input, parts.Context, parts.Constraints, parts.Prompts
	if s.offline, err = offline(r); err != nil {
		return s.refused(&Error{Type: reasons.InvalidRequest, Message: err.Error(), Where: "constraints.no-web"})
	}
	r.InSchema = cmp.Or(typed, s.in)
	if s.in != nil && s.in != typed {
		if err := s.in.Validate(s.ctx, r.Input); err != nil {
			return s.refused(&Error{Type: reasons.InputInvalid, Message: "the input does not fit the in-schema of the intent " + spec.Intent + ": " + err.Error(), Where: "input"})
		}
	}
	return nil
}

// requestParts are the parts of a request that come from the DAG.
type requestParts struct {
	Input       JSON `json:"input"`
	Context     JSON `json:"context,omitempty"`
	Constraints JSON `json:"constraints,omitempty"`

	Prompts map[string]string `json:"prompts,omitempty"`
}

// parts returns the parts of the request that come from the DAG, and the schema of the input's type. A recorded request is reused
// even if the program would now build a different one. The request of a turn is recorded by the agent instead.
func (s *session) parts() (p requestParts, typed *schema.Schema, err error) {
	if s.turn != nil {
		return s.readParts()
	}
	fresh := false
	p, err = stone.Value(s.ctx, "request", func(context.Context) (p requestParts, err error) {
		fresh = true
		p, typed, err = s.readParts()
		return p, err
	})
	if err != nil || fresh {
		return p, typed, err
	}
	now, typed, err := s.readParts()
	if err != nil || !slices.EqualFunc(now.all(), p.all(), func(a, b JSON) bool { return bytes.Equal(a, b) }) {
		event.At(s.ctx).Send(event.Notice{Code: terms.PromptChanged, Text: "the program would now send a different request; the call continues with the recorded one"})
	}
	return p, typed, nil
}

func (p *requestParts) all() []JSON { return []JSON{p.Input, p.Context, p.Constraints} }

func (s *session) readParts() (p requestParts, typed *schema.Schema, err error) {
	if p.Input, typed, err = readPart(s.spec.Input, s.dag); err != nil {
		return p, nil, err
	}
	if p.Input == nil {
		p.Input = JSON("{}")
	}
	if p.Context, _, err = readPart(s.spec.Context, s.dag); err != nil {
		return p, nil, err
	}
	if p.Constraints, _, err = readPart(s.spec.Constraints, s.dag); err != nil {
		return p, nil, err
	}
	p.Prompts, err = prompts.In(s.dag)
	return p, typed, err
}

// refused records a call that failed before any capability was invoked, and returns e.
func (s *session) refused(e *Error) error {
	e.Record = &Record{Intent: s.spec.Intent, Failure: e.Type, Error: e.Message, Input: s.admitted}
	if s.account != nil { // includes the cost of checks at the door
		e.Record.Usage = Usage{Usage: s.account.Used()}
	}
	s.tell(e.Record)
	return e
}

// readPart returns a part of the request as JSON. For a Go value, it also returns the schema of the value's type, against which
// the value need not be checked.
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
	typed, _ := schema.ForType(reflect.TypeOf(v)) // if there is no schema, the value is checked
	return data, typed, nil
}

// record returns the Record of the call.
func (s *session) record(win *outcome, tried []Attempt, took time.Duration) *Record {
	rec := &Record{Intent: s.spec.Intent, Attempts: len(tried), Plan: win.planned, Tried: tried, Input: s.admitted, Disagreed: s.disagreed, Strategy: cmp.Or(s.spec.Dispatch.Strategy, Cascade),
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
	// This includes judges, checks, and the calls of plans that capabilities returned.
	rec.Usage = Usage{Usage: s.account.Used(), Attempts: len(tried), LatencyMS: took.Milliseconds(), Cap: win.cap}
	if !win.planned { // a plan's answer was made by other capabilities
		rec.Usage.Mode = win.mode
	}
	return rec
}

// failureRecord returns the Record of an allowed failure. If something other than the call failed, the Record contains only the
// kind and the reason.
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
