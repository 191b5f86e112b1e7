package stone

import (
	"cmp"
	"sync"
	"sync/atomic"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/kind"
)

const (
	defaultLanes = 256  // in flight in one fan-out
	maxLanes     = 4096 // in flight in one run
)

// leaf runs a leaf, or takes its result from the recorder.
func (f *frame) leaf(d dag.DAG) dag.DAG {
	if f.recorded() {
		return f.recordLeaf(d)
	}
	return f.work(d)
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

// choose makes a decision, or takes it from the recorder.
func (f *frame) choose(d dag.DAG) (any, error) {
	if f.recorded() {
		return f.recordDecision(d)
	}
	return f.decide(d)
}

func (f *frame) decide(d dag.DAG) (choice any, err error) {
	if err := f.over(); err != nil {
		return nil, err
	}
	defer f.caught(&err)
	return f.spec.decision.take(d.Within(f))
}

// lanes calls lane(i) once for every i in [0, n), on one goroutine for each lane up to the limits of the
// fan-out and of the run, and returns when all calls have returned. Once the run is over, it makes no more
// calls. The goroutine that fans out works too, so that nested fan-outs never wait for each other's slots.
// Lanes start in their order: a lane may wait for an earlier one, as the steps of a Flow do.
func (f *frame) lanes(n int, lane func(int)) {
	c := &crew{f: f, lane: lane, n: int64(n), limit: int64(cmp.Or(f.spec.lanes, defaultLanes))}
	c.size.Store(1)
	defer c.wait.Wait() // also if a lane ends this goroutine
	c.work()
}

// crew is the workers of one fan-out.
type crew struct {
	f     *frame
	lane  func(int)
	n     int64
	limit int64
	next  atomic.Int64 // the next lane
	size  atomic.Int64 // workers
	wait  sync.WaitGroup
}

func (c *crew) work() {
	for c.f.over() == nil {
		i := c.next.Add(1) - 1
		if i >= c.n {
			return
		}
		if i+1 < c.n {
			c.hire()
		}
		c.lane(int(i))
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
	if c.f.run.workers.Add(1) >= maxLanes {
		c.f.run.workers.Add(-1)
		c.size.Add(-1)
		return
	}
	c.wait.Go(func() {
		defer c.f.run.workers.Add(-1)
		defer c.size.Add(-1)
		c.work()
	})
}

func badContent(err error) error {
	return &Failure{Kind: kind.BadContent, Reason: err.Error(), Cause: err}
}
