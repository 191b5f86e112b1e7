package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/internal/marked"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm"
)

// This file supports policies on marked text; see package internal/marked.

// Acts calls yield with the name and the effects of each tool or middleware that adds text to the conversation or acts on the
// model's words.
func (a *agent) Acts(yield func(name string, effects []string) bool) {
	for _, m := range a.cfg.Use {
		if m.Tool != nil && !yield(m.Tool.Name, m.Tool.acts()) || len(m.Effects) > 0 && !yield(m.Name, m.Effects) {
			return
		}
	}
}

// Hosted reports whether the model's provider runs at least one of the agent's tools.
func (a *agent) Hosted() bool {
	return slices.ContainsFunc(a.offered, func(t Tool) bool { return t.Provider != nil })
}

// acts returns the tool's effects, or nil if they are unknown.
func (t *Tool) acts() []string {
	switch {
	case t.Provider != nil:
		return []string{effect.Net}
	case t.runs != nil:
		return append([]string{}, t.runs.ashlar.Effects()...)
	}
	return t.Effects
}

// brings returns the marks of the tool's results, or all marks for an unknown tool.
func (t *Tool) brings(ctx context.Context, name string) marked.Set {
	switch {
	case t == nil:
		return marked.Brought(ctx, name, nil, stone.Ashlar{})
	case t.runs != nil:
		return marked.Brought(ctx, name, t.acts(), t.runs.ashlar)
	}
	return marked.Brought(ctx, name, t.acts(), stone.Ashlar{})
}

// opened records the initial marks of the conversation, which come from middlewares, hosted tools and an earlier conversation.
func (r *run) opened(ctx context.Context) {
	earlier := r.cfg.Conversation != nil && len(r.start.Messages) > 1 // Compact may have removed its tool calls
	for _, m := range r.cfg.Use {
		if len(m.Effects) > 0 {
			r.marks |= marked.Brought(ctx, m.Name, m.Effects, stone.Ashlar{})
		}
		if m.Tool != nil && (earlier || m.Tool.Provider != nil) {
			r.marks |= m.Tool.brings(ctx, m.Tool.Name)
		}
	}
	r.returned(ctx, r.agent.offered, r.start.Messages)
}

// returned adds the marks of the tool results in messages to the conversation's marks.
func (r *run) returned(ctx context.Context, tools []Tool, messages []llm.Message) {
	for i := range messages {
		for _, call := range messages[i].ToolCalls {
			r.marks |= find(tools, call.Name).brings(ctx, call.Name)
		}
	}
}

// admit returns the context for the call, or the reason why the call does not run. It may first ask a person to allow the call.
func (j *job) admit(ctx context.Context) (within context.Context, refusal string, err error) {
	var p stone.Ashlar
	in := ""
	if j.tool.runs != nil {
		p, in = j.tool.runs.ashlar, j.tool.runs.in.Name()
	}
	within, why, asks := marked.Admit(ctx, j.tool.Name, j.tool.acts(), j.tool.Schema, p, in)
	if why == "" {
		return within, "", nil
	}
	refusal = j.tool.Name + " did not run: " + why + ". Continue without it, and say what you could not do."
	if !asks {
		return ctx, refusal, nil
	}
	answer, err := stone.Step(ctx, "marked", toolInput{j.call.Name, j.call.Input}, func(ctx context.Context, _ toolInput) (string, error) {
		shown := string(j.call.Input)
		if j.tool.Preview != nil {
			preview, err := j.tool.Preview(ctx, j.call.Input)
			if err != nil {
				return "", err
			}
			shown = preview + "\n" + shown
		}
		about, _ := CallIn(context.WithValue(ctx, jobKey{}, j))
		return stone.In(ctx).Ask(ask.Question{
			Name: j.name + "/" + j.tool.Name, Call: &about, Choices: []string{"yes", "no", "no: …"},
			Text: fmt.Sprintf("%s wants to call %s:\n%s\nIt may follow the words of a stranger: %s.", j.name, j.tool.Name, shown, why),
		})
	})
	switch reason, given := strings.CutPrefix(answer, "no: "); {
	case errors.Is(err, kind.NoFrontend):
		return ctx, refusal, nil
	case err != nil:
		return ctx, "", err
	case answer == "yes":
		return within, "", nil
	case given:
		return ctx, j.tool.Name + " did not run: a person refused this call: " + reason, nil
	}
	return ctx, j.tool.Name + " did not run: a person refused this call. Continue without it.", nil
}
