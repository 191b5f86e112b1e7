package stone

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"sync/atomic"
	"time"

	"github.com/stonelayer/stone/address"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/finding"
	"github.com/stonelayer/stone/internal/runvalue"
	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/step"
)

// Config says under which circumstances a pipeline is run or validated. Its zero
// value runs it here and now, on an empty DAG, with nobody watching.
type Config struct {
	// Input is the DAG with which the run begins.
	Input dag.DAG
	// Watch receives the events of the run; see package event. Nothing goes to the
	// default logger.
	Watch event.Watcher
	// Frontend answers the questions of Ask.
	Frontend ask.Frontend
	// Recorder remembers steps and decisions, and answers those it remembers.
	Recorder step.Recorder
	// Grant lists the effects that the run allows, in the words of package effect.
	// Nil allows all; a pipeline that needs an effect outside of a non-nil grant is
	// refused.
	Grant []string
	// Executor carries the work out; nil does it in this process.
	Executor step.Executor
	// RunID names the run; a fresh name is made if it is empty.
	RunID string
	// Request is the id of the request from outside that the run answers. Every event
	// of the run has it.
	Request string
	// Parent is the id of a span of the embedding program. It is the parent of the
	// span of the root in the events of the run.
	Parent string
	// Now is the clock of the run; nil is time.Now.
	Now func() time.Time
}

// A Result is what a run leaves behind.
type Result struct {
	RunID string
	// DAG is the whole record. If the run failed, the failure is its last node.
	DAG dag.DAG
	// Node is the last node of a run that did not fail, otherwise nil.
	Node *dag.Node
	// Lost lists the lanes that failed and were dropped. See [dag.CountLost].
	Lost []dag.LostLane
}

// run is one run of a pipeline.
type run struct {
	id         string
	spanPrefix string
	parent     string // the span outside of the run
	ctx        context.Context
	stream     *event.Stream
	words      words
	frontend   ask.Frontend
	recorder   step.Recorder
	executor   step.Executor
	grant      []string
	now        func() time.Time
	spans      atomic.Uint64
	halted     atomic.Pointer[error]
	apart      bool        // the run is held by another process, see Perform
	lossy      atomic.Bool // lanes may have been lost
	values     runvalue.Values
}

// halt stops the run: what is under way comes to its end, nothing more is
// started, and nobody rescues it. The first reason counts, which is returned.
func (r *run) halt(why error) error {
	r.halted.CompareAndSwap(nil, &why)
	return *r.halted.Load()
}

// over says why nothing more may be started, nil as long as the run goes on.
func (r *run) over() error {
	if why := r.halted.Load(); why != nil {
		return *why
	}
	if r.ctx.Err() != nil {
		return stopped(r.ctx)
	}
	return nil
}

// over is that of the run, and of a context that a scoped body made narrower.
func (f *frame) over() error {
	if why := f.run.halted.Load(); why != nil {
		return *why
	}
	if f.Context.Err() != nil {
		return stopped(f.Context)
	}
	return nil
}

// Run validates p and runs it. The Result holds the DAG always, also beside an
// error. The error is a *finding.Invalid if p was refused before anything ran, otherwise a
// *Failure.
//
// When ctx is done, what is under way is cancelled and nothing more is started;
// Run returns when the bodies that are under way have returned, with a failure
// of kind "canceled", or "timeout" past a deadline. What a body returns all the
// same is kept. Give a body that does not listen to its context a Timeout.
func Run(ctx context.Context, p Ashlar, cfg Config) (Result, error) {
	cfg.Input = cfg.Input.Within(nil) // a body may run a pipeline on the DAG that it was given
	if w, ok := cfg.Recorder.(runWrapper); ok {
		return w.WrapRun(ctx, p, cfg, func(ctx context.Context, cfg Config) (Result, error) { return runOnce(ctx, p, cfg) })
	}
	return runOnce(ctx, p, cfg)
}

// Produce runs p and returns what reader finds in its DAG, such as the nearest
// node of a type. If p neither produces nor is given that type, the error is a
// *finding.Invalid and nothing runs; the other errors are those of Run. For nodes that a
// body adds with Keep, call Run and read its Result.
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

// produces says why nothing that p leaves can answer the queries of reader.
func produces(p Ashlar, reader dag.Querier, input dag.DAG) error {
	if input.Failed() {
		return nil // which Run reports
	}
	there := map[string]bool{dag.Failure.Name(): true, laneType.Name(): true}
	for _, t := range p.ProducesAll() {
		there[t.Name()] = true
	}
	for _, name := range input.Types() {
		there[name] = true
	}
	var wrong finding.List
	for _, q := range dag.Types(reader) {
		t := q.Type()
		if t == nil || q.IsOptional() || there[t.Name()] {
			continue
		}
		wrong = append(wrong, finding.Finding{Type: finding.MissingProducer, Ashlar: p.Name(), Path: address.Escape(p.Name()), Queried: t.Name(),
			Suggestion: suggest.Closest(t.Name(), maps.Keys(there)),
			Message:    fmt.Sprintf("Produce wants %q, which nothing in %q produces", t.Name(), p.Name())})
	}
	return wrong.Err()
}

func runOnce(ctx context.Context, p Ashlar, cfg Config) (Result, error) {
	if err := accept(p, cfg); err != nil && !cfg.Input.Failed() {
		return Result{RunID: cfg.RunID, DAG: cfg.Input}, err
	}
	r := newRun(ctx, cfg)
	f := &frame{Context: ctx, run: r, spec: p.spec()}
	ended := f.runStarted(p)
	out := r.visit(f, cfg.Input)
	if ended != nil {
		ended(out)
	}
	result := Result{RunID: r.id, DAG: out}
	if r.lossy.Load() {
		// What a failure node says was written by a run, or was checked by it.
		result.Lost, _ = dag.Lost(out)
	}
	if !out.Failed() {
		result.Node = out.Latest()
		return result, nil
	}
	cause := out.Cause()
	if !errors.As(cause, new(*Failure)) { // it was in flight in the input
		cause = failureIn(out.Latest(), cause)
	}
	out, err := out.RecordFailure()
	if err != nil {
		cause = errors.Join(cause, err)
	}
	result.DAG = out
	return result, cause
}

// accept validates p, once for one kind of input: an ashlar does not change, so
// what was accepted is accepted again.
func accept(p Ashlar, cfg Config) error {
	if cfg.Grant != nil {
		return Validate(p, cfg.Given()).Err()
	}
	kinds := map[string]bool{} // whether the type is found by Nearest
	for _, name := range cfg.Input.Types() {
		_, err := cfg.Input.Nearest(name)
		kinds[name] = err == nil
	}
	accepted := &p.spec().found().accepted
	if known := accepted.Load(); known != nil && maps.Equal(*known, kinds) {
		return nil
	}
	if err := Validate(p, cfg.Given()).Err(); err != nil {
		return err
	}
	accepted.Store(&kinds)
	return nil
}

func newRun(ctx context.Context, cfg Config) *run {
	r := &run{
		id: cfg.RunID, parent: cfg.Parent, ctx: ctx, now: cfg.Now,
		frontend: cfg.Frontend, recorder: cfg.Recorder, executor: cfg.Executor, grant: cfg.Grant,
	}
	if r.now == nil {
		r.now = time.Now
	}
	if r.executor == nil {
		r.executor = new(local)
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
