package llm

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/fault"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm/internal/rules"
)

// Fallback returns a Model that calls the models in order until one answers. After an error, or an answer without content, it
// calls the next model, unless the context is done or the budget is exhausted; the consumer receives a Restart delta with the
// error. If the last model fails too, its error is returned, joined with the earlier errors.
//
// Every model is called under its own name; Request.Model applies only to the first model. Each model keeps its own retries,
// timeouts and limits, so set a short Retry and short Timeouts on all models but the last. Each answer is charged at the price of
// the model that produced it. A budget in USD reserves the cost of the most expensive model and requires a known price for each
// model.
//
// For a circuit breaker, a race or a judge, see call.Model.
func Fallback(models ...Model) Model { return &fallback{models} }

type fallback struct{ models []Model }

// Check implements Checker.
func (f *fallback) Check() error {
	if len(f.models) == 0 {
		return errors.New("llm: Fallback has no models: pass at least one")
	}
	for i, m := range f.models {
		if m == nil {
			return fmt.Errorf("llm: model %d of Fallback is nil", i+1)
		}
		if InfoOf(m).Pays {
			return fmt.Errorf("llm: model %d of Fallback accounts for its own costs: make the other models candidates of its call instead", i+1)
		}
		if c, ok := m.(Checker); ok {
			if err := c.Check(); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckParams returns an error unless every model supports the settings.
func (f *fallback) CheckParams(p Params) error {
	for _, m := range f.models {
		if err := CheckParams(m, p); err != nil {
			return err
		}
	}
	return nil
}

// CheckMedia returns an error unless every model accepts the media.
func (f *fallback) CheckMedia(role Role, m *Media) error {
	for _, model := range f.models {
		if err := CheckMedia(model, role, m); err != nil {
			return err
		}
	}
	return m.Check()
}

// Info describes the first model.
func (f *fallback) Info() Info {
	if len(f.models) == 0 {
		return Info{}
	}
	return InfoOf(f.models[0])
}

// request returns the request for the i-th model: req itself for the first one, and req without Model for all others.
func (f *fallback) request(i int, req *Request) *Request {
	if i == 0 || req.Model == "" {
		return req
	}
	own := *req
	own.Model = ""
	return &own
}

// quote returns a quote that ranges from the least cost of the cheapest model to the greatest cost of the most expensive model.
func (f *fallback) quote(ctx context.Context, req *Request) (q budget.Quote) {
	for i, m := range f.models {
		one := Quote(ctx, m, f.request(i, req))
		if i == 0 {
			q = one
			continue
		}
		q.Least.USD = min(q.Least.USD, one.Least.USD)
		q.Most.USD = max(q.Most.USD, one.Most.USD)
		q.Output, q.USDPerOutput = min(q.Output, one.Output), min(q.USDPerOutput, one.USDPerOutput)
		if q.Unpriced == "" {
			q.Unpriced = one.Unpriced
		}
	}
	return q
}

// Stream implements Model.
func (f *fallback) Stream(ctx context.Context, req *Request) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		if err := f.Check(); err != nil {
			yield(Delta{Reply: &Reply{}}, err)
			return
		}
		var failed fallen
		for i, m := range f.models {
			again := func(err error) bool {
				return i < len(f.models)-1 && ctx.Err() == nil && !unpaid(err) && !errors.Is(err, kind.Waiting)
			}
			err := attempt(ctx, m, f.request(i, req), again, func(d Delta, err error) bool {
				if err != nil && failed != nil {
					err = append(failed, err)
				}
				return yield(d, err)
			})
			if err == nil {
				return
			}
			failed = append(failed, err)
		}
	}
}

// attempt streams the answer of one model, with its cost at that model's own price. If the attempt fails with an error for which
// again returns true, attempt yields a Restart with the error and returns the error.
func attempt(ctx context.Context, m Model, req *Request, again func(error) bool, yield func(Delta, error) bool) (next error) {
	meter := NewMeter(ctx, m, req)
	for d, err := range m.Stream(ctx, req) {
		if d.Kind == Restart || d.Kind == Done || err != nil {
			d.Reply = measured(&d, meter, err)
		}
		if d.Kind == Done && d.Reply.CheckContent() != nil && rules.EndingOf(d.Reply.StopReason) != rules.Paused {
			d.Kind, err = 0, d.Reply.CheckContent() // an answer without content is an error rather than a Done
		}
		meter.Hear(&d)
		switch {
		case err != nil && again(err):
			if yield(Delta{Kind: Restart, Err: err, Reply: d.Reply}, nil) {
				return err
			}
			return nil
		case !yield(d, err) || err != nil || d.Kind == Done:
			return nil
		}
	}
	yield(Delta{Reply: &Reply{}}, errNotDone)
	return nil
}

// measured returns the reply of an attempt, with the cost of the attempt added.
func measured(d *Delta, m *Meter, err error) *Reply {
	reply := Reply{}
	if d.Reply != nil {
		reply = *d.Reply
	}
	if d.Kind == Restart {
		err = d.Err
	}
	spent := m.attempt(d.Reply, err)
	reply.Spent = &spent
	return &reply
}

// unpaid reports whether err means that an account refused to pay.
func unpaid(err error) bool {
	_, refused := errors.AsType[fault.Ender](err)
	return refused
}

// fallen contains the errors of a Fallback's models, in order. The last error determines whether the request may be retried.
type fallen []error

func (f fallen) Error() string {
	said := make([]string, len(f))
	for i, err := range f {
		said[i] = err.Error()
	}
	return strings.Join(said, "; then ")
}

// Unwrap returns the errors, starting with the last.
func (f fallen) Unwrap() []error {
	out := make([]error, 0, len(f))
	for i := len(f) - 1; i >= 0; i-- {
		out = append(out, f[i])
	}
	return out
}
