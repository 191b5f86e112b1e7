package agent

import (
	"context"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm"
)

// Input is the input of an agent that Config.Admit checks.
type Input struct {
	Text     string        `json:"text"` // the text of all messages, separated by blank lines
	System   string        `json:"system,omitempty"`
	Messages []llm.Message `json:"messages"` // the conversation so far and the prompt
}

// Asked is the type of the node that Config.Admit reads.
var Asked = dag.NewType[Input]("agent/input")

// admit runs Config.Admit on the input of the first turn.
func (r *run) admit(ctx context.Context) error {
	if r.cfg.Admit.IsZero() {
		return nil
	}
	c := &r.start
	in := Input{System: c.System, Messages: c.Messages}
	var texts []string
	for i := range c.Messages {
		texts = append(texts, c.Messages[i].Text())
	}
	in.Text = strings.Join(texts, "\n\n")
	d, err := Asked.Append(r.dag, in)
	if err != nil {
		return failure(kind.BadContent, err, "%v", err)
	}
	out := stone.In(ctx).RunChild(r.cfg.Admit, d)
	if !out.InFlight() {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	// Within(nil) lifts the limit to declared queries, because no leaf declares a query for a failure in flight.
	rejection, err := dag.Failure.Of(out.Within(nil).Latest())
	if err != nil {
		return err
	}
	if slices.Contains(noVerdict, rejection.Kind) {
		return out.Cause()
	}
	return failure(reasons.NotAdmitted, &rejected{out.Cause()}, "%s", rejection.Reason)
}

// rejected wraps an error to prevent further attempts, which would fail in the same way.
type rejected struct{ error }

func (e *rejected) Unwrap() error { return e.error }

// Retryable returns false, so stone.Retry makes no further attempt.
func (e *rejected) Retryable() bool { return false }
