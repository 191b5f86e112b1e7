package agent

import (
	"context"
	"errors"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/repetition"
)

// A payment is what a step that asks a model draws on the account of the context:
// an estimate before, the truth after, also of an answer that was none.
type payment struct {
	*budget.Draw
	meter *llm.Meter
	watch func() *repetition.Watcher // nil watches nothing
	spent budget.Usage               // by what was asked here
}

// repetitionRetries is how often a model that got stuck is asked again.
const repetitionRetries = 1

// stuck watches for what no text has in it: 1,000 bytes that come for the 64th time. Tables,
// logs and padding stay far below; a model that is stuck in a loop goes on for ever.
func stuck() *repetition.Watcher {
	return &repetition.Watcher{NGram: &repetition.NGram{N: 1000, Threshold: 64}}
}

func pay(ctx context.Context, step string, m llm.Model, req *llm.Request) (payment, error) {
	draw, err := budget.From(ctx).Draw(ctx, stone.In(ctx).Path(), step, llm.Quote(ctx, m, req))
	return payment{Draw: draw}, err
}

// ask sends the request, bounded by what is left, and hands on what comes. It returns
// the whole answer, or what had come of it beside an error.
func (p *payment) ask(ctx context.Context, m llm.Model, req *llm.Request, hear func(*llm.Delta)) (reply *llm.Reply, err error) {
	if err := p.Begin(); err != nil {
		return nil, err
	}
	bounded := *req
	bounded.MaxTokens = llm.Bound(req.MaxTokens, p.Left())
	p.meter, err = llm.NewMeter(ctx, m, req), errNoEnd
	asked := m
	if p.watch != nil {
		asked = repetition.Guard(m, p.watch, repetitionRetries)
	}
	asked.Stream(ctx, &bounded)(func(d llm.Delta, failed error) bool {
		p.meter.Hear(&d)
		hear(&d)
		if d.Reply != nil && d.Kind != llm.Start && d.Kind != llm.Restart {
			reply = d.Reply
		}
		if failed != nil || d.Kind == llm.Done {
			err = failed
			return false
		}
		return true
	})
	p.spent = p.meter.Spent(reply, err)
	return reply, err
}

// failed is the failure of a step whose model failed. It notes what was spent before.
func (p *payment) failed(ctx context.Context, err error) error {
	failure := modelFailure(ctx, budget.Costly(err, p.spent))
	if _, noted := budget.CostOf(failure); !noted {
		failure = budget.Costly(failure, p.spent)
	}
	return failure
}

// end settles what the step has cost, which is what its record says, or its error, and
// returns it.
func (p *payment) end(used budget.Usage, err error) budget.Usage {
	defer p.Close()
	if noted, ok := budget.CostOf(err); ok {
		used = noted
	} else if err != nil {
		return budget.Usage{}
	}
	p.End(used)
	return used
}

// inTime runs work in the time that the account of the context has.
func inTime[T any](ctx context.Context, work func(context.Context) (T, error)) (T, error) {
	account := budget.From(ctx)
	if _, limited := account.Deadline(); !limited {
		return work(ctx)
	}
	ctx, cancel := account.Context(ctx)
	defer cancel()
	v, err := work(ctx)
	if spent, ok := errors.AsType[*budget.ExhaustedError](context.Cause(ctx)); ok && err != nil {
		err = spent
	}
	return v, err
}

// Unpriced returns the models that the agent asks and whose price nobody knows: a budget
// that bounds money refuses them.
func (a *agent) Unpriced(ctx context.Context) []string {
	if a.model == nil {
		return nil
	}
	if model := llm.Quote(ctx, a.model, &llm.Request{Model: a.cfg.Model}).Unpriced; model != "" {
		return []string{model}
	}
	return nil
}
