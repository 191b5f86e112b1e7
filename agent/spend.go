package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/llm"
)

// A payment charges a step that calls a model to the account in the context: first an estimate, afterwards the measured usage,
// even if the answer failed.
type payment struct {
	*budget.Draw
	meter *llm.Meter
	watch func() *llm.Watcher // returns a new watcher; if nil, answers are not watched
	spent budget.Usage        // the usage of this request
	own   bool                // whether the model draws on the account itself
	again int                 // how often the model was called again because it repeated itself
}

// stuck watches for a sequence of 1,000 bytes that occurs 64 times, which no ordinary text contains. Tables, logs and padding
// stay far below this limit, whereas a model in a loop always reaches it.
func stuck() *llm.Watcher {
	return &llm.Watcher{NGram: &llm.NGram{N: 1000, Threshold: 64}}
}

func pay(ctx context.Context, step string, m llm.Model, req *llm.Request) (payment, error) {
	draw, err := budget.From(ctx).Draw(ctx, stone.In(ctx), step, llm.Quote(ctx, m, req))
	return payment{Draw: draw, own: llm.InfoOf(m).Pays}, err
}

// ask sends the request, limited by the remaining budget, and passes each delta to hear. It returns the complete answer or, after
// an error, the error and the part of the answer received before it.
func (p *payment) ask(ctx context.Context, m llm.Model, req *llm.Request, hear func(*llm.Delta)) (reply *llm.Reply, err error) {
	if err := p.Begin(); err != nil {
		return nil, err
	}
	bounded := req
	if most := llm.Bound(req.MaxTokens, p.Left()); most != req.MaxTokens {
		bounded = new(*req)
		bounded.MaxTokens = most
	}
	p.meter, err = llm.NewMeter(ctx, m, req), errNoEnd
	asked := m
	if p.watch != nil {
		asked = llm.Guard(m, p.watch, p.again)
	}
	asked.Stream(ctx, bounded)(func(d llm.Delta, failed error) bool {
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

// failed returns the failure of a step whose model failed, with its cost.
func (p *payment) failed(ctx context.Context, err error) error {
	failure := modelFailure(ctx, budget.Costly(err, p.spent))
	if _, noted := budget.CostOf(failure); !noted {
		failure = budget.Costly(failure, p.spent)
	}
	return failure
}

// end charges the cost of the step, from its record or its error, and returns it. If the model draws on the account itself, the
// steps within this step have already been charged; if this step is recorded, they are not visited again.
func (p *payment) end(used budget.Usage, err error) budget.Usage {
	defer p.Close()
	if noted, ok := budget.CostOf(err); ok {
		used = noted
	} else if err != nil {
		return budget.Usage{}
	}
	if p.own && p.Live() {
		p.End(budget.Usage{})
	} else {
		p.End(used)
	}
	return used
}

// inTime calls work with a context that ends at the deadline of ctx's account.
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

// checkGrant returns a finding if the grant lacks effects that the model needs. Validate calls it.
func (a *agent) checkGrant(grant []string) []stone.Finding {
	if m, ok := a.model.(interface {
		CheckGrant(grant []string) []stone.Finding
	}); ok {
		return m.CheckGrant(grant)
	}
	return nil
}

// questions returns the names of the questions that the tools may ask.
func (a *agent) questions() (names []string) {
	for _, t := range a.offered {
		if t.Asks {
			names = append(names, a.name+"/"+t.Name)
		}
	}
	return names
}

// unpriced returns the agent's models whose price is unknown. A budget that limits money rejects them.
func (a *agent) unpriced(ctx context.Context) []string {
	if a.model == nil {
		return nil
	}
	if several, ok := a.model.(interface {
		Unpriced(context.Context) []string
	}); ok {
		return several.Unpriced(ctx)
	}
	if model := llm.Quote(ctx, a.model, &llm.Request{Model: a.cfg.Model}).Unpriced; model != "" {
		return []string{model}
	}
	return nil
}

// unfit returns an error if, according to the table of models in ctx, the agent's model cannot answer; see llm.WithTable.
func (a *agent) unfit(ctx context.Context) error {
	if a.model == nil {
		return nil
	}
	err := llm.CheckFit(ctx, a.model, &llm.Request{
		Model: a.cfg.Model, Tools: a.told, ResponseFormat: a.draft.form.Format(), Params: a.cfg.Params,
	})
	if err != nil {
		return err
	}
	err = a.refused(func(m *llm.Media) error {
		return llm.CheckFit(ctx, a.model, &llm.Request{Model: a.cfg.Model, Messages: []llm.Message{llm.User("", m)}})
	})
	if err != nil {
		return fmt.Errorf("Media: %w: use a model that reads it, or correct the model's entry under :models in .stone/stone.edn", err)
	}
	return nil
}
