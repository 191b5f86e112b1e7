package stone

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/runvalue"
	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

// policy is the type of Config.Policy. Its methods must be safe for concurrent use.
type policy = interface {
	// Enter is called before p runs at the place that ctx identifies. It returns the context for p and any findings against running
	// p.
	Enter(ctx context.Context, p Ashlar, g Given) (context.Context, Findings)
	// Narrow returns the subset of the granted effects that the body running with ctx may have. Nil means all effects.
	Narrow(ctx context.Context, granted []string) []string
}

// Config configures how a pipeline is run or validated. The zero Config runs it in
// this process on an empty DAG, without a watcher, a frontend or a recorder.
type Config struct {
	// Input is the DAG that the run starts with.
	Input dag.DAG
	// Watch receives the events of the run; see package event. A run does not write to the default logger.
	Watch event.Watcher
	// Frontend answers the questions that Ask leaves ask.
	Frontend ask.Frontend
	// Recorder records leaves, decisions and steps, and returns earlier records when a run is resumed.
	Recorder step.Recorder
	// Grant lists the effects that the run allows; see package effect. Nil allows all.
	// A pipeline that needs an effect outside a non-nil grant is rejected.
	Grant []string
	// Policy limits the effects of each step, depending on the nodes that the step reads. It is a marks.Policy of package x/marks.
	// Nil means no limit.
	Policy policy
	// RunID is the run's ID. If it is empty, one is generated.
	RunID string
	// Request is the ID of the external request that the run answers. Every event of the run contains this ID.
	Request string
	// Conversation is the ID of the conversation to which this run belongs as a turn. The RunStarted event contains this ID.
	Conversation string
	// Parent is the ID of a span in the embedding program, which becomes the parent of the root span in the run's events.
	Parent string
	// Now is the run's clock; nil means time.Now.
	Now func() time.Time
}

// A Result is the outcome of a run.
type Result struct {
	RunID string
	// DAG contains the input and all nodes of the run. If the run failed, the failure is its last node.
	DAG dag.DAG
	// Node is the last node of a successful run. It is nil if the run failed.
	Node *dag.Node
	// Lost lists the lanes that failed and were dropped. See [dag.CountLost].
	Lost []dag.LostLane
	// Notices are messages about the run for people, for example that a prompt has changed since the start of a resumed
	// conversation. There are at most 100.
	Notices []event.Notice
}

// run is one run of a pipeline.
type run struct {
	id         string
	spanPrefix string
	parent     string // ID of the span outside the run

	conversation string

	ctx      context.Context
	stream   *event.Stream
	words    words
	frontend ask.Frontend
	recorder step.Recorder
	settles  settler // the recorder if it may queue records, otherwise nil
	telling  telling
	grant    []string
	policy   policy
	now      func() time.Time
	spans    atomic.Uint64
	workers  atomic.Int64 // number of goroutines that run lanes
	halted   atomic.Pointer[error]
	lossy    atomic.Bool // whether lanes may have been lost
	retries  atomic.Bool // whether a leaf has a Retry
	notices  notices
	values   runvalue.Values
}

// halt stops the run: running bodies finish, no new ones start, and no Rescue runs. It returns the reason that was passed to the
// first call of halt.
func (r *run) halt(why error) error {
	r.halted.CompareAndSwap(nil, &why)
	return *r.halted.Load()
}

// over returns an error that says why nothing more may start, or nil while the run continues.
func (r *run) over() error {
	if why := r.halted.Load(); why != nil {
		return *why
	}
	if r.ctx.Err() != nil {
		return stopped(r.ctx)
	}
	return nil
}

// over is like run.over, but also considers the context of the frame, which a scoped body may have narrowed.
func (f *frame) over() error {
	if why := f.run.halted.Load(); why != nil {
		return *why
	}
	if f.Context.Err() != nil {
		return stopped(f.Context)
	}
	return nil
}

// Run validates p and runs it. The Result always has the DAG, even with an error.
// The error is a *Invalid if p was rejected before anything ran, otherwise a
// *Failure.
//
// When ctx is done, Run cancels the running bodies and starts no new ones. It returns
// when these bodies have returned, with a failure of kind "canceled", or "timeout"
// past a deadline. If a body returns a result nevertheless, the result is kept. Give a body that ignores its context a Timeout.
func Run(ctx context.Context, p Ashlar, cfg Config) (Result, error) {
	cfg.Input = cfg.Input.Within(nil) // removes limits on reads, because a body may run a pipeline on the DAG it received
	r, end, err := begin(ctx, p, &cfg)
	result := Result{RunID: cfg.RunID, DAG: cfg.Input}
	if err == nil {
		result, err = r.whole(p, cfg.Input)
	}
	before := err
	if end != nil {
		err = end(result, err)
	}
	if r != nil {
		err = r.settle(err)
		r.told(before, err)
	}
	return result, err
}

// settle waits until all records of the run are durable. It returns err or, if err is nil and records were lost, the recorder's
// failure. Usually, the records are already durable because the end of the run has been recorded.
func (r *run) settle(err error) error {
	if wait := r.settled(); wait != nil {
		if lost := wait(true); lost != nil && err == nil {
			err = recorderFailure("", lost)
		}
	}
	return err
}

// whole runs the whole pipeline, after it has been accepted.
func (r *run) whole(p Ashlar, input dag.DAG) (Result, error) {
	f := &frame{Context: r.ctx, run: r, spec: p.spec()}
	ended := f.runStarted(p)
	out := r.visit(f, input)
	if ended != nil {
		ended(out)
	}
	return r.result(out)
}

// begin opens the record of the run, checks the pipeline and its input, and returns the new run. It is a separate function to keep
// the stack of a waiting run small.
func begin(ctx context.Context, p Ashlar, cfg *Config) (r *run, end func(Result, error) error, err error) {
	var record RunRecord
	if of, ok := cfg.Recorder.(RunRecorder); ok {
		record, err = of.OpenRun(ctx, p, *cfg)
		if *cfg = record.Config; err != nil {
			return nil, nil, err
		}
	}
	if cfg.Input.Failed() && In(ctx).RunID() == "" {
		cfg.Input = failedInput(cfg.Input)
	}
	// A pipeline with a failed input does not start. If the run is recorded, the pipeline must still be valid, because the run may
	// be resumed.
	if ctx, err = accept(ctx, p, *cfg); err != nil && (record.End != nil || !cfg.Input.InFlight()) {
		return nil, record.End, err
	}
	if record.Begin != nil {
		if ctx, err = record.Begin(ctx); err != nil {
			return nil, record.End, err
		}
	}
	return newRun(ctx, *cfg), record.End, nil
}

// Produce runs p and returns what reader reads from the run's DAG, for example the nearest node's content. If neither p nor
// cfg.Input provides a type that reader needs, Produce runs nothing and returns a *Invalid. Otherwise it returns the errors of
// Run. To read nodes that a body adds with Keep, call Run and read its Result.
func Produce[T any](ctx context.Context, p Ashlar, reader dag.Reader[T], cfg Config) (T, error) {
	var none T
	if err := produces(p, reader, cfg.Input); err != nil {
		return none, err
	}
	result, err := Run(ctx, p, cfg)
	if err != nil {
		return none, err
	}
	v, err := reader.From(result.DAG)
	if err != nil {
		return none, failureOf(err, p.Name())
	}
	return v, nil
}

// produces returns an error with a finding for each type that reader needs and that neither p nor the input provides.
func produces(p Ashlar, reader dag.Querier, input dag.DAG) error {
	if input.Failed() {
		return nil // Run will report this
	}
	there := map[string]bool{dag.Failure.Name(): true, laneType.Name(): true}
	for _, t := range p.ProducesAll() {
		there[t.Name()] = true
	}
	for _, name := range input.Types() {
		there[name] = true
	}
	var wrong Findings
	for _, q := range dag.Types(reader) {
		t := q.Type()
		if t == nil || q.IsOptional() || there[t.Name()] {
			continue
		}
		wrong = append(wrong, Finding{Type: "missing-producer", Ashlar: p.Name(), Path: address.Escape(p.Name()), Queried: t.Name(),
			Suggestion: suggest.Closest(t.Name(), maps.Keys(there)),
			Message:    fmt.Sprintf("Produce wants %q, which nothing in %q produces", t.Name(), p.Name())})
	}
	return wrong.Err()
}

// result returns the Result and the error of a run that ended with the DAG out.
func (r *run) result(out dag.DAG) (Result, error) {
	result := Result{RunID: r.id, DAG: out, Notices: r.notices.all}
	if r.lossy.Load() {
		// Lost cannot fail here, because the run has written or checked every failure node.
		result.Lost, _ = dag.Lost(out)
	}
	if !out.InFlight() {
		result.Node = out.Latest()
		return result, nil
	}
	cause := out.Cause()
	if !errors.As(cause, new(*Failure)) { // the failure comes from the input, so its error must be read from the node
		cause = failureIn(out.Latest(), cause)
	}
	out, err := out.RecordFailure()
	if err != nil {
		cause = errors.Join(cause, err)
	}
	result.DAG = out
	return result, cause
}

// failedInput returns d, the DAG of a failed run, with the failure in flight. A run with such an input ends with the same failure,
// like a step in a Seq after a failed step.
func failedInput(d dag.DAG) dag.DAG {
	if d.InFlight() {
		return d
	}
	err := failureIn(d.Latest(), nil)
	if f, ok := errors.AsType[*Failure](err); ok {
		f.Reason = "the input is the DAG of a failed run (resume it, or append a node before the next run): " + f.Reason
	}
	return d.WithFailure(d.Latest(), err)
}

// accept validates p and returns the context in which to run it. Without a Policy or a Grant, it skips the validation if p was last
// accepted with the same input types, because ashlars are immutable.
func accept(ctx context.Context, p Ashlar, cfg Config) (context.Context, error) {
	if cfg.Policy != nil {
		within, marked := cfg.Policy.Enter(ctx, p, cfg.Given())
		return within, append(check(p, cfg.Given()).sorted(), marked...).Err()
	}
	if cfg.Grant != nil {
		return ctx, Validate(p, cfg.Given()).Err()
	}
	kinds := map[string]bool{} // maps each type to whether Nearest finds a node of it
	for _, name := range cfg.Input.Types() {
		_, err := cfg.Input.Nearest(name)
		kinds[name] = err == nil
	}
	accepted := &p.spec().found().accepted
	if known := accepted.Load(); known != nil && maps.Equal(*known, kinds) {
		return ctx, nil
	}
	if err := Validate(p, cfg.Given()).Err(); err != nil {
		return ctx, err
	}
	accepted.Store(&kinds)
	return ctx, nil
}

func newRun(ctx context.Context, cfg Config) *run {
	r := &run{
		id: cfg.RunID, parent: cfg.Parent, conversation: cfg.Conversation, ctx: ctx, now: cfg.Now,
		frontend: cfg.Frontend, recorder: cfg.Recorder, grant: cfg.Grant, policy: cfg.Policy,
	}
	r.settles, _ = r.recorder.(settler)
	if r.now == nil {
		r.now = time.Now
	}
	var random [4]byte
	rand.Read(random[:]) // never fails
	nonce := hex.EncodeToString(random[:])
	r.spanPrefix = "span-" + nonce + "-"
	if r.id == "" {
		r.id = fmt.Sprintf("run-%d-%s", r.now().UnixMilli(), nonce)
	}
	r.stream = event.NewStream(ctx, r.id, cfg.Request, r.now, cfg.Watch)
	return r
}

// settler is implemented by recorders that may queue records; see step.Recorder.
type settler interface {
	Settled(run string) (wait func(now bool) error)
}

// settled returns nil if all records of the run are durable, and otherwise a function that waits until they are.
func (r *run) settled() (wait func(now bool) error) {
	if r.settles == nil {
		return nil
	}
	return r.settles.Settled(r.id)
}

// telling delays events until all earlier records are durable, so no event reports a result that a crash can undo.
type telling struct {
	mu     sync.Mutex // held while an event is passed on
	held   []event.Event
	passed int  // number of events passed on or dropped
	waits  bool // a goroutine is waiting for the recorder
	over   bool
}

func (r *run) tell(e event.Event) {
	if r.settles == nil {
		r.stream.Send(e)
		return
	}
	t := &r.telling
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.settled() == nil {
		r.pass(t.passed + len(t.held))
		r.stream.Send(e)
		return
	}
	e.Time = r.now()
	if t.held = append(t.held, e); !t.waits {
		t.waits = true
		go r.await()
	}
}

// pass passes on the held events, up to the event with the number last. The caller must hold t.mu.
func (r *run) pass(last int) {
	t := &r.telling
	for ; t.passed < last && len(t.held) > 0; t.passed++ {
		r.stream.Send(t.held[0])
		t.held = t.held[1:]
	}
}

// await passes on all held events, each as soon as the records before it are durable.
func (r *run) await() {
	t := &r.telling
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.held) > 0 && !t.over {
		last := t.passed + len(t.held)
		if wait := r.settled(); wait != nil {
			t.mu.Unlock()
			err := wait(false)
			t.mu.Lock()
			if err != nil { // the run stops and reports the error
				r.drop(last)
			}
		}
		r.pass(last)
	}
	t.waits = false
}

// drop discards the held events up to the event with the number last, because their records were lost. It sends only the end of the
// run, as a failed one. The caller must hold t.mu.
func (r *run) drop(last int) {
	t := &r.telling
	for ; t.passed < last && len(t.held) > 0; t.passed++ {
		e := t.held[0]
		t.held = t.held[1:]
		if end, ok := e.Data.(event.RunEnded); ok {
			end.OK = false
			e.Data = end
			r.stream.Send(e)
		}
	}
}

// passDurable passes on the held events if all records are durable. It is called before work that may have effects.
func (r *run) passDurable() {
	t := &r.telling
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.held) > 0 && r.settled() == nil {
		r.pass(t.passed + len(t.held))
	}
}

// told passes on or drops the remaining events at the end of a run. The arguments are the run's errors before and after its end was
// recorded. If they differ, recording failed.
func (r *run) told(before, err error) {
	if r.settles == nil {
		return
	}
	t := &r.telling
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	last := t.passed + len(t.held)
	if errors.Is(err, kind.Recorder) || (before == nil) != (err == nil) || err != nil && before.Error() != err.Error() {
		r.drop(last)
	}
	r.pass(last)
}
