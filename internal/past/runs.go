package past

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/stonelayer/stone/dag"
)

// Runs provides recorded runs for use as the cases of an evaluation.
type Runs interface {
	// Each yields the runs, newest first. If an error occurs, Each yields it last.
	Each(ctx context.Context) iter.Seq2[Case, error]
	// Open returns the recorded run that supplies the answers to the requests of a case.
	Open(ctx context.Context, id string) (*Run, error)
	// Result returns a run's result.
	Result(ctx context.Context, id string) (Result, error)
}

// A Case is a recorded run.
type Case struct {
	Run     string
	Skipped string                                           // reason why the run cannot be a case; "" if it can
	Inputs  map[string][]json.RawMessage                     // contents of the input's nodes, by type
	Column  func(name string) (json.RawMessage, bool, error) // returns the accepted result, a node or a label
}

// A Result contains the input and the result of a recorded run.
type Result struct {
	Input, DAG dag.DAG // DAG extends Input
	USD        float64
	Tokens     int
	Seconds    float64
}

type runsKey struct{}

// WithRuns returns a context for an evaluation of recorded runs.
func WithRuns(ctx context.Context, runs Runs) context.Context {
	return context.WithValue(ctx, runsKey{}, runs)
}

// RunsOf returns the Runs passed to WithRuns for ctx, or nil if there are none.
func RunsOf(ctx context.Context) Runs {
	r, _ := ctx.Value(runsKey{}).(Runs)
	return r
}
