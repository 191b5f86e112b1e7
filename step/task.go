package step

import (
	"context"
	"errors"

	"github.com/stonelayer/stone/dag"
)

// An Executor runs leaves, decisions and fan-outs. The interpreter decides which one is
// next; the executor decides where and when it runs. Its methods are called from several
// goroutines at once. Package executortest tests an executor.
//
// If an Executor has a method Wait(ctx context.Context, ready <-chan struct{}), the
// steps of a Flow wait through it. It returns when ready is closed or ctx is done.
type Executor interface {
	// Leaf runs a leaf on d and returns d with its node, or with a failure in
	// flight. Task.Do does it here, Task.DoBy in another process.
	Leaf(t Task, d dag.DAG) dag.DAG
	// Decide makes a decision on d, with Task.Decide, in the process of the run.
	Decide(t Task, d dag.DAG) (any, error)
	// Fan calls lane(ctx, i) once for every i in [0, n), at most Task.Lanes of them
	// concurrently, and returns when all these calls have returned. Once the task has
	// an Err, Fan makes no more calls. Ctx is the context of the task or derived from
	// it: cancelling it cancels the lane. A lane may wait for a lane that was called
	// earlier, as the steps of a Flow do.
	Fan(t Task, n int, lane func(ctx context.Context, i int))
}

// A Task is a leaf, a decision or a fan-out at one place of a run. Package stone
// implements it.
type Task interface {
	// Context returns the context of the place.
	Context() context.Context
	// Err returns why nothing more may start here: the run was cancelled or has
	// stopped. It returns nil while the run continues.
	Err() error
	// Path returns the address of the place.
	Path() string
	// Lanes returns how many lanes may run concurrently.
	Lanes() int
	// Do runs the leaf now, in this process, or takes its result from the recorder.
	Do(d dag.DAG) dag.DAG
	// Decide makes the decision now, in this process, or takes it from the recorder.
	Decide(d dag.DAG) (any, error)
	// Order describes the leaf with the input d, for another process. It returns
	// ErrLocal if the leaf cannot be found by its address: it is the child of a leaf,
	// or part of a pipeline that was made during the run.
	Order(d dag.DAG) (Order, error)
	// DoBy is Do with the work in another process: perform sends the order to a
	// process that calls stone.Perform, and returns the Record of that. DoBy first
	// looks in the recorder of the run, and records the result there. If Order or
	// perform returns ErrLocal, DoBy runs the leaf in this process.
	//
	// Any other error of perform stops the run with kind "executor-failed", and nothing
	// is recorded: the run can be resumed. Perform must therefore retry temporary
	// errors, such as a lost worker, itself.
	DoBy(d dag.DAG, perform func(context.Context, Order) (Record, error)) dag.DAG
}

// An Order describes a leaf of a run for another process: the key of the step, and the
// nodes that the leaf reads. Stone.Perform needs only its JSON and the pipeline.
type Order struct {
	Key      Key         `json:"key"`
	Pipeline dag.ID      `json:"pipeline"` // fingerprint; another version may have the same leaf
	Reads    dag.Excerpt `json:"reads"`
	Grant    []string    `json:"grant"` // as in stone.Config
}

// ErrLocal means that a leaf must run in the process of its run: it calls Await, Keep or
// RunDynamic, or it is below a body.
var ErrLocal = errors.New("the leaf must run in the process of its run")
