package view

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
)

// Messages that tell a model that a turn has ended without an answer.
const (
	notMade  = "This call was not made: the turn ended before."
	notKnown = "It is not known whether this call was done: the turn ended before its result was recorded. Find out before you make it again."
)

// Broken returns the conversation so far of a run that ended without an answer. It includes calls and results, so that the next
// turn does not repeat anything. The last message says how the run ended. Broken returns nil if no agent has started.
func Broken(ctx context.Context, j journal.Journal, info journal.RunInfo) ([]llm.Message, error) {
	steps, err := j.Steps(ctx, info.ID)
	if err != nil {
		return nil, err
	}
	tried := map[string]bool{}
	for _, s := range steps {
		tried[s.Path] = tried[s.Path] || s.Attempts > 0
	}
	agent := AgentOf(steps)
	if agent == "" {
		return nil, nil
	}
	opening, err := OpeningOf(ctx, j, info.ID, agent)
	if opening == nil {
		return nil, err
	}
	b := broken{ctx, j, info.ID, agent, tried, slices.Clip(opening.Messages)}
	for turn := 1; ; turn++ {
		if more, err := b.turn(turn); err != nil || !more {
			end := "[This turn ended without an answer: it is " + cmp.Or(string(info.State), "over") + ".]"
			return append(b.said, llm.Assistant(end)), err
		}
	}
}

// AgentOf returns the path of the outermost agent that has started in a run, or "" if there is none.
func AgentOf(steps []journal.Step) (agent string) {
	for _, s := range steps {
		if path := address.Parent(s.Path); address.Last(s.Path) == "opening" && s.Kind == "value" && (agent == "" || strings.Count(path, "/") < strings.Count(agent, "/")) {
			agent = path
		}
	}
	return agent
}

// broken is a conversation while it is being read.
type broken struct {
	ctx        context.Context
	journal    journal.Journal
	run, agent string
	tried      map[string]bool // paths of the steps that were started
	said       []llm.Message
}

// turn adds the n-th turn, and reports whether there is one.
func (b *broken) turn(n int) (bool, error) {
	reply, err := ReplyOf(b.ctx, b.journal, b.run, address.Child(b.agent, address.TurnStep(n), 1))
	if reply == nil {
		return false, err
	}
	if last := len(b.said) - 1; last >= 0 && b.said[last].Role == llm.RoleAssistant {
		b.said = append(b.said, llm.User("Continue.")) // replaces the message about the rejected answer
	}
	m := reply.Message()
	b.said = append(b.said, m)
	for i, call := range m.ToolCalls {
		if string(call.Input) == "null" {
			m.ToolCalls[i].Input = nil // the call was cut off
		}
		path := address.Child(b.agent, address.ToolStep(n, i+1), 1)
		result := llm.ToolResult(call.ID, notMade)
		o, err := OutcomeOf(b.ctx, b.journal, b.run, path)
		switch {
		case err != nil:
			return false, err
		case o != nil:
			result = o.message(call.ID)
		case b.tried[path]:
			result, result.IsError = llm.ToolResult(call.ID, notKnown), true
		default:
			result.IsError = true
		}
		b.said = append(b.said, result)
	}
	return true, nil
}

// message returns the result as a message to the model.
func (o *Outcome) message(call string) llm.Message {
	m := llm.ToolResult(call, o.Text)
	for _, media := range o.Media {
		m.Content = append(m.Content, llm.Part{Media: media})
	}
	if m.IsError = o.Failed; o.Meta != nil {
		m.Metadata = map[string]json.RawMessage{"stone/meta": o.Meta}
	}
	return m
}
