package stone

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/kind"
)

// This file belongs to the interpreter: it knows what comes next in a flow.
//
// A step begins on a DAG that follows from the course alone, whoever finished
// first: the DAG with which the flow began, and the nodes of all that the step
// sees, in source order. What it has added there is then committed: put onto what
// the steps in front of it have left, again in source order.

func (r *run) flow(f *frame, d dag.DAG) dag.DAG {
	c := f.spec.course()
	if c.inOrder { // and if it has no steps
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
	// Each lane takes the next step, so that the steps begin in their order under
	// any executor: then the first one that has not ended waits for nobody.
	r.executor.Fan(task{f}, c.steps, func(ctx context.Context, _ int) { w.run(ctx, int(w.next.Add(1))-1) })
	return w.result()
}

// errOvertaken is why a step is cancelled that stands behind one that failed.
var errOvertaken = errors.New("a step in front of it failed")

// overtaken reports whether a context ended for that reason. Such a step has not
// come to its end, and nothing of it is recorded.
func overtaken(ctx context.Context) bool {
	return ctx.Err() != nil && errors.Is(context.Cause(ctx), errOvertaken)
}

// flowing is one visit of a flow.
type flowing struct {
	f      *frame
	course *course
	next   atomic.Int32 // the next step

	mu      sync.Mutex
	steps   []flowStep
	ended   []latch         // of the stages
	open    []int32         // of the gates: for how many stages it waits
	views   map[int]dag.DAG // of gates: with which the steps begin that wait for them
	at      []dag.DAG       // what is committed, after none of the steps, after the first one, …
	awaited []int           // the steps that were moved by Await
	bound   int             // the first step that failed: what stands behind it is cancelled
	lost    int             // the first step that will not be committed
}

// flowStep is one step of a visit.
type flowStep struct {
	start   dag.DAG // with which it began
	out     dag.DAG
	ended   bool
	awaited bool                    // start is what is committed in front of it, see Await
	front   latch                   // everything in front of it is committed
	cancel  context.CancelCauseFunc // nil if nobody in front can fail any more
	turn    chan struct{}           // held by whoever awaits
}

// A latch is closed once: because something has come, or because it never will.
type latch struct {
	state latchState
	ch    chan struct{} // made by the first who waits
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

// wait reports whether what the latch stands for has come.
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
	if executor, ok := w.f.run.executor.(waiter); ok {
		executor.Wait(ctx, ch)
	} else {
		select {
		case <-ch:
		case <-ctx.Done():
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return l.state == come && ctx.Err() == nil
}

// run runs a step as soon as it can begin.
func (w *flowing) run(ctx context.Context, i int) {
	step, ok := w.begin(ctx, i)
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
			out = step.fail(w.startOf(i), Fail(kind.Panic, "the step ended its goroutine"))
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

// begin waits until step i can begin. It cannot if the run is over, or if
// something that it waits for will not come.
func (w *flowing) begin(ctx context.Context, i int) (step *frame, ok bool) {
	s, at := &w.steps[i], &w.course.stages[i]
	if at.all && !w.wait(ctx, &s.front) {
		return nil, false
	}
	for _, d := range at.deps {
		if !w.wait(ctx, &w.ended[d]) {
			return nil, false
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if i > w.bound || w.f.over() != nil {
		return nil, false
	}
	step = w.f.child(childSegment, i)
	step.Context = ctx
	var err error
	if s.start, err = w.view(i); err != nil {
		s.start = w.f.fail(w.at[0], badContent(err))
	}
	if len(w.at) <= i {
		step.Context, s.cancel = context.WithCancelCause(ctx)
	}
	return step, true
}

// view returns the DAG with which a stage begins: what is committed, or what some
// stage has left in front of it, as far as it sees all of that and nothing else,
// and then the rest of what it sees.
func (w *flowing) view(i int) (dag.DAG, error) {
	if known, ok := w.views[i]; ok {
		return known, nil
	}
	at := &w.course.stages[i]
	first := at.sees.start()
	for _, a := range slices.Backward(w.awaited) { // who sees a step that has awaited sees all in front of it
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
	if i >= w.course.steps { // several steps may begin with that
		w.views[i] = d
	}
	return d, nil
}

// finish notes what a step has left, and commits what can be.
func (w *flowing) finish(i int, out dag.DAG) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := &w.steps[i]
	if s.out, s.ended = out, true; s.cancel != nil {
		s.cancel(nil)
	}
	if out.Failed() {
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

// committed returns the DAG up to step i, and with a failure in flight if it has
// failed.
func (w *flowing) committed(i int) (dag.DAG, error) {
	s, onto := &w.steps[i], w.at[i]
	if s.awaited {
		onto = s.start
	}
	return dag.Rebase(onto, s.out, s.start)
}

// failed cancels the steps behind one that failed. While one waits for an answer
// those go on that do without it.
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

// lose notes that step i will not be committed.
func (w *flowing) lose(i int) {
	for k := i + 1; k <= w.lost && k < w.course.steps; k++ {
		w.steps[k].front.settle(gone)
	}
	w.lost = min(w.lost, i)
	w.release(i, gone)
}

// release lets those go on that wait for a stage.
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

// result is what the flow leaves: everything, or what stands in front of the
// first step that failed, what that has left, and its failure.
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
		err = Fail(kind.Error, "step %q was not run: the Fan of an Executor calls every lane", w.f.spec.children[i].Name())
	}
	return w.f.fail(w.at[i], err)
}
