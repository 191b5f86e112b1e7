package tool

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/stonelayer/stone/agent"
)

// approvalNeeded is the reason given in the recommendation when a call was not approved.
const approvalNeeded = "approval-needed"

// A Call is a tool call that needs approval.
type Call struct {
	Tool  string
	Input json.RawMessage

	preview func(context.Context, json.RawMessage) (string, error)
}

// Preview returns a description of the call for a person: the changes that the call would make, such as a diff, or, if the tool
// has no preview, the call's arguments. An error means that the call would fail.
func (c Call) Preview(ctx context.Context) (string, error) {
	if c.preview == nil {
		return arguments(c.Input), nil
	}
	return c.preview(ctx, c.Input)
}

// A Decision says whether a call may run. The zero Decision refuses the call.
type Decision struct {
	Allowed bool
	Reason  string // the reason for a refusal, which the model receives; may be empty
}

// An Approver decides whether calls may run. The zero Approver allows none.
type Approver struct {
	// Approve decides whether a call may run. It may block, but must return when the context is done. If it returns an error, the
	// call fails with this error.
	Approve func(ctx context.Context, call Call) (Decision, error)
	// Asks means that Approve may ask a person, as [Ask] does. Set it if Approve calls Ask.Approve: programs can then find the
	// questions, and Validate warns if no one can answer them.
	Asks bool
}

// Always allows every call.
var Always = Approver{Approve: func(context.Context, Call) (Decision, error) { return Decision{Allowed: true}, nil }}

// Confirm returns a middleware that offers the tool of m, but runs a call only if the approver allows it. If it refuses, the
// model receives the refusal and its reason, and the call recommends another turn with the reason "approval-needed". The tool's
// timeout starts after the approval.
//
//	tool.Confirm(fs.Write(root), tool.Ask)
func Confirm(m agent.Middleware, by Approver) agent.Middleware {
	if m.Tool == nil {
		return broken(m.Name, fmt.Errorf("tool.Confirm: the middleware %q offers no tool", m.Name))
	}
	gated := *m.Tool
	gated.Timeout = 0 // run applies the timeout itself
	gated.Asks = gated.Asks || by.Asks
	gated.Run = func(ctx context.Context, input json.RawMessage) (agent.Result, error) {
		var decision Decision
		if by.Approve != nil {
			var err error
			if decision, err = by.Approve(ctx, Call{gated.Name, input, gated.Preview}); err != nil {
				return agent.Result{}, err
			}
		}
		if decision.Allowed {
			if m.Tool.Timeout <= 0 {
				return m.Tool.Run(ctx, input)
			}
			within, cancel := context.WithTimeout(ctx, m.Tool.Timeout)
			defer cancel()
			res, err := m.Tool.Run(within, input)
			if err != nil && within.Err() != nil && ctx.Err() == nil {
				err = fmt.Errorf("the tool %q was stopped at its time limit of %v: %w", m.Tool.Name, m.Tool.Timeout, err)
			}
			return res, err
		}
		return refused(gated.Name, decision.Reason), nil
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

func refused(name, reason string) agent.Result {
	text := name + " did not run: it needs a person's approval, which was not given. Continue without it, or say why it is needed."
	if reason != "" {
		text = name + " did not run: " + reason
	}
	return agent.Result{
		Text:      text,
		Recommend: &agent.Recommendation{Action: agent.Loop, Source: name, Reason: approvalNeeded},
	}
}
