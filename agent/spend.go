package agent

import (
	"context"
	"errors"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/llm"
)

// spend asks a model on the account of the context: it takes a round trip before
// and charges the tokens after. What is replayed is charged too, so that a resumed
// run has spent as much as one that was never interrupted.
func spend[T any](ctx context.Context, ask func() (T, error), usage func(T) llm.Usage) (T, error) {
	draw, err := budget.From(ctx).Reserve(budget.Amount{Roundtrips: 1})
	if err != nil {
		var none T
		return none, err
	}
	v, err := ask()
	draw.Settle(budget.Amount{Tokens: total(usage(v))})
	return v, err
}

func total(u llm.Usage) int {
	n := 0
	for _, known := range []*int{u.InputTokens, u.OutputTokens} {
		if known != nil {
			n += *known
		}
	}
	return n
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
