package stone

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

// waiter is an Executor that blocks for the steps of a Flow, for engines in which
// goroutines must not wait for channels by themselves. Wait returns when ready is
// closed, or when ctx is done.
type waiter interface {
	Wait(ctx context.Context, ready <-chan struct{})
}

// task is a place of the tree as a step.Task.
type task struct{ f *frame }

func (t task) Context() context.Context { return t.f.Context }

func (t task) Err() error { return t.f.over() }

func (t task) Path() string { return t.f.path() }

func (t task) Lanes() int {
	if n := t.f.spec.lanes; n > 0 {
		return n
	}
	return defaultLanes
}

const (
	defaultLanes = 256  // in flight in one fan-out
	maxLanes     = 4096 // in flight in one run
)

func (t task) Do(d dag.DAG) dag.DAG {
	if t.f.recorded() {
		return t.f.recordLeaf(d)
	}
	return t.f.work(d)
}

// work does the work of a leaf without recording it.
func (f *frame) work(d dag.DAG) dag.DAG {
	n, err := f.attempts(d)
	return f.settle(d, n, err)
}

// settle appends the node of a leaf, or puts its failure in flight.
func (f *frame) settle(d dag.DAG, n *dag.Node, err error) dag.DAG {
	bare, full, wrong := f.grounds(d)
	if err == nil {
		err = wrong
	}
	out := bare
	if err == nil {
		if out, err = full.Append(n); err != nil {
			err = badContent(err)
		}
	}
	if err != nil {
		f.takeBack(err)
		return f.fail(bare, err)
	}
	return out
}

// call runs the body and checks what it returns.
func (f *frame) call(d dag.DAG) (n *dag.Node, err error) {
	defer f.release()
	defer f.caught(&err)
	n, err = f.spec.body(f, d.Within(f), f.run.now())
	return f.checked(n, err)
}

// checked checks the result of a body. It is a separate function to keep the stack of a waiting body
// small.
func (f *frame) checked(n *dag.Node, err error) (*dag.Node, error) {
	switch {
	case err != nil:
		return nil, f.interrupted(err)
	case n == nil:
		return nil, Fail(kind.BadContent, "the body returned neither a node nor an error")
	case n.Type() != f.spec.out.Name() && n.Type() != dag.Failure.Name():
		return nil, Fail(kind.BadContent, "the body returned a node of type %q, want %q", n.Type(), f.spec.out.Name())
	case n.Type() == dag.Failure.Name() && f.spec.out.Name() != n.Type():
		return nil, failureIn(n, nil)
	}
	return n, nil
}

// caught is deferred in calls into the program. It turns a panic into an error, and
// fails the call if one of its reads was refused, even if it returned no error.
func (f *frame) caught(err *error) {
	if p := recover(); p != nil {
		*err = panicked(p)
	}
	if refused := f.refusal(); refused != nil {
		*err = refused
	}
}

func (t task) Decide(d dag.DAG) (any, error) {
	if t.f.recorded() {
		return t.f.recordDecision(d)
	}
	return t.f.decide(d)
}

func (f *frame) decide(d dag.DAG) (choice any, err error) {
	if err := f.over(); err != nil {
		return nil, err
	}
	defer f.caught(&err)
	return f.spec.decision.take(d.Within(f))
}

// local runs everything in this process, lanes on goroutines. It starts a worker for
// each lane, up to the limits. The goroutine that fans out works too, so that nested
// fan-outs never wait for each other's slots.
type local struct{ workers atomic.Int64 }

func (*local) Leaf(t step.Task, d dag.DAG) dag.DAG        { return t.Do(d) }
func (*local) Decide(t step.Task, d dag.DAG) (any, error) { return t.Decide(d) }

func (l *local) Fan(t step.Task, n int, lane func(context.Context, int)) {
	c := &crew{local: l, task: t, lane: lane, n: int64(n), limit: int64(t.Lanes())}
	c.size.Store(1)
	defer c.wait.Wait() // also if a lane ends this goroutine
	c.work()
}

// crew is the workers of one fan-out.
type crew struct {
	*local
	task  step.Task
	lane  func(context.Context, int)
	n     int64
	limit int64
	next  atomic.Int64 // the next lane
	size  atomic.Int64 // workers
	wait  sync.WaitGroup
}

func (c *crew) work() {
	for c.task.Err() == nil {
		i := c.next.Add(1) - 1
		if i >= c.n {
			return
		}
		if i+1 < c.n {
			c.hire()
		}
		c.lane(c.task.Context(), int(i))
	}
}

func (c *crew) hire() {
	if c.size.Load() >= c.limit {
		return
	}
	if c.size.Add(1) > c.limit {
		c.size.Add(-1)
		return
	}
	if c.workers.Add(1) >= maxLanes {
		c.workers.Add(-1)
		c.size.Add(-1)
		return
	}
	c.wait.Go(func() {
		defer c.workers.Add(-1)
		defer c.size.Add(-1)
		c.work()
	})
}

func badContent(err error) error {
	return &Failure{Kind: kind.BadContent, Reason: err.Error(), Cause: err}
}
