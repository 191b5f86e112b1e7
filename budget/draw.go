package budget

import (
	"context"
	"encoding/json"
)

// A Draw pays for a recorded step: a stone.Step whose work costs something. A step
// whose result is recorded costs nothing more, so that a run that is resumed
// spends what a run that was never interrupted spends.
//
//	draw, err := account.Draw(ctx, stone.In(ctx).Path(), "ask", budget.Amount{Roundtrips: 1})
//	if err != nil {
//		return err // *ExhaustedError: nothing was started
//	}
//	reply, err := stone.Step(draw.Context(ctx), "ask", question, func(ctx context.Context) (Reply, error) {
//		if err := draw.Begin(); err != nil {
//			return Reply{}, err
//		}
//		return model.Ask(ctx)
//	})
//	draw.End(budget.Amount{Tokens: reply.Tokens})
type Draw struct {
	account  *Account
	amount   Amount
	reserved *Reservation
	known    bool // nothing was reserved, since the result is recorded
	live     bool
}

// Draw reserves what the step with the name, in the body at the path, costs as far
// as that is known before. It reserves nothing if the result of the step is
// recorded. The error is an *ExhaustedError.
func (a *Account) Draw(ctx context.Context, path, step string, amount Amount) (*Draw, error) {
	d := &Draw{account: a, amount: amount, known: Recorded(ctx, path, step)}
	if d.known {
		return d, nil
	}
	var err error
	d.reserved, err = a.Reserve(amount)
	return d, err
}

// Context returns the context for the step. It declares the amount, which a
// journal notes with each attempt: an attempt that has left no result is taken to
// have cost it.
func (d *Draw) Context(ctx context.Context) context.Context { return Declare(ctx, d.amount) }

// Begin is called when the work of the step begins. It fails with an
// *ExhaustedError if the step was taken for recorded, is not, and cannot be paid.
func (d *Draw) Begin() (err error) {
	if d.live = true; d.known {
		d.known = false
		d.reserved, err = d.account.Reserve(d.amount)
	}
	return err
}

// End settles what the step has cost, now or when it was recorded. It is not
// called for work that began and did not finish: what was reserved stays taken.
func (d *Draw) End(spent Amount) {
	switch {
	case d.live:
		d.reserved.Settle(spent)
	default:
		d.reserved.Cancel()
		spent.Roundtrips = d.amount.Roundtrips
		d.account.replay(spent)
	}
}

// Live reports whether the work of the step has started in this process.
func (d *Draw) Live() bool { return d.live }

// Cancel gives everything back: the step was not started.
func (d *Draw) Cancel() {
	if d != nil {
		d.reserved.Cancel()
	}
}

type declaredKey struct{}

// Declare returns the context for a recorded step that may cost the amount. The
// zero amount declares nothing, for what the step does in turn.
func Declare(ctx context.Context, amount Amount) context.Context {
	return context.WithValue(ctx, declaredKey{}, amount.sane())
}

// Declared returns what the step that is started in ctx may cost.
func Declared(ctx context.Context) Amount {
	amount, _ := ctx.Value(declaredKey{}).(Amount)
	return amount
}

type recordedKey struct{}

// WithRecorded returns a context in which the run knows some steps already: those
// for which known returns true, given the path of the body and the name.
func WithRecorded(ctx context.Context, known func(path, step string) bool) context.Context {
	return context.WithValue(ctx, recordedKey{}, known)
}

// Recorded reports whether the run knows the result of a step that cost something.
func Recorded(ctx context.Context, path, step string) bool {
	known, _ := ctx.Value(recordedKey{}).(func(path, step string) bool)
	return known != nil && known(path, step)
}

// MetaKey is where the meta of a failed step says what it has cost all the same,
// as JSON with the fields input_tokens, output_tokens and cost.
const MetaKey = "usage"

// Costly returns err with a note of what was spent before it: the cost of a failed
// attempt counts like that of any other. An answer that is empty or breaks its
// protocol was paid for.
func Costly(err error, inputTokens, outputTokens int, usd float64) error {
	if err == nil || inputTokens == 0 && outputTokens == 0 && usd == 0 {
		return err
	}
	return &costlyError{err, Meta(inputTokens, outputTokens, usd)}
}

// Meta is the note of Costly, for errors with a method FailureMeta of their own.
func Meta(inputTokens, outputTokens int, usd float64) string {
	raw, err := json.Marshal(struct {
		In   int     `json:"input_tokens,omitempty"`
		Out  int     `json:"output_tokens,omitempty"`
		Cost float64 `json:"cost,omitempty"`
	}{inputTokens, outputTokens, Amount{USD: usd}.sane().USD})
	if err != nil {
		panic(err) // no number is too large or none after sane
	}
	return string(raw)
}

type costlyError struct {
	error
	note string
}

func (e *costlyError) Unwrap() error { return e.error }

// FailureMeta notes the cost beside the failure.
func (e *costlyError) FailureMeta() map[string]string { return map[string]string{MetaKey: e.note} }
