package call

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/panics"
	"github.com/stonelayer/stone/kind"
)

// An answer is what an invocation came to, as it is recorded: a resumed run finds
// it and asks nobody.
type answer struct {
	Reply      *Reply        `json:"reply,omitempty"`
	Failure    *Error        `json:"failure,omitempty"`
	RetryAfter time.Duration `json:"retry-after,omitempty"`
	LatencyMS  int64         `json:"latency-ms,omitempty"`

	live bool // it was not taken from the recorder
}

// ask invokes the capability once, within its limits. The error says that this
// did not come to its end, because ctx did. Loose is an invocation that others go
// on without.
func (e *entry) ask(ctx context.Context, req *Request, loose bool) (answer, error) {
	if err := e.enter(ctx); err != nil {
		return failing(err, ctx)
	}
	begun := time.Now()
	reply, end, err := e.invoke(ctx, req, loose)
	e.leave(end)
	a := answer{Reply: reply}
	switch {
	case err != nil && (ctx.Err() != nil || errors.Is(err, stone.ErrWaiting)):
		a, err = failing(err, ctx)
	case err != nil:
		a.Failure, err = errorOf(err), nil
	default:
		a.Failure = e.malformed(reply)
	}
	if a.Failure != nil {
		a.RetryAfter = a.Failure.RetryAfter
	}
	a.LatencyMS = time.Since(begun).Milliseconds()
	return a, err
}

// failing is the answer of an invocation that was not made or not ended: ctx says
// why, unless the capability is down or waits for a person.
func failing(err error, ctx context.Context) (answer, error) {
	if ctx.Err() == nil {
		if e := (*Error)(nil); errors.As(err, &e) {
			return answer{Failure: e}, nil
		}
		return answer{}, err
	}
	return answer{}, context.Cause(ctx)
}

// invoke calls the capability, here if nothing but the end of the run can stop it.
func (e *entry) invoke(ctx context.Context, req *Request, loose bool) (reply *Reply, end ending, err error) {
	_, limited := ctx.Deadline()
	if e.Limits.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, e.Limits.Timeout, &Error{Type: SoftTimeout, Message: fmt.Sprintf("%s took longer than its %v", e.ID, e.Limits.Timeout)})
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

// apart calls the capability in a goroutine of its own. One that does not listen
// when its time is over, or when its answer is not wanted any more, is left behind
// after a moment: whatever it returns later goes nowhere.
func (e *entry) apart(ctx context.Context, req *Request) (*Reply, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		reply *Reply
		err   error
	}
	var late atomic.Bool
	if deliver := req.Delta; deliver != nil {
		req.Delta = func(text string) {
			if !late.Load() {
				deliver(text)
			}
		}
	}
	done := make(chan result, 1)
	go func() {
		r := result{err: &Error{Type: InvokeFailed, Message: e.ID + " ended its goroutine"}}
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
	late.Store(true)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
	return nil, context.Cause(ctx)
}

func endingOf(ctx context.Context, err error) ending {
	if err == nil {
		return well
	}
	switch e := (*Error)(nil); {
	case errors.As(err, &e) && (e.Type == InvalidRequest || e.Type == InputInvalid):
		return stopped // the fault is not with the capability
	case ctx.Err() != nil && !(errors.As(err, &e) && e.Type == SoftTimeout):
		return stopped
	}
	return badly
}

// call calls Invoke; a panic is an error.
func (e *entry) call(ctx context.Context, req *Request) (reply *Reply, err error) {
	defer func() {
		if p := recover(); p != nil {
			reply, err = nil, &Error{Type: InvokeFailed, Message: strings.TrimSpace(fmt.Sprintf("%s panicked: %v %s", e.ID, p, at(panics.Place())))}
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

// malformed says what is wrong with a reply as such, and makes its out canonical.
func (e *entry) malformed(r *Reply) *Error {
	if r == nil {
		return &Error{Type: SchemaInvalid, Message: e.ID + " returned neither a reply nor an error"}
	}
	if r.Type == "" {
		r.Type = Value
	}
	wrong := func(format string, args ...any) *Error {
		return &Error{Type: SchemaInvalid, Message: "the reply of " + e.ID + " " + fmt.Sprintf(format, args...), Where: "result"}
	}
	switch r.Type {
	case Value, Stream:
		out, err := canon.AppendJSON(make([]byte, 0, len(r.Out)), r.Out)
		if err != nil {
			return wrong("is a %s without a usable out: %v", r.Type, err)
		}
		r.Out = out
	case Plan:
		if len(r.Plan) == 0 {
			return wrong("is a plan without a plan")
		}
	default:
		return wrong("has the type %q: want value, plan or stream", r.Type)
	}
	if !e.mayReply(r.Type) {
		return wrong("is a %s, which is not in its cap/can-produce", r.Type)
	}
	return nil
}

// errorOf makes a failure of what a capability returned: one with a kind of its
// own keeps it, whatever else went wrong is "runtime/invoke-failed".
func errorOf(err error) *Error {
	if e := (*Error)(nil); errors.As(err, &e) {
		return e
	}
	e := &Error{Type: InvokeFailed, Message: err.Error(), Cause: err}
	var kinded interface{ FailureKind() string }
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		e.Type = SoftTimeout
	case errors.As(err, &kinded):
		switch k := kinded.FailureKind(); k {
		case kind.Timeout:
			e.Type = SoftTimeout
		case kind.Error, kind.Panic, kind.Canceled, "":
		default:
			e.Type = k
		}
	}
	return e
}
