package call

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/fault"
	"github.com/stonelayer/stone/internal/panics"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/kind"
)

const (
	firstBackoff = 50 * time.Millisecond // the pause before the second attempt; it doubles before each further attempt
	maxBackoff   = 30 * time.Second
	// maxRetryAfter is the longest pause that a capability can request before a retry. If it requests a longer pause, the next
	// candidate is invoked instead.
	maxRetryAfter = 5 * time.Second
)

// A lane invokes one candidate, as often as the policy allows. A cascade runs one lane at a time; other strategies run several
// lanes at once.
type lane struct {
	*session
	entry    *entry
	ctx      context.Context
	loose    bool         // whether other lanes do not wait for this lane
	reserved *budget.Draw // the draw for the first attempt, if it was reserved before the lane started
	tried    []Attempt
	last     outcome
	at       event.Place // the place at which the last answer was streamed

	compiling   sync.Mutex
	compilation compilation
}

// discard retracts the streamed answers of the lanes that lost.
func discard(lanes []*lane, win *outcome) {
	for _, l := range lanes {
		if &l.last != win {
			l.at.Retract("another candidate was chosen")
		}
	}
}

// An outcome is the result of an attempt.
type outcome struct {
	out     JSON           // the out of the answer; nil if there is none
	plan    JSON           // the text of a plan that cannot run, as a JSON string
	fixed   stone.Findings // the findings about an earlier draft of the plan
	lane    dag.DAG
	planned bool // whether out is the emission of a plan, whose nodes are in lane
	verdict judgement
	failure *Error
	final   bool   // whether the account cannot pay for further attempts
	live    bool   // whether the answer was not taken from the recorder
	cap     string // the capability that was invoked
	version string // the version of that capability
	mode    string // the mode of the answer
}

// run makes the lane's attempts. It returns an error if the lane was stopped because the run is over or the lane is no longer
// needed.
func (l *lane) run() error {
	for n := 1; ; n++ {
		err := l.attempt(n)
		o := &l.last
		if err == nil && o.failure != nil && o.failure.RetryAfter > maxRetryAfter {
			if o.live {
				l.entry.breaker.busyFor(o.failure.RetryAfter)
			}
			return nil // other candidates may be available by now
		}
		if err != nil || !l.goesOn(o) || n > l.sameCapMax || l.entry.down() {
			return err
		}
		if o.live {
			if err := pause(l.ctx, n, o.failure.RetryAfter); err != nil {
				return l.ended(err)
			}
		}
	}
}

// start runs the lane in a goroutine. It calls ended exactly once, even after a panic.
func (l *lane) start(ended func(error)) {
	go func() {
		err := errors.New("a check or a planner called runtime.Goexit")
		defer func() {
			if p := recover(); p != nil {
				err = stone.Fail(kind.Panic, "panicked: %v %s", p, at(panics.Place()))
			}
			ended(err)
		}()
		err = l.run()
	}()
}

// goesOn reports whether another attempt may follow the outcome.
func (s *session) goesOn(o *outcome) bool {
	return o.failure != nil && !o.final && s.recoverable(o.failure)
}

// repairable reports whether a repairer may be invoked for the outcome. A plan that cannot run may always be repaired, regardless
// of SwitchOn.
func (s *session) repairable(o *outcome) bool {
	if o.plan != nil {
		return o.failure != nil && !o.final
	}
	return s.goesOn(o) && o.out != nil
}

// attempt invokes the candidate for the n-th time and, if the answer is rejected, lets the repairer repair it. If a plan could
// not run, the next attempt receives that plan too, because its request would otherwise be the same.
func (l *lane) attempt(n int) (err error) {
	step, about := address.AttemptStep(l.entry.ID, n), l.request.Context
	if n > 1 && l.last.plan != nil {
		if about, err = repairContext(l.request.Context, &l.last); err != nil {
			return err
		}
		l.last = outcome{}
	}
	if err := l.ask(l.entry, Attempt{Cap: l.entry.ID, Number: n}, about, step); err != nil {
		return err
	}
	fixer := l.repairer
	if fixer == nil {
		fixer = l.entry
	}
	for k := 1; k <= l.repairs && l.repairable(&l.last) && !fixer.down(); k++ {
		about, err := repairContext(l.request.Context, &l.last)
		if err != nil {
			return err
		}
		if err := l.ask(fixer, Attempt{Cap: fixer.ID, Number: n, Repair: true}, about, address.RepairStep(step, k)); err != nil {
			return err
		}
	}
	return nil
}

// ask makes one invocation and passes its answer through the gate. If a repair returns no out, the next repair receives the
// previously rejected out.
func (l *lane) ask(e *entry, as Attempt, about JSON, step string) error {
	refused, plan := l.last.out, l.last.plan
	as.Version = e.Version
	l.last = outcome{cap: e.ID, version: e.Version}
	o := &l.last
	req := l.request
	req.Cap, req.Attempt, req.Context, req.Effects = e.ID, as.Number, about, l.granted(e)
	if l.hear != nil {
		req.Hear = l.hear()
	}
	if l.inputs[e] != nil {
		req.InSchema = cmp.Or(req.InSchema, l.inputs[e])
		if err := l.inputs[e].Validate(l.ctx, req.Input); err != nil {
			l.reserved.Close()
			l.reserved, o.out = nil, refused
			o.failure = &Error{Type: reasons.InputInvalid, Message: fmt.Sprintf("the input is not what %s takes: %v", e.ID, err), Where: "input"}
			return nil
		}
	}
	var err error
	if req.Guide, err = l.guide(e, &req); err != nil {
		return err
	}
	if req.Guide != nil && req.Requires.Reply == Plan { // other plans are checked only after the earlier steps
		req.refuse = l.refusal(e, step)
	}
	a, failure, err := l.pay(l.ctx, e, &req, step)
	if failure != nil {
		o.failure, o.final = failure, true
		return nil
	}
	as.Usage, l.at = Usage{Usage: a.Usage, Attempts: 1, LatencyMS: a.LatencyMS, Cap: e.ID}, a.at
	if o.live = a.live; err == nil {
		if o.failure = a.Failure; o.failure == nil {
			o.mode, o.fixed = a.Reply.Usage.Mode, a.Reply.Corrected
			as.Usage.Mode, as.Usage.Sandbox = o.mode, a.Reply.Usage.Sandbox
			err = l.accept(e, &req, a.Reply, step)
		} else {
			o.failure.RetryAfter = a.RetryAfter // set for replayed answers too
			if isRefused(o.failure) && a.Reply != nil {
				if o.plan, err = canon.Append(nil, string(a.Reply.Plan)); err != nil {
					return err
				}
			}
		}
	}
	if err != nil {
		err = l.ended(err)
	}
	if o.failure != nil {
		l.at.Retract(o.failure.Error())
	}
	if o.out == nil && o.plan == nil && as.Repair && o.failure != nil {
		o.out, o.plan = refused, plan
	}
	if as.Cancelled = err != nil; err == nil || l.lost(err) {
		l.note(as, o)
	}
	return err
}

// accept decodes the value in a reply and passes it through the gate.
func (l *lane) accept(e *entry, req *Request, reply *Reply, step string) (err error) {
	o := &l.last
	if want := req.Requires.Reply; want == Plan && reply.Type != Plan || want == Value && reply.Type == Plan {
		o.failure = &Error{Type: reasons.SchemaInvalid, Message: fmt.Sprintf("%s replied with a %s: the call requires a %s", e.ID, reply.Type, want), Where: "result.type"}
		return nil
	}
	o.out = reply.Out
	if o.planned = reply.Type == Plan; o.planned {
		if o.out, o.lane, o.failure, err = l.runPlan(e, req, reply, step); o.failure != nil || err != nil {
			return err
		}
	}
	if s := l.outputs[e]; s != nil {
		if _, invalid := l.fits(s, o); invalid != nil {
			o.failure = &Error{Type: reasons.SchemaInvalid, Message: fmt.Sprintf("%s promises %s: %v", e.ID, e.Out, invalid), Where: "result.out"}
			return context.Cause(l.ctx)
		}
	}
	sub := &Subject{Request: req, Out: o.out, Schema: l.outSchema(), Step: step}
	for _, s := range l.outSchemas {
		if sub.Out, sub.invalid = l.fits(s, o); sub.invalid != nil {
			break
		}
	}
	if sub.reply = o.out; context.Cause(l.ctx) != nil {
		return context.Cause(l.ctx)
	}
	if o.verdict, err = l.gate(l.ctx, sub); err != nil {
		return err
	}
	o.failure = o.verdict.failure
	o.final = o.failure != nil && unpaid(o.failure.Type)
	return nil
}

// pay draws the cost of one invocation on the account and then makes it. If the account is exhausted, pay returns a failure.
func (l *lane) pay(ctx context.Context, e *entry, req *Request, step string) (a answer, failure *Error, err error) {
	draw := l.reserved
	l.reserved = nil
	if failure := denied(e.ID, e.Needs, stone.In(ctx).Grant()); failure != nil {
		draw.Close()
		return answer{Failure: failure}, nil, nil
	}
	if draw == nil {
		draw, err = e.reserve(ctx, l.account, req, step)
	}
	if err == nil {
		a, err = e.paid(ctx, req, step, draw, l.loose)
	}
	if failure = unpayable(err); failure != nil {
		err = nil
	}
	return a, failure, err
}

// reserve draws the estimated cost of one invocation.
func (e *entry) reserve(ctx context.Context, from *budget.Account, req *Request, step string) (*budget.Draw, error) {
	return from.Draw(ctx, stone.In(ctx), step, e.quote(ctx, req))
}

// If the length of an answer is not limited, answerTokens tokens are reserved for it. A token is estimated as bytesPerToken bytes.
const (
	answerTokens  = 4096
	bytesPerToken = 4
)

// quote estimates the cost of one invocation.
func (e *entry) quote(ctx context.Context, req *Request) budget.Quote {
	if e.Quote != nil {
		q := e.Quote(ctx, req)
		q.Least.USD += e.Cost.USD
		q.Most.USD += e.Cost.USD
		return q
	}
	once := budget.Amount{Roundtrips: 1, USD: e.Cost.USD}
	if e.Cost.Price == (budget.Price{}) {
		return budget.Fixed(once)
	}
	u := budget.Usage{InputTokens: 1 + (len(req.Input)+len(req.Context)+len(req.Constraints))/bytesPerToken}
	q := budget.Quote{Least: once, Most: once}
	q.Least.USD += e.Cost.Price.Of(u)
	u.OutputTokens = answerTokens
	q.Most.USD, q.Most.Tokens = q.Most.USD+e.Cost.Price.Of(u), u.Tokens()
	q.Output, q.USDPerOutput = answerTokens, e.Cost.Price.Out/1e6
	return q
}

// first returns the name of the step that records a candidate's first invocation.
func (e *entry) first() string { return address.AttemptStep(e.ID, 1) }

// ended handles a stopped lane. If the budget cannot pay, the call fails; other errors are returned.
func (l *lane) ended(err error) error {
	switch failure := unpayable(err); {
	case failure != nil:
		l.last.failure, l.last.final = failure, true
		return nil
	case l.lost(err):
		l.last.failure = errLost
	}
	return err
}

// unpayable returns the failure of a call that the account refuses to pay, or nil for any other error.
func unpayable(err error) *Error {
	for _, kind := range []kind.Kind{budget.Kind, reasons.Unpriced} {
		if isKind(err, kind) {
			return &Error{Type: string(kind), Message: kind.Trim(err.Error()), Cause: err}
		}
	}
	return nil
}

// unpaid reports whether the account refused to pay. If so, no other candidate is invoked.
func unpaid(failure string) bool { return failure == budget.Kind || failure == reasons.Unpriced }

// isKind reports whether an error has the given failure kind.
func isKind(err error, want kind.Kind) bool {
	return kind.Kind(fault.Kind(err)) == want
}

// errLost cancels the lanes of a race that another candidate has won.
var errLost = &Error{Type: string(kind.Canceled), Message: "another candidate was first"}

// lost reports whether err means that the lane was cancelled, now or when err was recorded, while the call itself continues.
func (s *session) lost(err error) bool {
	return s.ctx.Err() == nil && isKind(err, kind.Canceled)
}

// repairContext returns the context of a repair request: the call's context with the rejected answer and the reasons for its
// rejection added.
func repairContext(context JSON, o *outcome) (JSON, error) {
	repair, err := canon.Append(nil, struct {
		Out      JSON           `json:"out,omitempty"`
		Plan     JSON           `json:"plan,omitempty"` // the rejected plan, in place of an out
		Failure  *Error         `json:"failure"`
		Failed   []failedCheck  `json:"failed,omitempty"`
		Findings stone.Findings `json:"findings,omitempty"` // findings about the plan
	}{o.out, o.plan, &Error{Type: o.failure.Type, Message: o.failure.Message}, slices.Concat(o.verdict.must, o.verdict.should), o.failure.Findings()})
	if err != nil {
		return nil, err
	}
	fields := map[string]JSON{}
	if len(context) > 0 && json.Unmarshal(context, &fields) != nil {
		fields = map[string]JSON{"context": context} // the context is wrapped, because it is not an object
	}
	if fields == nil {
		fields = map[string]JSON{}
	}
	fields["repair"] = repair
	return canon.Append(nil, fields)
}
