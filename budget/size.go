package budget

import (
	"context"
	"strings"
	"sync"
)

// The estimate for a lost attempt is based on the outputs of similar calls rather than on max-tokens alone, which is often a
// hundred times larger. If outputs are only similar, the next output exceeds the largest of n outputs with a probability of
// 1/(n+1); the margin covers most of these cases.
const (
	enoughOutputs = 8    // the number of outputs below which max-tokens is the estimate
	outputMargin  = 2    // the factor for the largest output
	mostClasses   = 1000 // the maximum number of classes; names may be data
)

// outputs holds the number and the maximum size of a run's step outputs, by class of steps.
type outputs struct {
	mu sync.Mutex
	by map[string]seen
}

// seen holds, for a class of steps, the number of outputs and the largest output's size in tokens.
type seen struct{ n, largest int }

type outputsKey struct{}

// WithOutputs returns a copy of ctx for one run. In it, the estimates for lost attempts are based on the outputs of the run's
// earlier calls.
func WithOutputs(ctx context.Context) context.Context {
	return context.WithValue(ctx, outputsKey{}, &outputs{by: map[string]seen{}})
}

// Observe adds an output's size, for the named step of the body at path. An earlier process of the run has recorded this output.
func Observe(ctx context.Context, path, step string, used Usage) {
	outputsIn(ctx).observe(classOf(path, step), used.OutputTokens)
}

func outputsIn(ctx context.Context) *outputs {
	o, _ := ctx.Value(outputsKey{}).(*outputs)
	return o
}

// classOf returns the name of a step's class. Steps belong to the same class if they are at the same place of the pipeline, in
// any round or lane, and their names differ at most in digits.
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

// expected returns the cost of a step whose output is twice as long as the largest output of its class. The output is limited to
// the longest output of the quote or, if that is longer, the largest output seen.
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
