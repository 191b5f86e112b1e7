package agent

import (
	"context"
	"errors"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/llm"
)

// A payment is what a step that asks a model draws on the account of the context:
// a round trip before, the tokens after, also those of an answer that was none.
type payment struct {
	*budget.Draw
	wasted llm.Usage
}

func pay(ctx context.Context, step string) (*payment, error) {
	draw, err := budget.From(ctx).Draw(ctx, stone.In(ctx).Path(), step, budget.Amount{Roundtrips: 1})
	return &payment{Draw: draw}, err
}

// failed notes what an answer has cost in the error that is its end.
func (p *payment) failed(err error, u llm.Usage) error {
	p.wasted = u
	return budget.Costly(err, count(u.InputTokens), count(u.OutputTokens), 0)
}

func (p *payment) end(u llm.Usage) {
	p.End(budget.Amount{Tokens: total(u) + total(p.wasted)})
}

func count(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

func total(u llm.Usage) int { return count(u.InputTokens) + count(u.OutputTokens) }

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
