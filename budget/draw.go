package budget

import (
	"context"
	"encoding/json"
	"errors"
)

// A Draw pays for a recorded step: a stone.Step whose work costs something. A step
// whose result is recorded costs nothing more, so that a run that is resumed
// spends what a run that was never interrupted spends.
//
//	draw, err := account.Draw(ctx, stone.In(ctx).Path(), "ask", budget.Fixed(budget.Amount{Roundtrips: 1}))
//	if err != nil {
//		return err // *ExhaustedError, *UnpricedError or the end of ctx: nothing was started
//	}
//	defer draw.Close()
//	reply, err := stone.Step(draw.Context(ctx), "ask", question, func(ctx context.Context) (Reply, error) {
//		if err := draw.Begin(); err != nil {
//			return Reply{}, err
//		}
//		return model.Ask(ctx)
//	})
//	draw.End(reply.Usage)
type Draw struct {
	account  *Account
	quote    Quote
	reserved *Reservation
	known    bool // nothing was reserved, since the result is recorded
	live     bool
	ended    bool
}

// Draw reserves what the step with the name, in the body at the path, may cost. It
// reserves nothing if the result of the step is recorded. While others have reserved
// estimates that leave too little, it waits until they are settled, unless ctx is of
// something that has reserved an estimate itself. The error is an *ExhaustedError, an
// *UnpricedError or the cause of the end of ctx.
func (a *Account) Draw(ctx context.Context, path, step string, q Quote) (*Draw, error) {
	d := &Draw{account: a, quote: q, known: Recorded(ctx, path, step)}
	if d.known {
		return d, nil
	}
	var err error
	if ctx.Value(holdsKey{}) != nil {
		d.reserved, err = a.reserve(q)
		return d, err
	}
	for {
		var settled <-chan struct{}
		if d.reserved, settled, err = a.reserveOr(q); settled == nil {
			return d, err
		}
		select {
		case <-settled:
		case <-ctx.Done():
			return nil, Costly(context.Cause(ctx), Usage{}) // nothing was sent
		}
	}
}

type holdsKey struct{}

// Context returns the context for the step. It declares the most that the step may
// cost, which a journal notes with each attempt: an attempt that has left no result
// is taken to have cost it.
func (d *Draw) Context(ctx context.Context) context.Context {
	if d.quote.estimate() && ctx.Value(holdsKey{}) == nil {
		ctx = context.WithValue(ctx, holdsKey{}, true)
	}
	return Declare(ctx, d.quote.Most)
}

// Begin is called when the work of the step begins. It fails with an
// *ExhaustedError if the step was taken for recorded, is not, and cannot be paid.
func (d *Draw) Begin() (err error) {
	if d.live = true; d.known {
		d.known = false
		d.reserved, err = d.account.reserve(d.quote)
	}
	return err
}

// Estimate is the most that the step may have used up, for one that began and whose
// usage nobody knows.
func (d *Draw) Estimate() Usage {
	return Usage{OutputTokens: d.quote.Most.Tokens, USD: d.quote.Most.USD, Estimated: true}
}

// Left is what may be spent on the step: what is left, with what is reserved for it.
func (d *Draw) Left() Limits {
	took := Amount{}
	if d.reserved != nil {
		took = d.reserved.took
	}
	return d.account.left(took)
}

// End settles what the step has cost, now or when it was recorded. It is not
// called for work that began and did not finish: what was reserved stays taken.
func (d *Draw) End(used Usage) {
	d.ended = true
	spent := used.Amount()
	switch {
	case d.live:
		d.reserved.Settle(spent)
	default:
		d.reserved.Cancel()
		spent.Roundtrips = d.quote.Most.Roundtrips
		d.account.replay(spent)
	}
	d.account.use(used)
}

// Live reports whether the work of the step has started in this process.
func (d *Draw) Live() bool { return d.live }

// Close is called last. Without an End it gives everything back if the step was not
// started, and leaves what was reserved taken if it was.
func (d *Draw) Close() {
	switch {
	case d == nil || d.ended:
	case d.live:
		d.reserved.keep()
	default:
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

// MetaKey is where the meta of a failed step says what it has cost all the same: a
// Usage as JSON.
const MetaKey = "usage"

// Costly returns err with a note of what was spent before it: the cost of a failed
// attempt counts like that of any other. An answer that is empty or breaks its
// protocol was paid for. The zero usage says that it has cost nothing.
func Costly(err error, u Usage) error {
	if err == nil {
		return err
	}
	return &costlyError{err, u.Meta()}
}

// Meta is the note of Costly, for errors with a method FailureMeta of their own.
func (u Usage) Meta() string {
	raw, err := json.Marshal(u.Sane())
	if err != nil {
		panic(err) // what is sane can be written
	}
	return string(raw)
}

// CostOf returns what err says that it has cost.
func CostOf(err error) (u Usage, ok bool) {
	var noted interface{ FailureMeta() map[string]string }
	if !errors.As(err, &noted) {
		return u, false
	}
	text, ok := noted.FailureMeta()[MetaKey]
	return u, ok && json.Unmarshal([]byte(text), &u) == nil
}

type costlyError struct {
	error
	note string
}

func (e *costlyError) Unwrap() error { return e.error }

// FailureMeta notes the cost beside the failure.
func (e *costlyError) FailureMeta() map[string]string { return map[string]string{MetaKey: e.note} }
