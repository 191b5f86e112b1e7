package call

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/grants"
	"github.com/stonelayer/stone/internal/reasons"
)

// An Admission is the verdict of the checks on an input.
type Admission struct {
	Score        float64  `json:"score"`                 // the share of the shoulds that pass
	MustFailed   []string `json:"must-failed,omitempty"` // the names of the failed checks
	ShouldFailed []string `json:"should-failed,omitempty"`
	// Verdicts lists the verdict of every check. A call's Record contains it; the content of an Admitted node does not.
	Verdicts []Verdict `json:"-"`
}

// Admitted is the type of the node that [Admit] produces.
var Admitted = dag.NewType[Admission]("stone/admitted")

// Admit returns a step that checks an input with checks of the Applicator, as Spec.Admit does for a call. Use it before steps
// that are not calls:
//
//	stone.Seq("answer",
//		call.Admit("door", app, call.From(Question), call.Done{Must: []string{"no-secrets"}}),
//		…)
//
// For an agent, see agent.Config.Admit. The step produces a node of type [Admitted], or fails with "input/rejected". The
// Applicator must be complete when the step is validated or run. Its policy does not apply.
func Admit(name string, app *Applicator, input dag.Reader[any], done Done) stone.Ashlar {
	d := &door{name: name, spec: Spec{Applicator: app, Input: input, Admit: done}}
	d.resolved = sync.OnceValues(d.resolve)
	return stone.New(name, Admitted, d.run, stone.Queries(d.spec.reads()...), stone.Effects(), stone.Detail{
		Value: d, Check: d.check, CheckGrant: d.checkGrant, Guards: true, Fingerprint: d.fingerprint, Render: d.renders, Facts: d.facts,
		Bound: func(ctx context.Context, _ func(stone.Ashlar) budget.Bound) budget.Bound {
			b, _ := d.resolved()
			return b.bound(ctx, d.spec.Applicator)
		},
	})
}

// A door is the Detail of the leaf that Admit makes.
type door struct {
	name     string
	spec     Spec
	resolved func() (bar, faults)
}

// resolve finds the checks.
func (d *door) resolve() (b bar, found faults) {
	if d.spec.Applicator == nil {
		found.fault("bad-option", "the door has no Applicator: set one")
		return b, found
	}
	if d.spec.Input == nil {
		found.fault("bad-option", "the door has no input: name one, as call.From(Question)")
		return b, found
	}
	done := d.spec.Admit
	if done.ScoreMin = cmp.Or(done.ScoreMin, new(0.0)); !(*done.ScoreMin >= 0 && *done.ScoreMin <= 1) {
		found.fault("bad-option", "score-min is %v: want 0 to 1", *done.ScoreMin)
	}
	in := (&resolved{}).inputType(&d.spec)
	return found.bar(d.spec.Applicator, done, in, in), found
}

func (d *door) run(ctx context.Context, in dag.DAG) (Admission, error) {
	b, found := d.resolved()
	if len(found) > 0 {
		return Admission{}, &Error{Type: reasons.InvalidRequest, Message: found[0].Message}
	}
	req := Request{Trace: traceOf(ctx)}
	var err error
	if req.Input, _, err = readPart(d.spec.Input, in); err != nil {
		return Admission{}, err
	}
	admitted, failure, err := b.admit(ctx, req, d.spec.Admit)
	if failure != nil {
		failure.Record = &Record{Failure: failure.Type, Error: failure.Message, Input: admitted}
		return Admission{}, failure
	}
	if err != nil {
		return Admission{}, err
	}
	return *admitted, nil
}

// check returns the faults of the door. Validate calls it.
func (d *door) check() []stone.Finding {
	_, found := d.resolved()
	return found
}

// checkGrant returns a finding for each effect that a check needs and the grant lacks.
func (d *door) checkGrant(grant []string) (found []stone.Finding) {
	b, _ := d.resolved()
	for _, c := range append(b.must, b.should...) {
		for _, e := range grants.Missing(c.Needs, grant) {
			found = append(found, lacking("the check "+c.name, e))
		}
	}
	return found
}

// renders returns the input as JSON. It becomes part of the leaf's keys.
func (d *door) renders(in dag.DAG) ([]byte, error) {
	if d.spec.Input == nil { // Check reports the fault
		return nil, nil
	}
	input, _, err := readPart(d.spec.Input, in)
	return input, err
}

// facts returns an iterator over the facts that describe the step to people; see tree.Facts.
func (d *door) facts() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) { d.spec.Admit.facts(yield) }
}

// fingerprint returns the door's part of its leaf's fingerprint.
func (d *door) fingerprint() []byte {
	text, err := canon.Append(nil, d.spec.Admit)
	if err != nil { // a number that JSON cannot represent, which Check reports
		return nil
	}
	return text
}

// any reports whether at least one check is required. Without checks, the score is 1.
func (d *Done) any() bool { return len(d.Must)+len(d.Should) > 0 }

// facts calls yield with the requirements under human-readable names.
func (d *Done) facts(yield func(string, string) bool) bool {
	for _, f := range [][2]string{{"must", strings.Join(d.Must, ", ")}, {"should", strings.Join(d.Should, ", ")}} {
		if f[1] != "" && !yield("admit "+f[0], f[1]) {
			return false
		}
	}
	return d.ScoreMin == nil || *d.ScoreMin == 0 || yield("admit score-min", strconv.FormatFloat(*d.ScoreMin, 'g', -1, 64))
}

// enter passes the input of the call through its door, before a capability is invoked.
func (s *session) enter() error {
	if !s.admit.any() {
		return nil
	}
	var failure *Error
	var err error
	if s.admitted, failure, err = s.door.admit(s.ctx, s.request, s.admit); failure != nil {
		return s.refused(failure)
	}
	return err
}

// unwelcome returns the failure for an input that the policy's own checks reject, or nil if they accept it. They are evaluated
// separately, so that a call's shoulds can neither lower the policy's minimum nor dilute the score of the policy's shoulds.
func (b *bar) unwelcome(v *judgement) *Error {
	of := *v
	of.should = nil
	for _, c := range v.should {
		if slices.Contains(b.host.Should, c.Name) {
			of.should = append(of.should, c)
		}
	}
	if of.should == nil {
		return nil
	}
	n := len(b.host.Should)
	of.score = float64(n-len(of.should)) / float64(n)
	return (&bar{scoreMin: *b.host.ScoreMin}).low(&of)
}

// admit checks the input of a request. The error means that a check did not finish.
func (b *bar) admit(ctx context.Context, req Request, done Done) (*Admission, *Error, error) {
	req.Done = done
	v, err := b.weigh(ctx, &Subject{Request: &req, Out: req.Input, Step: "input", atDoor: true})
	if failure := unpayable(err); failure != nil || err != nil {
		if failure != nil {
			err = nil
		}
		return nil, failure, err
	}
	if v.failure == nil {
		v.failure = b.low(&v)
	}
	if v.failure == nil {
		v.failure = b.unwelcome(&v)
	}
	verdict := &Admission{Score: v.score, MustFailed: names(v.must), ShouldFailed: names(v.should), Verdicts: bounded(ctx, v.all)}
	if v.failure == nil {
		return verdict, nil, nil
	}
	return verdict, &Error{Type: reasons.InputRejected, Message: v.failure.Message, Where: "input"}, nil
}

// actType is the type of the node that contains the out of a request.
var actType = dag.NewType[JSON]("stone/answer")

// Act answers a request from outside, for example one that ReadRequest has read. It runs a pipeline that consists of this call
// and is validated before any capability is invoked. Only cfg.Grant limits its effects; nil grants none. The Response contains
// the out and its cost, or the reason for the failure. The Result is the result of the run; it is empty if the request was
// rejected before the run.
func (app *Applicator) Act(ctx context.Context, trace Trace, spec Spec, cfg stone.Config) (Response, stone.Result) {
	spec.Applicator, spec.Dispatch.AllowFailure = app, false
	cfg.Grant = append([]string{}, cfg.Grant...)
	refuse := func(err error) (Response, stone.Result) { return Response{Trace: trace, Err: err}, stone.Result{} }
	if err := app.CheckRequest(spec); err != nil {
		return refuse(err)
	}
	cfg.Request = trace.ID
	p := New("act", actType, spec)
	if err := refuseRequest(stone.Validate(p, cfg.Given())); err != nil {
		return refuse(err)
	}
	result, err := stone.Run(context.WithValue(ctx, traceKey{}, trace), p, cfg)
	if err != nil {
		return Response{Trace: trace, Err: err}, result
	}
	reply := &Reply{Type: Value, Out: result.Node.Content()}
	if rec := RecordOf(result.Node); rec != nil {
		reply.Usage = rec.Usage
	}
	return Response{Trace: trace, Reply: reply}, result
}
