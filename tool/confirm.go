package tool

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/stonelayer/stone/agent"
)

// ApprovalNeeded is the reason of the recommendation that a call leaves behind
// which nobody allowed.
const ApprovalNeeded = "approval-needed"

// An Approve says whether a call may run. It may ask a person and take its time,
// as long as it ends when the context does.
type Approve func(ctx context.Context, name string, input json.RawMessage) (bool, error)

// Always allows every call.
func Always(context.Context, string, json.RawMessage) (bool, error) { return true, nil }

// Confirm makes the tool of m run only if approve says so. A call that it does not
// allow is told to the model and recommends another turn, with the reason
// ApprovalNeeded; a nil Approve allows none.
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
			Text:      gated.Name + " did not run: it needs a person's approval, which was not given. Go on without it, or say why it is needed.",
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
			return next(ctx, c.Offer(gated)) // in the place of the tool that m has offered
		})
	}
	return out
}
