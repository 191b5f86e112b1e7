package call

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/event"
	asking "github.com/stonelayer/stone/internal/asked"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/limit"
	"github.com/stonelayer/stone/internal/panics"
	"github.com/stonelayer/stone/internal/past"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/record"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm"
)

// An answer is the recorded result of an invocation. A resumed run reuses it and does not invoke the capability again.
type answer struct {
	Asked      *sent         `json:"asked,omitempty"`
	Reply      *Reply        `json:"reply,omitempty"`
	Failure    *Error        `json:"failure,omitempty"`
	RetryAfter time.Duration `json:"retry-after,omitempty"`
	LatencyMS  int64         `json:"latency-ms,omitempty"`
	Usage      budget.Usage  `json:"usage,omitzero"`

	told bool        // whether Usage is known even though the invocation may not have finished
	live bool        // whether the answer was not taken from the recorder
	at   event.Place // the place at which a live answer was streamed
}

// A setback is the error of a step whose recorded answer is a failure. Because the step of the invocation fails with this error,
// a run that failed for this reason invokes the capability again when it is resumed.
type setback struct{ answer answer }

// setbackKey is the key under which the meta of a failed step contains the answer.
const setbackKey = "answer"

func (s *setback) Error() string       { return s.answer.Failure.Error() }
func (s *setback) FailureKind() string { return s.answer.Failure.Type }

func (s *setback) FailureMeta() map[string]string {
	raw, err := canon.Append(nil, s.answer)
	if err != nil {
		return nil
	}
	return map[string]string{setbackKey: string(raw), terms.UsageNote: s.answer.Usage.Meta()}
}

// setbackIn returns the answer in the error of a live or replayed step. It returns false if the error contains none.
func setbackIn(err error) (a answer, ok bool) {
	if err == nil {
		return a, false
	}
	if s, ok := errors.AsType[*setback](err); ok {
		return s.answer, true
	}
	var noted interface{ FailureMeta() map[string]string }
	if !errors.As(err, &noted) {
		return answer{}, false
	}
	text, ok := noted.FailureMeta()[setbackKey]
	return a, ok && json.Unmarshal([]byte(text), &a) == nil
}

// asked is the step input of an invocation: the part of a request that can affect the answer. It excludes the remaining budget,
// which differs in a resumed run.
type asked struct {
	Intent      string   `json:"intent"`
	Cap         string   `json:"cap"`
	Version     string   `json:"version,omitempty"` // the capability's version
	Input       JSON     `json:"input,omitempty"`
	Context     JSON     `json:"context,omitempty"`
	Constraints JSON     `json:"constraints,omitempty"`
	Requires    Requires `json:"requires,omitzero"`
	Schema      string   `json:"schema,omitempty"` // the schema's digest
	Done        Done     `json:"done,omitzero"`

	Prompts map[string]string `json:"prompts,omitempty"`
}

func (r *Request) asked(version string) asked {
	return asked{r.Intent, r.Cap, version, r.Input, r.Context, r.Constraints, r.Requires, r.schemaID, r.Done, r.Prompts}
}

// key returns a digest that identifies an invocation by its place, its request and how often the step was deliberately repeated.
// The place alone is not enough, because repeating an earlier step can change the request at the same place.
func key(ctx context.Context, asked asked) string {
	at := stone.In(ctx)
	if at.Path() == "" {
		return ""
	}
	text, _ := canon.Append(nil, &asked) // a step's input can always be encoded
	sum := sha256.Sum256(text)
	k := fmt.Sprintf("%s/%s %x", at.RunID(), at.Path(), sum[:8])
	if n := record.Anew(ctx); n > 0 {
		k += "#" + strconv.Itoa(n)
	}
	return k
}

// paid invokes the capability in a recorded step and settles the amount drawn for it. A resumed run does not repeat the step.
func (e *entry) paid(ctx context.Context, req *Request, step string, draw *budget.Draw, loose bool) (answer, error) {
	defer draw.Close()
	var at event.Place
	call := stone.In(ctx).Path()
	a, err := stone.Step(draw.Context(ctx), step, req.asked(e.Version), func(ctx context.Context, asked asked) (answer, error) {
		if err := draw.Begin(); err != nil {
			return answer{}, err
		}
		if len(e.Needs) > 0 || e.Cost != (Cost{Latency: e.Cost.Latency}) { // A resumed run can simply invoke other capabilities again.
			if err := past.Ask(ctx, e.Needs, asked); err != nil {
				return answer{}, err
			}
		}
		req.Budget = draw.Left()
		req.Key = key(ctx, asked)
		if at = event.At(ctx); !req.judges && req.Turn == nil { // a Model's consumer streams the answer itself
			req.Voice = at.Speak(e.ID)
		}
		a, err := e.ask(req.enter(ctx, call), req, loose)
		if err == nil && a.Failure == nil && req.refuse != nil {
			if a.Failure, err = req.refuse(req, a.Reply); a.Failure != nil {
				a.Failure = cleaned(a.Failure)
			}
		}
		if err == nil && a.Failure == nil {
			a.Reply.speak(req.Voice)
			req.Voice.End()
		}
		switch {
		case err != nil && a.told:
			err = budget.Costly(err, a.Usage)
		case errors.Is(err, kind.Waiting): // the invocation takes place after the question has been answered
			err = budget.Costly(err, budget.Usage{})
		case err != nil:
			err = budget.Costly(err, draw.Estimate()) // the actual cost is unknown
		case err == nil && a.Failure != nil:
			err = &setback{a}
		}
		return a, err
	})
	if s, ok := setbackIn(err); ok {
		a, err = s, nil
	}
	if u, told := budget.CostOf(err); told {
		a.Usage = u
		draw.End(u)
	} else if err == nil {
		draw.End(a.Usage)
	}
	a.live, a.at = draw.Live(), at
	return a, err
}

// ask invokes the capability once, within its limits. An error means that the invocation was stopped because ctx ended, or that
// it is waiting for a person. If loose is true, other lanes do not wait for the invocation.
func (e *entry) ask(ctx context.Context, req *Request, loose bool) (answer, error) {
	place, err := e.enter(ctx)
	if err != nil {
		a, err := failing(err, ctx)
		a.told = true // no capability was invoked, so the usage is zero
		return a, err
	}
	start, end := time.Now(), stopped
	defer func() { e.leave(place, end) }() // runs even if the capability ends its goroutine
	ctx, note := asking.With(ctx)
	reply, end, err := e.invoke(ctx, req, loose)
	a := answer{Asked: sentTo(req, note.Sent())}
	switch {
	case past.Taken(ctx):
		end = well
		return answer{}, err
	case err != nil && (ctx.Err() != nil || errors.Is(err, kind.Waiting)):
		a, err = failing(err, ctx)
		a.Asked = sentTo(req, note.Sent())
	case err != nil:
		a.Failure, err = cleaned(errorOf(err)), nil
	default:
		a.Reply, a.Failure = e.cleaned(reply)
	}
	if a.Failure != nil {
		a.RetryAfter = a.Failure.RetryAfter
	}
	if reply == nil && a.Failure != nil && a.Failure.Usage != (Usage{}) {
		reply = &Reply{Usage: a.Failure.Usage}
	}
	if a.told = err == nil || reply != nil; a.told {
		a.Usage = e.usage(reply)
	}
	a.LatencyMS = time.Since(start).Milliseconds()
	if reply != nil && reply.Usage.Mode == llm.Replay && reply.Usage.LatencyMS > 0 {
		a.LatencyMS = reply.Usage.LatencyMS // the latency of the recorded answer
	}
	return a, err
}

// failing returns the answer for an invocation that did not start or finish because of err. The failure's reason is ctx's cause,
// unless the capability is unavailable or is waiting for a person.
func failing(err error, ctx context.Context) (answer, error) {
	if ctx.Err() == nil {
		if e := (*Error)(nil); errors.As(err, &e) {
			return answer{Failure: cleaned(e)}, nil
		}
		return answer{}, err
	}
	return answer{}, context.Cause(ctx)
}

// invoke calls the capability, on the current goroutine if only the end of the run can stop the invocation.
func (e *entry) invoke(ctx context.Context, req *Request, loose bool) (reply *Reply, end ending, err error) {
	_, limited := ctx.Deadline()
	if e.Limits.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = limit.WithTimeout(ctx, e.Limits.Timeout, &Error{Type: reasons.SoftTimeout, Message: fmt.Sprintf("%s took longer than its limit of %v", e.ID, e.Limits.Timeout)})
		defer cancel()
		limited = true
	}
	if limited || loose {
		reply, err = e.apart(ctx, req)
	} else if reply, err = e.call(ctx, req); err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return reply, endingOf(ctx, err), err
}

// apart invokes the capability in a separate goroutine. A capability that ignores its timeout or its cancellation is abandoned
// after a moment, and its later result is dropped. A result that arrives within that moment has been paid for, and is recorded if
// the run itself is ending.
func (e *entry) apart(ctx context.Context, req *Request) (*Reply, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		reply *Reply
		err   error
	}
	done := make(chan result, 1)
	go func() {
		r := result{err: &Error{Type: reasons.InvokeFailed, Message: e.ID + " called runtime.Goexit"}}
		defer func() { done <- r }()
		r.reply, r.err = e.call(ctx, req)
	}()
	select {
	case r := <-done:
		if r.err != nil && ctx.Err() != nil {
			r.err = context.Cause(ctx)
		}
		return r.reply, r.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	cause := context.Cause(ctx)
	var refused interface{ FailureKind() string } // the invocation took too long, or another candidate has won
	select {
	case r := <-done:
		if r.err == nil && !errors.As(cause, &refused) {
			return r.reply, nil
		}
		return r.reply, cause // the reply contains the usage
	case <-timer.C:
	}
	return nil, cause
}

// endingOf classifies an invocation for the breaker: either the capability was unavailable, which eventually opens the breaker,
// or it answered, perhaps with a failure. One caller's bad input, refusal or malformed answer must not make the capability
// unavailable to others.
func endingOf(ctx context.Context, err error) ending {
	if err == nil {
		return well
	}
	var unreached net.Error
	var late *limit.TooLateError
	switch e := (*Error)(nil); {
	case errors.As(err, &late): // nothing was sent
		return stopped
	case errors.As(err, &e) && e.Type == reasons.SoftTimeout:
		return badly
	case ctx.Err() != nil:
		return stopped
	case e != nil && e.Type == reasons.Unavailable, errors.As(err, &unreached), errors.Is(err, context.DeadlineExceeded):
		return badly
	case e != nil && (e.Type == reasons.InvalidRequest || e.Type == reasons.InputInvalid):
		return stopped
	}
	return well
}

// call calls Invoke. If Invoke panics, call returns the panic as an error.
func (e *entry) call(ctx context.Context, req *Request) (reply *Reply, err error) {
	defer func() {
		if p := recover(); p != nil {
			reply, err = nil, &Error{Type: reasons.InvokeFailed, Message: strings.TrimSpace(fmt.Sprintf("%s panicked: %v %s", e.ID, p, at(panics.Place())))}
		}
	}()
	return e.Invoke(ctx, req)
}

func at(place string) string {
	if place == "" {
		return ""
	}
	return "(" + place + ")"
}

// cleaned returns a copy of a reply that can be recorded, with a canonical out, or an
// error that says what is wrong with the reply.
func (e *entry) cleaned(reply *Reply) (*Reply, *Error) {
	wrong := func(format string, args ...any) (*Reply, *Error) {
		return nil, cleaned(&Error{Type: reasons.SchemaInvalid, Message: "the reply of " + e.ID + " " + fmt.Sprintf(format, args...), Where: "result"})
	}
	if reply == nil {
		return wrong("is nil, and so is the error")
	}
	r := *reply
	r.Type = cmp.Or(r.Type, Value)
	r.Usage.Usage = r.Usage.Sane()
	r.Usage.Cap = e.ID
	if mode := r.Usage.Mode; mode != "" && !slices.Contains(modes, mode) {
		return wrong("has the usage mode %q: want %s", mode, strings.Join(modes, ", "))
	}
	var err error
	switch r.Type {
	case Value, Stream:
		r.Plan, r.Bindings = nil, nil
		if r.Out, err = canon.AppendJSON(nil, r.Out); err != nil {
			return wrong("is a %s without a usable out: %v", r.Type, err)
		}
	case Plan:
		r.Out = nil
		if len(r.Plan) == 0 {
			return wrong("is a plan without a plan")
		}
		if r.Bindings == nil {
			break
		}
		if r.Bindings, err = canon.AppendJSON(nil, r.Bindings); err != nil || r.Bindings[0] != '{' {
			return wrong("is a plan whose bindings are not an object")
		}
	default:
		return wrong("has the type %q: want value, plan or stream", r.Type)
	}
	if !e.mayReply(r.Type) {
		return wrong("is a %s, which is not in its cap/can-produce", r.Type)
	}
	return &r, nil
}

// usage returns the reported cost of an invocation or, if none is reported, the declared cost.
func (e *entry) usage(reply *Reply) (u budget.Usage) {
	if reply != nil {
		u = reply.Usage.Sane()
	}
	if u.USD == 0 {
		u.USD = e.Cost.Of(u)
	}
	return u.Sane()
}

// cleaned returns a copy of an error that can be recorded.
func cleaned(e *Error) *Error {
	c := *e
	c.Type, c.Message, c.Where = valid(cmp.Or(c.Type, reasons.InvokeFailed)), valid(c.Message), valid(c.Where)
	var err error
	if c.Details, err = canon.AppendJSON(nil, c.Details); err != nil {
		c.Details = nil
	}
	return &c
}

// valid returns s with invalid UTF-8 replaced.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }

// errorOf returns the failure for a capability's error. A timeout becomes "timeout/soft". An error with a failure kind other than
// error, panic and canceled keeps its kind, and any other error is "runtime/invoke-failed".
func errorOf(err error) *Error {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e
	}
	e := &Error{Type: reasons.InvokeFailed, Message: err.Error(), Cause: err}
	var kinded interface{ FailureKind() string }
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		e.Type = reasons.SoftTimeout
	case errors.As(err, &kinded):
		switch k := kind.Kind(kinded.FailureKind()); k {
		case kind.Timeout:
			e.Type = reasons.SoftTimeout
		case kind.Error, kind.Panic, kind.Canceled, "":
		default:
			e.Type = string(k)
		}
	}
	return e
}
