package tool

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/stonelayer/stone/agent"
)

// ApprovalNeeded is the reason of the recommendation of a call that was not approved.
const ApprovalNeeded = "approval-needed"

// An Approve reports whether a call may run. It may ask a person and block, but must
// return when the context is done.
type Approve func(ctx context.Context, name string, input json.RawMessage) (bool, error)

// Always allows every call.
func Always(context.Context, string, json.RawMessage) (bool, error) { return true, nil }

// Confirm runs the tool of m only if approve returns true. Otherwise the model is told,
// and the call recommends another turn, with the reason ApprovalNeeded. A nil Approve
// allows no call.
func Confirm(m agent.Middleware, approve Approve) agent.Middleware {
	if m.Tool == nil {
		return broken(m.Name, fmt.Errorf("tool.Confirm: the middleware %q offers no tool", m.Name))
	}
	gated := *m.Tool
	gated.Run = func(ctx context.Context, input json.RawMessage) (agent.Result, error) {
		if approve != nil {
			if ok, err := approve(ctx, gated.Name, input); err != nil {
				return agent.Result{}, fmt.Errorf("asking for approval: %w", err)
			} else if ok {
				return m.Tool.Run(ctx, input)
			}
		}
		return agent.Result{
			Text:      gated.Name + " did not run: it needs a person's approval, which was not given. Continue without it, or say why it is needed.",
			Recommend: &agent.Recommendation{Action: agent.Loop, Source: gated.Name, Reason: ApprovalNeeded},
		}, nil
	}
	out := m
	out.Tool = &gated
	if m.Wrap == nil {
		return out
	}
	out.Wrap = func(ctx context.Context, c agent.Context, next agent.Handler) (agent.Context, error) {
		return m.Wrap(ctx, c, func(ctx context.Context, c agent.Context) (agent.Context, error) {
			return next(ctx, c.Offer(gated)) // replaces the tool that m has offered
		})
	}
	return out
}
