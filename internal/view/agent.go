package view

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/step"
)

// Record returns the result of a step, or nil if the step has no result, for example after a restart.
func Record(ctx context.Context, j journal.Journal, run, path, kind string) (*step.Record, error) {
	rec, err := j.Record(ctx, run, path, kind)
	if errors.Is(err, journal.ErrNoStep) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &rec, nil
}

// An Opening is the first record of an agent. It contains the beginning of the conversation.
type Opening struct {
	System   string        `json:"system"`
	Messages []llm.Message `json:"messages"`
	Tools    []string      `json:"tools"`  // names of the offered tools
	Params   *llm.Params   `json:"params"` // nil if no parameter is set
}

// OpeningOf returns the opening of the agent at a path, or nil if no agent has started there.
func OpeningOf(ctx context.Context, j journal.Journal, run, path string) (*Opening, error) {
	rec, err := Record(ctx, j, run, address.Child(path, "opening", 1), "value")
	if rec == nil {
		return nil, err
	}
	o := new(Opening)
	if json.Unmarshal(rec.Content, o) != nil {
		return nil, nil // a step of a different kind has the same name
	}
	return o, nil
}

// ReplyOf returns the model's reply in an agent's turn, or nil if the turn has none. A turn may have been repeated because a
// request was too long.
func ReplyOf(ctx context.Context, j journal.Journal, run, path string) (*llm.Reply, error) {
	for _, at := range []string{path, path + "@2"} {
		rec, err := Record(ctx, j, run, at, "step")
		var t struct {
			Reply *llm.Reply `json:"reply"`
		}
		if rec != nil && json.Unmarshal(rec.Content, &t) == nil && t.Reply != nil || err != nil {
			return t.Reply, err
		}
	}
	return nil, nil
}

// By returns the name of the model that wrote a reply and the reason why it stopped.
func By(r *llm.Reply) string { return strings.TrimSpace(r.Model + " " + r.StopReason) }

// An Outcome is the result of a tool call.
type Outcome struct {
	Text   string          `json:"text"`
	Media  []*llm.Media    `json:"media"`
	Meta   json.RawMessage `json:"meta"`
	Failed bool            `json:"failed"`
}

// OutcomeOf returns the result of a tool call, or nil if the call has none.
func OutcomeOf(ctx context.Context, j journal.Journal, run, path string) (*Outcome, error) {
	rec, err := Record(ctx, j, run, path, "step")
	o := new(Outcome)
	if rec == nil || json.Unmarshal(rec.Content, o) != nil {
		return nil, err
	}
	return o, nil
}
