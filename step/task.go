package step

import (
	"context"
	"errors"

	"github.com/stonelayer/stone/dag"
)

// An Executor does the three things of which a run consists. The interpreter
// decides what comes next; the executor decides where and when it happens. Its
// methods are called from several goroutines at once. Package executortest tests one.
//
// If an Executor has a method Wait(ctx context.Context, ready <-chan struct{}), the
// steps of a Flow wait through it. It returns when ready is closed or ctx is done.
type Executor interface {
	// Leaf runs a leaf on d and returns d with its node, or with a failure in
	// flight. Task.Do does it here, Task.DoBy in another process.
	Leaf(t Task, d dag.DAG) dag.DAG
	// Decide takes a decision on d. Task.Decide takes it, in the process that
	// holds the run.
	Decide(t Task, d dag.DAG) (any, error)
	// Fan calls lane(ctx, i) for every i in [0, n), each once, at most Task.Lanes
	// of them at the same time, and returns when all that were called have
	// returned. When the task has an Err it calls no more. Ctx is the context of
	// the task or made from it: its end cancels the lane. A lane may wait for
	// another one that was called before it, as the steps of a Flow do.
	Fan(t Task, n int, lane func(ctx context.Context, i int))
}

// A Task is one thing to do at one place of a pipeline. Package stone implements it.
type Task interface {
	// Context returns the context of the place.
	Context() context.Context
	// Err says why nothing more may be started here: the run was cancelled, or had
	// to stop. It is nil as long as the run goes on.
	Err() error
	// Path returns the address of the place.
	Path() string
	// Lanes returns how many lanes may be in flight at once.
	Lanes() int
	// Do runs the leaf here and now, or takes its result from the recorder.
	Do(d dag.DAG) dag.DAG
	// Decide takes the decision here and now, or from the recorder.
	Decide(d dag.DAG) (any, error)
	// Order describes the leaf, which is given d, for another process. It returns
	// ErrLocal if the leaf cannot be found by its address: it is the child of a leaf,
	// or part of a pipeline that was made during the run.
	Order(d dag.DAG) (Order, error)
	// DoBy is Do with the work done by somebody else: perform brings the order to a
	// process that calls stone.Perform, and returns the Record that it gets back. The
	// run's recorder is asked before, and keeps the record. Where the order is
	// ErrLocal, or perform returns that, the leaf is run here.
	//
	// Any other error of perform stops the run with kind "executor-failed", and nothing
	// is recorded: the run can be resumed. So perform itself retries what may pass,
	// such as a worker that was lost.
	DoBy(d dag.DAG, perform func(context.Context, Order) (Record, error)) dag.DAG
}

// An Order is a leaf of a run as work for another process: what identifies the step,
// and what the leaf reads. Its JSON is all that stone.Perform needs beside the pipeline.
type Order struct {
	Key   Key         `json:"key"`
	Reads dag.Excerpt `json:"reads"`
	Grant []string    `json:"grant"` // as in stone.Config
}

// ErrLocal says that a leaf can only be performed by the process that holds its run:
// it calls Await, Keep or RunDynamic, or it stands below a body.
var ErrLocal = errors.New("the leaf needs the process that holds its run")
