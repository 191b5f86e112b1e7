package call

import (
	"context"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
)

// actType is the type of the node that contains the out of a request.
var actType = dag.NewType[JSON]("stone/answer")

// Act answers a request from outside, as returned by ReadRequest. It runs the call as a
// pipeline of its own, which is validated before any capability is invoked. Only
// cfg.Grant limits its effects; nil grants none. The Response contains the out and its
// cost, or the reason for the failure. The Result comes from the run; it is empty if the
// request was refused.
func (app *Applicator) Act(ctx context.Context, trace Trace, spec Spec, cfg stone.Config) (Response, stone.Result) {
	spec.Applicator, spec.Dispatch.AllowFailure = app, false
	cfg.Grant = append([]string{}, cfg.Grant...)
	refuse := func(err error) (Response, stone.Result) { return Response{Trace: trace, Err: err}, stone.Result{} }
	if err := app.CheckRequest(spec); err != nil {
		return refuse(err)
	}
	cfg.Request = trace.ID
	p := New("act", actType, spec)
	if err := refuseRequest(stone.Validate(p, cfg.Given())); err != nil {
		return refuse(err)
	}
	result, err := stone.Run(context.WithValue(ctx, traceKey{}, trace), p, cfg)
	if err != nil {
		return Response{Trace: trace, Err: err}, result
	}
	reply := &Reply{Type: Value, Out: result.Node.Content()}
	if rec := RecordOf(result.Node); rec != nil {
		reply.Usage = rec.Usage
	}
	return Response{Trace: trace, Reply: reply}, result
}
