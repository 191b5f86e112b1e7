package budget

import (
	"context"
	"encoding/json"

	"github.com/stonelayer/stone/internal/declared"
	"github.com/stonelayer/stone/internal/fault"
	"github.com/stonelayer/stone/internal/terms"
)

// A Draw pays for a stone.Step that costs something. A recorded result costs nothing more, so a resumed run spends as much as an
// uninterrupted run.
//
//	draw, err := account.Draw(ctx, stone.In(ctx), "ask", budget.Fixed(budget.Amount{Roundtrips: 1}))
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
	outputs  *outputs
	class    string // the class of similar steps to which the step belongs; see outputs
	lost     Amount // the amount to charge if the step starts and its cost remains unknown
	reserved *reservation
	known    bool // whether the result is recorded, so that nothing was reserved
	before   bool // whether an earlier process recorded the result
	repeated bool // whether this process has already charged the result; see Body
	live     bool
	ended    bool
}

// A Body is the body of a leaf whose steps draw on an account; stone.In returns one.
type Body interface {
	// Path returns the address of the body.
	Path() string
	// Recorded reports whether the run already has the result of the named step. If recorded is true, an earlier process or a
	// worker has produced the result. If repeated is true, an earlier attempt at the body in this process has produced the result
	// and charged the account.
	Recorded(step string) (recorded, repeated bool)
}

// Draw reserves the estimated cost of the named step of body and returns the Draw that pays for the step. If the result of the
// step is recorded, Draw reserves nothing. If the open estimates of other draws leave too little, Draw waits until they are
// settled, unless ctx belongs to a step that itself has an open estimate. The error is an *ExhaustedError, an *UnpricedError or
// ctx's cause.
func (a *Account) Draw(ctx context.Context, at Body, step string, q Quote) (*Draw, error) {
	d := &Draw{account: a, quote: q, outputs: outputsIn(ctx), lost: q.Most.sane()}
	if d.outputs != nil && q.Output > 0 {
		d.class = classOf(at.Path(), step)
	}
	d.before, d.repeated = at.Recorded(step)
	if d.known = d.before || d.repeated; d.known || a == nil {
		return d, nil
	}
	if err := a.await(ctx, q, func() { d.reserved = a.grant(q) }); err != nil {
		return nil, err
	}
	return d, nil
}

// Context returns a copy of ctx to be passed to the step. It declares the estimated cost of the step, which is based on the
// outputs of similar steps in the run. A journal records the estimate with each attempt and charges it for attempts without a
// result.
func (d *Draw) Context(ctx context.Context) context.Context {
	if !d.known {
		d.lost = d.outputs.expected(d.class, d.quote)
	}
	if _, held := declared.Held[Amount](ctx); !held && d.quote.estimate() {
		ctx = declared.Hold(ctx, d.quote.Most.sane())
	}
	ctx = declared.Claim(ctx, d.quote)
	return declared.With(ctx, d.lost)
}

// Begin must be called when the work of the step starts. It fails with an *ExhaustedError if the step was expected to be recorded
// but is not, and the account cannot pay for it.
func (d *Draw) Begin() (err error) {
	if d.live = true; d.known {
		d.known = false
		d.reserved, err = d.account.reserve(d.quote)
	}
	return err
}

// Estimate returns the estimated usage of the step. Use it for a step that has started but whose usage is unknown.
func (d *Draw) Estimate() Usage {
	return Usage{OutputTokens: d.lost.Tokens, USD: d.lost.USD, Estimated: true}
}

// Left returns the remaining budget of the account plus the amount reserved for the step.
func (d *Draw) Left() Limits {
	took := Amount{}
	if d.reserved != nil {
		took = d.reserved.took
	}
	return d.account.left(took)
}

// End settles the cost of the step, whether it was spent now or recorded before. It must not be called for work that started but
// did not finish: in that case, Close charges the estimate.
func (d *Draw) End(used Usage) {
	d.ended = true
	spent := used.Amount()
	switch {
	case d.repeated && !d.live:
		return
	case d.live:
		if !used.Estimated {
			d.outputs.observe(d.class, used.OutputTokens)
		}
		d.reserved.settle(spent)
	default:
		d.reserved.cancel()
		spent.Roundtrips = d.quote.Most.Roundtrips
		d.account.Replay(spent)
	}
	d.account.use(used, d.before && !d.live)
}

// Live reports whether the work of the step has started in this process.
func (d *Draw) Live() bool { return d.live }

// Close must be called last. If End has not been called, Close cancels the reservation of a step that has not started, and
// charges the estimated cost of a step that has.
func (d *Draw) Close() {
	switch {
	case d == nil || d.ended:
	case d.live:
		d.reserved.lose(d.lost)
	default:
		d.reserved.cancel()
	}
}

// Costly returns an error that wraps err and contains the usage spent before the error occurred. A failed attempt counts like any
// other, because even an empty or malformed answer was paid for. The zero usage means that nothing was spent. If err is nil,
// Costly returns nil.
func Costly(err error, u Usage) error {
	if err == nil {
		return err
	}
	return &costlyError{err, u.Meta()}
}

// Meta returns failure meta that contains the usage u. Errors with their own method FailureMeta use it in place of Costly.
func (u Usage) Meta() string {
	raw, err := json.Marshal(u.Sane())
	if err != nil {
		panic(err) // a sane usage can always be encoded
	}
	return string(raw)
}

// CostOf returns the usage in the failure meta of err. It returns false if the meta contains no usage.
func CostOf(err error) (Usage, bool) {
	var u Usage
	text, ok := fault.Meta(err)[terms.UsageNote]
	ok = ok && json.Unmarshal([]byte(text), &u) == nil
	return u, ok
}

type costlyError struct {
	error
	note string
}

func (e *costlyError) Unwrap() error { return e.error }

// FailureMeta returns failure meta that contains the usage.
func (e *costlyError) FailureMeta() map[string]string {
	return map[string]string{terms.UsageNote: e.note}
}
