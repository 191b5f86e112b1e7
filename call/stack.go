package call

import (
	"context"
	"fmt"

	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/reasons"
)

// maxStack is the maximum number of nested calls, which are made by returned plans and by capabilities that are pipelines or
// programs. Plans also have a lower limit; see plan.Limits.
const maxStack = 100

// A Frame is one of the calls that enclose a request; see Request.Stack.
type Frame struct {
	Call   string `json:"call"`             // the path of the call in the run
	Intent string `json:"intent,omitempty"` // empty for a tool
	Cap    string `json:"cap/id"`           // the capability that was invoked
}

type stackKey struct{}

// stackOf returns the calls around ctx, outermost first.
func stackOf(ctx context.Context) []Frame {
	stack, _ := ctx.Value(stackKey{}).([]Frame)
	return stack
}

// enter returns the context in which a capability handles a request.
func (r *Request) enter(ctx context.Context, path string) context.Context {
	stack := make([]Frame, len(r.Stack), len(r.Stack)+1)
	copy(stack, r.Stack)
	return context.WithValue(ctx, stackKey{}, append(stack, Frame{Call: path, Intent: r.Intent, Cap: r.Cap}))
}

// nested returns the calls that enclose this one, or an error if there are too many.
func (s *session) nested() error {
	s.request.Stack = stackOf(s.ctx)
	if len(s.spec.Stack) > 0 { // the calls of the process that sent the request
		s.request.Stack = append(s.spec.Stack[:len(s.spec.Stack):len(s.spec.Stack)], s.request.Stack...)
	}
	if n := len(s.request.Stack); n >= maxStack {
		return s.refused(&Error{Type: reasons.PlanTooDeep, Message: fmt.Sprintf("the call is nested in %d others, the innermost of %s: end the recursion", n, s.request.Stack[n-1].Cap)})
	}
	return nil
}

// readStack reads the calls of the process that sent a request.
func readStack(m *form.Map, to *[]Frame) {
	m.At("stack").Each(func(i int, v form.Value) {
		if i == maxStack {
			v.Fault(form.OutOfRange, "expected at most %d calls", maxStack)
		}
		if i >= maxStack {
			return
		}
		var f Frame
		v.Map(func(m *form.Map) {
			m.Need("call", "cap/id")
			m.At("call").Text(&f.Call)
			m.At("intent").Name(&f.Intent)
			m.At("cap/id").Name(&f.Cap)
		})
		*to = append(*to, f)
	})
}
