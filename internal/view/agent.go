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

// Record reads the result of a step. It is nil if the step has none, as after a restart.
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

// An Opening is an agent's first record: the beginning of its conversation.
type Opening struct {
	System   string        `json:"system"`
	Messages []llm.Message `json:"messages"`
	Tools    []string      `json:"tools"`  // names of the offered tools
	Params   *llm.Params   `json:"params"` // nil if none is set
}

// OpeningOf reads the opening of the agent at a path. It is nil if no agent started there.
func OpeningOf(ctx context.Context, j journal.Journal, run, path string) (*Opening, error) {
	rec, err := Record(ctx, j, run, address.Child(path, "opening", 1), "value")
	if rec == nil {
		return nil, err
	}
	o := new(Opening)
	if json.Unmarshal(rec.Content, o) != nil {
		return nil, nil // a step of another kind has the name
	}
	return o, nil
}

// ReplyOf reads a model's reply in an agent's turn, which may have been repeated after a request that was too long. It is nil if
// the turn has none.
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

// By names the model of a reply and the reason why it stopped.
func By(r *llm.Reply) string { return strings.TrimSpace(r.Model + " " + r.StopReason) }

// An Outcome is the result of a tool call.
type Outcome struct {
	Text   string          `json:"text"`
	Media  []*llm.Media    `json:"media"`
	Meta   json.RawMessage `json:"meta"`
	Failed bool            `json:"failed"`
}

// OutcomeOf reads the result of a tool call. It is nil if the call has none.
func OutcomeOf(ctx context.Context, j journal.Journal, run, path string) (*Outcome, error) {
	rec, err := Record(ctx, j, run, path, "step")
	o := new(Outcome)
	if rec == nil || json.Unmarshal(rec.Content, o) != nil {
		return nil, err
	}
	return o, nil
}
