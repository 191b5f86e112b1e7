package stone

import (
	"cmp"
	"context"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/queue"
	"github.com/stonelayer/stone/internal/runvalue"
	"github.com/stonelayer/stone/kind"
)

// A frame represents one execution of an ashlar: its place in the tree and the input of its body. The frame itself is the body's
// context, which saves two allocations in each sequential step. The context becomes cancellable only when the body calls Done.
type frame struct {
	context.Context // the run's context, or one passed on by a scoped body
	run             *run
	up              *frame
	spec            *spec
	index           int32 // the index of a child, round, lane, branch or visit, depending on seg
	seg             segment
	ended           atomic.Bool // whether the body has returned
	extra           atomic.Pointer[extra]
}

// extra holds the fields that few visits need.
type extra struct {
	refused  atomic.Pointer[dag.ReadError]
	live     atomic.Pointer[cancelable]
	span     atomic.Uint64
	said     *said // guarded by the run's words
	steps    stepNames
	digest   *dag.ID                 // with a recorder: the digest of the enclosing step
	tries    *tries                  // for an attempt: the results of earlier attempts
	twin     *dag.ID                 // see inAttempts; nil outside attempts
	reached  atomic.Pointer[dag.DAG] // the result of a scoped body's last child
	grant    []string                // for an ashlar run with RunDynamic: its grant; nil means the enclosing grant
	flow     *flowing                // for a flow: its state
	items    *laneItems              // for a map with a recorder: the items of its lanes
	ground   atomic.Pointer[ground]  // for a leaf that has called Await or Keep: its ground
	unshared atomic.Bool             // see Record.Unshared
	replayed bool                    // whether the result came from the recorder
	leave    sync.Mutex              // guards left
	left     bool                    // whether the attempt was abandoned; its result will be dropped
}

func (f *frame) more() *extra {
	x := f.extra.Load()
	for x == nil {
		f.extra.CompareAndSwap(nil, new(extra))
		x = f.extra.Load()
	}
	return x
}

// segment is the kind of path element that a frame adds.
type segment uint8

const (
	rootSegment    segment = iota
	childSegment           // /name, the index-th child of the frame above
	visitSegment           // /name@visit, a child of a scoped ashlar
	stepSegment            // /name@visit, a Step of a body
	indexSegment           // [index], a round or a lane
	keySegment             // [key], the index-th branch
	attemptSegment         // ~index, an attempt of a retried leaf
	innerSegment           // adds nothing; for example, the body of a reduce has the reduce's address
)

type cancelable struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// below returns a new frame under f.
func (f *frame) below(s *spec, seg segment, index int) *frame {
	next := new(frame)
	next.stand(f, s, seg, index)
	return next
}

// stand initializes f as a frame under up.
func (f *frame) stand(up *frame, s *spec, seg segment, index int) {
	f.Context, f.run, f.up, f.spec, f.seg, f.index = up.Context, up.run, up, s, seg, int32(index)
}

// path returns the address of the frame, element by element: names, branches, lanes, rounds, visits. No two visits of a run share
// an address, except glue leaves, which have their parent's address. The decision of a glue match uses the name of the match.
func (f *frame) path() string {
	var short [128]byte // most paths fit, so only the string is allocated
	b := f.appendPath(short[:0])
	if f.spec.decision != nil && f.through() {
		b = address.AppendName(append(b, '/'), f.spec.name)
	}
	return string(b)
}

// through reports whether f adds no element to addresses.
func (f *frame) through() bool {
	switch f.seg {
	case childSegment:
		return f.spec.glue
	case keySegment:
		return f.up.through()
	}
	return false
}

func (f *frame) appendPath(b []byte) []byte {
	if f.up != nil {
		b = f.up.appendPath(b)
	}
	if f.through() {
		return b
	}
	switch f.seg {
	case rootSegment:
		return address.AppendName(b, f.spec.name)
	case childSegment:
		b = address.AppendName(append(b, '/'), f.spec.name)
		if n := f.up.spec.occurrence(int(f.index)); n > 1 {
			b = strconv.AppendInt(append(b, '#'), int64(n), 10)
		}
	case visitSegment, stepSegment:
		b = address.AppendName(append(b, '/'), f.spec.name)
		if f.index > 1 {
			b = strconv.AppendInt(append(b, '@'), int64(f.index), 10)
		}
	case indexSegment:
		b = append(strconv.AppendInt(append(b, '['), int64(f.index), 10), ']')
	case keySegment:
		b = append(address.AppendName(append(b, '['), f.spec.keys[f.index]), ']')
	case attemptSegment:
		if f.index > 1 {
			b = strconv.AppendInt(append(b, '~'), int64(f.index), 10)
		}
	}
	return b
}

// occurrence returns the number of child i among the children of s with its name,
// counted from 1.
func (s *spec) occurrence(i int) int {
	f := s.found()
	f.countOnce.Do(func() {
		seen := map[string]int{}
		f.counts = make([]int, len(s.children))
		for i, c := range s.children {
			seen[c.Name()]++
			f.counts[i] = seen[c.Name()]
		}
	})
	return f.counts[i]
}

type frameKey struct{}

// frameOf returns the frame of the body to which ctx belongs, or nil if ctx belongs to none.
func frameOf(ctx context.Context) *frame {
	f, _ := ctx.Value(frameKey{}).(*frame)
	return f
}

// Value returns the frame itself for its own keys, and otherwise the value of the
// context around it.
func (f *frame) Value(key any) any {
	if key == (frameKey{}) || key == (event.Key{}) {
		return f
	}
	if key == (runvalue.Key{}) {
		return &f.run.values
	}
	if key == (queue.Key{}) {
		return f.later()
	}
	if key == (queue.Attempts{}) && f.up != nil {
		return queue.OfAttempts(f.up.everyAttempt)
	}
	return f.around().Value(key)
}

// around returns the cancellable context if Done has made one, and otherwise the outer context.
func (f *frame) around() context.Context {
	if x := f.extra.Load(); x != nil {
		if c := x.live.Load(); c != nil {
			return c.ctx
		}
	}
	return f.Context
}

// later returns the writes that the recorder may defer for the step at f.
func (f *frame) later() (w queue.Writes) {
	if f.run.settles == nil {
		return 0
	}
	for f.up != nil && f.up.spec == f.spec && (f.seg == innerSegment || f.seg == attemptSegment) {
		f = f.up
	}
	if f.spec.form == leafForm && f.seg != stepSegment && f.spec.onlySteps() {
		w |= queue.Intent
	}
	for f = f.up; f != nil; f = f.up {
		code := f.spec.form == leafForm || f.spec.form == scopedForm
		if f.seg == stepSegment || code && !f.spec.onlySteps() {
			return w
		}
	}
	return w | queue.Result
}

// onlySteps reports whether all effects of a leaf happen in its recorded steps: either the leaf declares no effects, or the
// package that made it says so.
func (s *spec) onlySteps() bool {
	if s.detail == nil {
		return s.effects != nil && len(s.effects) == 0
	}
	of, ok := s.detail.Value.(queue.Contained)
	return ok && of.OnlySteps()
}

// Done returns a channel that is closed when the run or this visit is cancelled,
// and when the body has returned.
func (f *frame) Done() <-chan struct{} {
	x := f.more()
	for x.live.Load() == nil {
		ctx, cancel := context.WithCancelCause(f.Context)
		if !x.live.CompareAndSwap(nil, &cancelable{ctx, cancel}) {
			cancel(nil)
		} else if f.ended.Load() {
			cancel(nil)
		}
	}
	return x.live.Load().ctx.Done()
}

// Err returns the reason why the channel of Done is closed, or nil if it is open.
func (f *frame) Err() error {
	if f.ended.Load() {
		f.Done()
	}
	return f.around().Err()
}

// Declared returns the queries through which the body may read its DAG.
func (f *frame) Declared() []dag.Query { return f.spec.queries }

// Undeclared cancels the visit with err as its cause. The body's DAG calls it for a read that is not declared.
func (f *frame) Undeclared(err *dag.ReadError) {
	if x := f.more(); x.refused.CompareAndSwap(nil, err) {
		f.Done()
		x.live.Load().cancel(err)
	}
}

// refusal returns the error for an undeclared read in this visit, or nil.
func (f *frame) refusal() *dag.ReadError {
	if x := f.extra.Load(); x != nil {
		return x.refused.Load()
	}
	return nil
}

// release ends the context of a body that has returned.
func (f *frame) release() {
	f.ended.Store(true)
	if x := f.extra.Load(); x != nil {
		if c := x.live.Load(); c != nil {
			c.cancel(nil)
		}
	}
}

// stepNames counts the uses of each step name under a frame, and records which of them are running.
type stepNames struct {
	mu     sync.Mutex
	inputs map[stepInput]int // with a recorder: how often each input was used
	few    []stepName
	more   map[string]*stepName // further names; most bodies use only a few
}

type stepName struct {
	name   string
	visits int
	active bool
}

const fewNames = 8

func (f *frame) names() *stepNames { return &f.more().steps }

// use returns the entry for a name, which it adds if it is missing.
func (n *stepNames) use(name string) *stepName {
	for i := range n.few {
		if n.few[i].name == name {
			return &n.few[i]
		}
	}
	if len(n.few) < fewNames {
		if n.few == nil {
			n.few = make([]stepName, 0, fewNames/2)
		}
		n.few = append(n.few, stepName{name: name})
		return &n.few[len(n.few)-1]
	}
	u := n.more[name]
	if u == nil {
		if n.more == nil {
			n.more = map[string]*stepName{}
		}
		u = &stepName{name: name}
		n.more[name] = u
	}
	return u
}

// enter counts a use of the name. It reports whether no other step with this name is running.
func (n *stepNames) enter(name string) (visit int, alone bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	u := n.use(name)
	if u.active {
		return 0, false
	}
	u.active = true
	u.visits++
	return u.visits, true
}

func (n *stepNames) leave(name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.use(name).active = false
}

const (
	defaultLanes = 256  // the default number of lanes that run at once in a fan-out
	maxLanes     = 4096 // the maximum number of lanes that run at once in a run
)

// leaf runs a leaf, or takes its result from the recorder, and returns the DAG with the result.
func (f *frame) leaf(d dag.DAG) dag.DAG {
	if f.recorded() {
		return f.recordLeaf(d)
	}
	return f.work(d)
}

// work runs the body of a leaf, with its retries, and returns the result without recording it.
func (f *frame) work(d dag.DAG) dag.DAG {
	n, err := f.attempts(d)
	return f.settle(d, n, err)
}

// settle returns the DAG with the node of a leaf appended or, if the leaf failed, with its failure in flight.
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

// call calls the body and returns its result after checking it.
func (f *frame) call(d dag.DAG) (n *dag.Node, err error) {
	defer f.release()
	defer f.caught(&err)
	n, err = f.spec.body(f, d.Within(f), f.run.now())
	return f.checked(n, err)
}

// checked returns an error if the result of a body is invalid. It is a separate function to keep the stack of a waiting body
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

// caught is deferred in calls of the program's functions. If the function panics, or if one of its reads was not declared, caught
// makes the call return an error.
func (f *frame) caught(err *error) {
	if p := recover(); p != nil {
		*err = panicked(p)
	}
	if refused := f.refusal(); refused != nil {
		*err = refused
	}
}

// choose returns the recorded decision or, if none is recorded, makes the decision and records it.
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

// lanes calls lane(i) once for every i in [0, n), on one goroutine for each lane up to the limits of the fan-out and the run, and
// returns when all calls have returned. Once the run is over, it makes no more calls. The goroutine that fans out works too, so
// that nested fan-outs never wait for each other's slots. Lanes start in order: a lane may wait for an earlier one, as the steps
// of a Flow do.
func (f *frame) lanes(n int, lane func(int)) {
	c := &crew{f: f, lane: lane, n: int64(n), limit: int64(cmp.Or(f.spec.lanes, defaultLanes))}
	c.size.Store(1)
	defer c.wait.Wait() // waits even if a lane ends this goroutine
	c.work()
}

// crew is the set of workers for one fan-out.
type crew struct {
	f     *frame
	lane  func(int)
	n     int64
	limit int64
	next  atomic.Int64 // the next lane
	size  atomic.Int64 // the number of workers
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
