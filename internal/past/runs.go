package past

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/stonelayer/stone/dag"
)

// Runs are recorded runs that become the cases of an evaluation.
type Runs interface {
	// Each yields the runs, the newest first. An error is yielded last.
	Each(ctx context.Context) iter.Seq2[Case, error]
	// Open returns the run that answers a case.
	Open(ctx context.Context, id string) (*Run, error)
	// Result returns a run's result.
	Result(ctx context.Context, id string) (Result, error)
}

// A Case is a recorded run.
type Case struct {
	Run     string
	Skipped string                                           // why it cannot be a case, or ""
	Inputs  map[string][]json.RawMessage                     // contents by type
	Column  func(name string) (json.RawMessage, bool, error) // the accepted result, a node or a label
}

// A Result is a recorded run's input and result.
type Result struct {
	Input, DAG dag.DAG // of which the second extends the first
	USD        float64
	Tokens     int
	Seconds    float64
}

type runsKey struct{}

// WithRuns returns the context of an evaluation of recorded runs.
func WithRuns(ctx context.Context, runs Runs) context.Context {
	return context.WithValue(ctx, runsKey{}, runs)
}

// RunsOf returns the recorded runs of a context, or nil if there are none.
func RunsOf(ctx context.Context) Runs {
	r, _ := ctx.Value(runsKey{}).(Runs)
	return r
}
