package budget

import (
	"context"
	"strings"
	"sync"
)

// The estimate of a lost attempt follows the outputs of calls like it, instead of max-tokens alone, which is often a hundred
// times larger. If outputs are merely alike, the next one exceeds the largest of n with a chance of 1/(n+1); the margin covers
// most of these.
const (
	enoughOutputs = 8    // below this, max-tokens is the estimate
	outputMargin  = 2    // times the largest output
	mostClasses   = 1000 // limited, because names may be data
)

// outputs holds the largest step outputs of a run, by class.
type outputs struct {
	mu sync.Mutex
	by map[string]seen
}

// seen are the outputs of a class of steps, in tokens.
type seen struct{ n, largest int }

type outputsKey struct{}

// WithOutputs returns the context of a run whose estimates follow the outputs of its calls.
func WithOutputs(ctx context.Context) context.Context {
	return context.WithValue(ctx, outputsKey{}, &outputs{by: map[string]seen{}})
}

// Observe notes the output of the named step of the body at path, which an earlier process of the run recorded.
func Observe(ctx context.Context, path, step string, used Usage) {
	outputsIn(ctx).observe(classOf(path, step), used.OutputTokens)
}

func outputsIn(ctx context.Context) *outputs {
	o, _ := ctx.Value(outputsKey{}).(*outputs)
	return o
}

// classOf names the class of a step: all steps at the same place, in any round or lane. Names that differ only in digits are one
// class.
func classOf(path, step string) string {
	return strings.Map(func(r rune) rune {
		if '0' <= r && r <= '9' {
			return -1
		}
		return r
	}, path+"/"+step)
}

func (o *outputs) observe(class string, tokens int) {
	if o == nil || tokens <= 0 {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	s, known := o.by[class]
	if !known && len(o.by) >= mostClasses {
		return
	}
	o.by[class] = seen{s.n + 1, max(s.largest, tokens)}
}

// expected returns the cost of a step whose output is twice the largest of its class, limited to the quote's longest output or,
// if longer, the largest seen.
func (o *outputs) expected(class string, q Quote) Amount {
	most := q.Most.sane()
	if o == nil || q.Output <= 0 {
		return most
	}
	o.mu.Lock()
	s := o.by[class]
	o.mu.Unlock()
	if s.n < enoughOutputs {
		return most
	}
	tokens := min(times(s.largest, outputMargin), max(q.Output, s.largest))
	most.Tokens = max(most.Tokens-q.Output, 0) + tokens
	most.USD = max(most.USD+float64(tokens-q.Output)*q.USDPerOutput, q.Least.sane().USD)
	return most
}
