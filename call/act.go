package call

import (
	"context"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
)

// actType is the type of the node that holds the out of a request.
var actType = dag.NewType[JSON]("stone/answer")

// Act answers a request from outside, as ReadRequest reads it: as a pipeline of
// this one call, which is checked like any other before anybody is asked. What it
// may do is cfg.Grant alone; nil is nothing. The Response has the out and what it
// cost, or why there is none; the Result is that of the run, empty if the request
// was refused.
func (app *Applicator) Act(ctx context.Context, trace Trace, spec Spec, cfg stone.Config) (Response, stone.Result) {
	spec.Applicator, spec.Dispatch.AllowFailure = app, false
	cfg.Grant = append([]string{}, cfg.Grant...)
	refuse := func(err error) (Response, stone.Result) { return Response{Trace: trace, Err: err}, stone.Result{} }
	if err := app.CheckRequest(spec); err != nil {
		return refuse(err)
	}
	cfg.Request = trace.ID
	p := New("act", actType, spec)
	if err := RefuseRequest(stone.Validate(p, cfg.Given())); err != nil {
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
