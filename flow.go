package stone

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/kind"
)

// This file interprets flows.
//
// The DAG at the start of a step depends only on the course, not on the order in which steps finish. It is the DAG at the start
// of the flow, followed by the nodes of all steps that this step sees, in source order. When the step has finished, its nodes are
// committed: they are appended to the committed nodes of the earlier steps, again in source order.

func (r *run) flow(f *frame, d dag.DAG) dag.DAG {
	c := f.spec.course()
	if c.inOrder { // true also for a flow without steps
		return r.sequence(f, d)
	}
	w := &flowing{
		f: f, course: c, bound: c.steps, lost: c.steps,
		steps: make([]flowStep, c.steps), ended: make([]latch, len(c.stages)), open: make([]int32, len(c.stages)-c.steps),
		views: map[int]dag.DAG{}, at: append(make([]dag.DAG, 0, c.steps+1), d),
	}
	for i := range w.open {
		w.open[i] = int32(len(c.stages[c.steps+i].deps))
	}
	w.steps[0].front.settle(come)
	f.more().flow = w
	// Steps start in source order, so the first unfinished one waits for no other.
	f.lanes(c.steps, w.run)
	return w.result()
}

// errOvertaken is the cause of cancelling a step after an earlier one failed.
var errOvertaken = errors.New("an earlier step failed")

// overtaken reports whether ctx was cancelled with errOvertaken. The step to which ctx belongs has then not finished and is not
// recorded.
func overtaken(ctx context.Context) bool {
	return ctx.Err() != nil && errors.Is(context.Cause(ctx), errOvertaken)
}

// flowing is the state of a flow's execution.
type flowing struct {
	f      *frame
	course *course

	mu      sync.Mutex
	steps   []flowStep
	ended   []latch         // closed when the stage ends; one for each stage
	open    []int32         // for each gate, the number of stages that it is still waiting for
	views   map[int]dag.DAG // for each gate, the DAG at the start of the steps that wait for it
	at      []dag.DAG       // the committed DAGs: before the first step, then after each step
	awaited []int           // the steps that Await has rebased
	bound   int             // the first step that failed; later steps are cancelled
	lost    int             // the first step that will not be committed
}

// flowStep is the state of one step in a flow's execution.
type flowStep struct {
	start   dag.DAG // the DAG at the start of the step
	out     dag.DAG
	ended   bool
	awaited bool                    // whether start is the committed DAG before the step; see Await
	front   latch                   // closed when every earlier step is committed
	cancel  context.CancelCauseFunc // nil if no earlier step can fail any more
	turn    chan struct{}           // held by the call of Await that rebases the step
}

// A latch lets goroutines wait for an event. It is closed when the event has happened or can no longer happen.
type latch struct {
	state latchState
	ch    chan struct{} // made by the first call that waits
}

type latchState uint8

const (
	pending latchState = iota
	come
	gone
)

func (l *latch) settle(s latchState) {
	if l.state == pending {
		if l.state = s; l.ch != nil {
			close(l.ch)
		}
	}
}

// wait waits until the latch is closed or ctx is done. It reports whether the event has
// happened.
func (w *flowing) wait(ctx context.Context, l *latch) bool {
	w.mu.Lock()
	if l.state == pending && l.ch == nil {
		l.ch = make(chan struct{})
	}
	state, ch := l.state, l.ch
	w.mu.Unlock()
	if state != pending {
		return state == come
	}
	select {
	case <-ch:
	case <-ctx.Done():
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return l.state == come && ctx.Err() == nil
}

// run waits until step i can start, and then runs it.
func (w *flowing) run(i int) {
	step, ok := w.begin(i)
	if !ok {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lose(i)
		return
	}
	var out dag.DAG
	returned := false
	defer func() {
		if !returned {
			out = step.fail(w.startOf(i), Fail(kind.Panic, "the step called runtime.Goexit"))
		}
		w.finish(i, out)
	}()
	out = w.f.run.visit(step, w.startOf(i))
	returned = true
}

func (w *flowing) startOf(i int) dag.DAG {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.steps[i].start
}

// begin waits until step i can start. It returns false if the run is over or a step that step i waits for is lost.
func (w *flowing) begin(i int) (step *frame, ok bool) {
	s, at := &w.steps[i], &w.course.stages[i]
	if at.all && !w.wait(w.f.Context, &s.front) {
		return nil, false
	}
	for _, d := range at.deps {
		if !w.wait(w.f.Context, &w.ended[d]) {
			return nil, false
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if i > w.bound || w.f.over() != nil {
		return nil, false
	}
	step = w.f.child(childSegment, i)
	var err error
	if s.start, err = w.view(i); err != nil {
		s.start = w.f.fail(w.at[0], badContent(err))
	}
	if len(w.at) <= i {
		step.Context, s.cancel = context.WithCancelCause(w.f.Context)
	}
	return step, true
}

// view returns the DAG at the start of a stage. It extends the committed DAG, or the result of an earlier stage if this stage
// sees all of that result, with the nodes of the other visible steps.
func (w *flowing) view(i int) (dag.DAG, error) {
	if known, ok := w.views[i]; ok {
		return known, nil
	}
	at := &w.course.stages[i]
	first := at.sees.start()
	for _, a := range slices.Backward(w.awaited) { // a stage that sees a step which called Await also sees all steps before that step
		if at.sees.has(a) {
			first = max(first, a+1)
			break
		}
	}
	var d dag.DAG
	var err error
	switch from := int(at.from); {
	case from < 0 || at.cut <= first:
		d = w.at[first]
	case from < w.course.steps:
		d, first = w.steps[from].out, at.cut
	default:
		first = at.cut
		if d, err = w.view(from); err != nil {
			return d, err
		}
	}
	for k := range at.sees.since(first) {
		if d, err = dag.Rebase(d, w.steps[k].out, w.steps[k].start); err != nil {
			return d, err
		}
	}
	if i >= w.course.steps { // a gate: several steps may start from its view
		w.views[i] = d
	}
	return d, nil
}

// finish stores the result of step i and commits every step that can now be committed.
func (w *flowing) finish(i int, out dag.DAG) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.steps[i]
	if s.out, s.ended = out, true; s.cancel != nil {
		s.cancel(nil)
	}
	if out.InFlight() {
		w.failed(i)
		return
	}
	for k := len(w.at) - 1; k < w.course.steps && w.steps[k].ended && k < w.lost; k++ {
		d, err := w.committed(k)
		if err != nil {
			w.steps[k].out = w.f.fail(w.steps[k].start, badContent(err))
			w.failed(k)
			break
		}
		if w.at = append(w.at, d); k+1 < w.course.steps {
			w.steps[k+1].front.settle(come)
		}
	}
	w.release(i, come)
}

// committed returns the DAG up to step i, with a failure in flight if the step failed.
func (w *flowing) committed(i int) (dag.DAG, error) {
	s, onto := &w.steps[i], w.at[i]
	if s.awaited {
		onto = s.start
	}
	return dag.Rebase(onto, s.out, s.start)
}

// failed cancels the steps after step i, which failed. If step i is only waiting for an answer, the steps that do not depend on
// it continue.
func (w *flowing) failed(i int) {
	if !errors.Is(w.steps[i].out.Cause(), kind.Waiting) && i < w.bound {
		w.bound = i
		for k := range w.steps[i+1:] {
			if s := &w.steps[i+1+k]; s.cancel != nil && !s.ended {
				s.cancel(errOvertaken)
			}
		}
	}
	w.lose(i)
}

// lose records that step i will not be committed.
func (w *flowing) lose(i int) {
	for k := i + 1; k <= w.lost && k < w.course.steps; k++ {
		w.steps[k].front.settle(gone)
	}
	w.lost = min(w.lost, i)
	w.release(i, gone)
}

// release wakes the steps that are waiting for the given stage.
func (w *flowing) release(i int, state latchState) {
	if w.ended[i].state != pending {
		return
	}
	w.ended[i].settle(state)
	for _, gate := range w.course.stages[i].gates {
		open := &w.open[int(gate)-w.course.steps]
		if *open--; state == gone || *open == 0 {
			w.release(int(gate), state)
		}
	}
}

// result returns the DAG of the flow: everything, or the nodes up to and including the
// first step that failed, and its failure.
func (w *flowing) result() dag.DAG {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := len(w.at) - 1
	if i == w.course.steps {
		return w.at[i]
	}
	if w.steps[i].ended {
		d, err := w.committed(i)
		if err != nil {
			return w.f.fail(w.at[i], badContent(err))
		}
		return d
	}
	err := w.f.over()
	if err == nil {
		err = Fail(kind.Error, "step %q was not run", w.f.spec.children[i].Name())
	}
	return w.f.fail(w.at[i], err)
}
