package plan_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/plan"
)

// An outcome is what came of a case, for the expectations to look at.
type outcome struct {
	emitted   json.RawMessage // nil if nothing was
	calls     []string
	tools     []string
	cancelled []string
	error     string // why it was refused before it ran
	reason    string
	findings  []string
	denied    []string
	refusal   error
	err       error // of the run
	ok        bool
	records   []*call.Record
	tally     call.Tally
	wall      time.Duration
}

// patience is how long a case may take.
const patience = 60 * time.Second

func runPlan(t *testing.T, c edn.Value) (o outcome) {
	w := newWorld(t, c)
	text := []byte(field(c, "json").Text())
	if nodes, ok := c.Field("nodes"); ok {
		text = []byte("{:nodes " + nodes.String() + "}")
	}
	p, err := plan.Read(text)
	if err == nil {
		err = p.Check(w.app, w.opts, stone.Config{Input: w.env, Grant: w.grant}).Err()
	}
	var a stone.Ashlar
	if err == nil {
		a, err = p.Ashlar(w.app, w.opts)
	}
	if err != nil {
		o.refuse(err)
		o.calls, o.tools = w.called()
		return o
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ctx = budget.With(ctx, budget.New(w.budget))
	start := time.Now()
	result, err := stone.Run(ctx, a, stone.Config{Input: w.env, Grant: w.grant})
	o.ran(w, start, result.DAG, err)
	if n, none := result.DAG.Nearest(terms.Emit); err == nil && none == nil {
		o.emitted = n.Content()
	}
	return o
}

// refuse notes why a plan was refused.
func (o *outcome) refuse(err error) {
	o.refusal = err
	var invalid *stone.Invalid
	if !errors.As(err, &invalid) {
		o.error = call.AsError(err).Type
		return
	}
	o.error = reasons.PlanInvalid
	for _, f := range invalid.Findings.Errors() {
		o.findings = append(o.findings, string(f.Type))
		if f.Type == "effect-not-granted" {
			o.denied = append(o.denied, f.Queried)
		}
	}
}

// ran notes what a run has left.
func (o *outcome) ran(w *world, start time.Time, d dag.DAG, err error) {
	o.wall, o.err, o.ok = time.Since(start), err, err == nil
	o.calls, o.tools = w.called()
	o.tally = w.app.Counters.Tally()
	for n := range d.Nodes() {
		r := call.RecordOf(n)
		if r == nil {
			continue
		}
		o.records = append(o.records, r)
		for _, a := range r.Tried {
			if a.Cancelled {
				o.cancelled = append(o.cancelled, a.Cap)
			}
		}
	}
	if e := (*call.Error)(nil); errors.As(err, &e) {
		o.denied = deniedIn(e)
	}
}

func deniedIn(e *call.Error) []string {
	var details struct{ Denied []string }
	if json.Unmarshal(e.Details, &details) != nil {
		return nil
	}
	return details.Denied
}

// failure is the failure type of the run or, if it has none, of the last failed call.
func (o *outcome) failure() any {
	if o.err != nil {
		var f *stone.Failure
		if errors.As(o.err, &f) {
			return f.Kind
		}
		return call.AsError(o.err).Type
	}
	for _, r := range slices.Backward(o.records) {
		if r.Failure != "" {
			return r.Failure
		}
	}
	return nil
}

func (o *outcome) score() any {
	for _, r := range slices.Backward(o.records) {
		if r.Score != nil {
			return *r.Score
		}
	}
	return nil
}

func (o *outcome) rejected() [][]string {
	all := [][]string{}
	for _, r := range o.records {
		for _, x := range r.Rejected {
			all = append(all, []string{x.Cap, x.Reason})
		}
	}
	return all
}

func (o *outcome) checks(should bool) (all []string) {
	for _, r := range o.records {
		if should {
			all = append(all, r.ShouldFailed...)
		} else {
			all = append(all, r.MustFailed...)
		}
	}
	return all
}

func runRequest(t *testing.T, c edn.Value) (o outcome) {
	w := newWorld(t, c)
	text := []byte(field(c, "json").Text())
	if v, ok := c.Field("request"); ok {
		text = []byte(v.String())
	}
	trace, spec, err := call.ReadRequest(text)
	if err != nil {
		o.refuseRequest(call.AsError(err))
		return o
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ctx = budget.With(ctx, budget.New(w.budget))
	start := time.Now()
	response, result := w.app.Act(ctx, trace, spec, stone.Config{Input: w.env, Grant: w.grant})
	o.ran(w, start, result.DAG, response.Err)
	if response.Err != nil {
		if e := call.AsError(response.Err); result.RunID == "" {
			o.refuseRequest(e)
		}
		return o
	}
	o.emitted = response.Reply.Out
	return o
}

func (o *outcome) refuseRequest(e *call.Error) {
	o.refusal, o.error, o.reason = e, e.Type, e.Reason()
	o.denied = deniedIn(e)
}

func runResult(t *testing.T, c edn.Value) (o outcome) {
	w := newWorld(t, c)
	text := []byte(field(c, "json").Text())
	if v, ok := c.Field("result"); ok {
		text = []byte(v.String())
	}
	reply, err := call.ReadReply(text)
	if err == nil && reply.Type != call.Plan {
		if s, _ := w.app.Schema(w.app.Intents[field(c, "intent").Text()].Out); s != nil {
			if bad := s.Validate(t.Context(), reply.Out); bad != nil {
				err = &call.Error{Type: reasons.SchemaInvalid, Message: bad.Error()}
			}
		}
	}
	o.err, o.ok = err, err == nil
	return o
}

func runRoles(t *testing.T, c edn.Value) (o outcome) {
	var roles call.Roles
	var who call.Principal
	var effects []string
	faults := form.Read(c, func(m *form.Map) {
		m.AllowRest()
		form.Into(m, &roles)
		m.At("principal").Map(func(m *form.Map) { form.Into(m, &who) })
		m.At("effects").NameSet(&effects)
	})
	if err := faults.Err(); err != nil {
		t.Fatal(err)
	}
	_, o.denied = roles.Allow(who, effects)
	o.ok = len(o.denied) == 0
	return o
}

func runKPI(t *testing.T, c edn.Value) (o outcome) {
	if err := json.Unmarshal([]byte(canonical(field(c, "counters"))), &o.tally); err != nil {
		t.Fatal(err)
	}
	return o
}

// field returns what a map holds under a name, nil if it does not.
func field(v edn.Value, name string) edn.Value {
	found, _ := v.Field(name)
	return found
}
