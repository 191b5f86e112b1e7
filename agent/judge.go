package agent

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm"
)

// noVerdict lists the failure kinds that say nothing about the draft. The judge itself has failed, and another turn would not
// help.
var noVerdict = []kind.Kind{
	kind.Canceled, kind.Panic, kind.UndeclaredQuery, kind.MissingInput, kind.BadContent,
	budget.Kind, reasons.Unpriced, kind.Replay, kind.Recorder, kind.NoFrontend, kind.Unanswered, kind.Declined, kind.Waiting,
	reasons.ModelFailed, reasons.EmptyResponse, reasons.Degenerate, reasons.Truncated, reasons.ModelRefused, reasons.ParseFailed, reasons.MaxTurns,
}

// vote runs the adversary on a draft. It returns the messages to the model, or nil if the draft passes.
func (r *run) vote(ctx context.Context, v any) ([]llm.Message, error) {
	draft, err := r.draft.node(r.dag, v)
	if err != nil {
		return nil, failure(kind.BadContent, err, "%v", err)
	}
	d, err := r.dag.Append(draft)
	if err != nil {
		return nil, err
	}
	out := stone.In(ctx).RunChild(r.cfg.Adversary, d)
	if !out.InFlight() {
		return nil, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// Within(nil) lifts the limit to declared queries, because no leaf declares a query for a failure in flight.
	rejection, err := dag.Failure.Of(out.Within(nil).Latest())
	if err != nil {
		return nil, err
	}
	if slices.Contains(noVerdict, rejection.Kind) {
		return nil, out.Cause()
	}
	if r.healed >= r.maxHealing {
		return nil, failure(reasons.HealingExhausted, out.Cause(), "%q rejected the draft after %d rounds of healing: %s", r.cfg.Adversary.Name(), r.healed, rejection.Reason)
	}
	r.healed++
	say := []llm.Message{llm.User(cmp.Or(rejection.Reason, "Your answer was rejected."))}
	if r.cfg.Healer.IsZero() {
		return say, nil
	}
	text, err := r.heal(ctx, d, rejection)
	if err != nil {
		return nil, err
	}
	if text != "" {
		say = append(say, llm.User(text))
	}
	return say, nil
}

// heal runs the healer, which sees the rejection after the draft.
func (r *run) heal(ctx context.Context, d dag.DAG, rejection dag.FailureContent) (string, error) {
	d, err := d.Append(dag.NewFailure(d, rejection, nil, time.Time{}))
	if err != nil {
		return "", err
	}
	out := stone.In(ctx).RunChild(r.cfg.Healer, d)
	if out.InFlight() {
		return "", out.Cause()
	}
	return out.Within(nil).Latest().Text(), nil
}
