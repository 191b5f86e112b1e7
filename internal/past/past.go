// Package past lets a run reuse the answers that models, capabilities, tools and people gave in an earlier run. A journal stores
// each step's request in its record. If the context has an earlier run, and that run has recorded the request that a step is
// about to send, the step ends without sending the request, and the journal records the earlier result.
package past

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/internal/grants"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

// Failure kinds of a run that needs something that the earlier run does not contain.
const (
	NeedsPerson kind.Kind = "needs-person" // the run asks a question that the earlier run did not answer
	NeedsEffect kind.Kind = "needs-effect" // the run would have an effect that is not granted
)

// A Source reads the records of an earlier run.
type Source interface {
	// Step returns the nth recorded result for a request, counted from 0, or nil if there are at most nth results.
	Step(ctx context.Context, request string, nth int) (*step.Record, error)
	// Leaf returns the node created by the leaf at path. It returns nil if there is none, or if same returns false because the
	// leaf's inputs are different.
	Leaf(ctx context.Context, path string, same func(dag.DAG) bool) (*dag.Node, error)
	// Person returns the answer to the question with the given version, and whether the earlier run contains one.
	Person(ctx context.Context, version string) (a ask.Answer, known bool, err error)
}

// A Run is an earlier run that answers the requests of steps below a path.
type Run struct {
	Source
	ID    string
	Under string   // path in this run that corresponds to the root path of the earlier run
	Grant []string // effects that a step may have if the earlier run has no answer for it

	mu      sync.Mutex
	taken   map[string]int // number of results taken so far, by request
	counts  Counts
	stopped error
}

// Counts holds the numbers of requests that a run has made to models and capabilities.
type Counts struct {
	Requests int `json:"requests,omitempty"`
	New      int `json:"new,omitempty"` // requests that are not in the earlier run
	// USD is the cost, in the earlier run, of the requests that are not new.
	USD float64 `json:"usd,omitempty"`
}

type runKey struct{}

// With returns a copy of ctx in which steps reuse the answers of the earlier run r.
func With(ctx context.Context, r *Run) context.Context { return context.WithValue(ctx, runKey{}, r) }

// Of returns the earlier run in ctx, or nil if ctx has none.
func Of(ctx context.Context) *Run {
	r, _ := ctx.Value(runKey{}).(*Run)
	return r
}

// Counts returns the current counts and, if the run cannot continue, an error with the reason. For a nil Run, both are zero.
func (r *Run) Counts() (Counts, error) {
	if r == nil {
		return Counts{}, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts, r.stopped
}

// An Exchange holds the request that a step sends. A journal puts it into the context of the step's body.
type Exchange struct {
	request string
	found   *step.Record
}

type exchangeKey struct{}

// Noting returns a copy of ctx in which the request of a step's body is recorded in the exchange.
func Noting(ctx context.Context, x *Exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

// errTaken is the error with which a body ends if its result is taken from an earlier run.
var errTaken = errors.New("the answer is taken from an earlier run")

// Ask must be called by the body of a step before it sends a request that costs something or has effects. If Ask returns an error,
// the body must end with that error.
func Ask(ctx context.Context, effects []string, request ...any) error {
	x, _ := ctx.Value(exchangeKey{}).(*Exchange)
	if x == nil {
		return nil
	}
	h := sha256.New()
	enc := json.NewEncoder(h)
	for _, part := range request {
		if err := enc.Encode(part); err != nil {
			return nil // the journal could not record such a request either
		}
	}
	x.request = hex.EncodeToString(h.Sum(nil)[:16])
	r := Of(ctx)
	if r == nil {
		return nil
	}
	var err error
	if x.found, err = r.take(ctx, x.request); err != nil {
		return fmt.Errorf("%w: %w", kind.Recorder, err)
	}
	if x.found != nil {
		return errTaken
	}
	return r.Allow(effects)
}

// Taken reports whether the result of the step to which ctx belongs is taken from an earlier run.
func Taken(ctx context.Context) bool {
	x, _ := ctx.Value(exchangeKey{}).(*Exchange)
	return x != nil && x.found != nil
}

// take returns the next recorded result for a request, or nil if there is none. Equal requests receive different results, even if
// they are concurrent.
func (r *Run) take(ctx context.Context, request string) (*step.Record, error) {
	return r.Step(ctx, request, r.note(request))
}

// note counts a request and returns the number of times it was counted before.
func (r *Run) note(request string) (before int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.taken == nil {
		r.taken = map[string]int{}
	}
	before = r.taken[request]
	r.taken[request]++
	return before
}

// Allow returns an error if the run must not continue, or if it may not have the given effects. Reading files and asking people
// are always allowed.
func (r *Run) Allow(effects []string) error {
	if _, err := r.Counts(); err != nil {
		return err
	}
	harmless := []string{effect.FSRead, effect.Ask}
	if missing := grants.Missing(effects, append(harmless, r.Grant...)); len(missing) > 0 {
		return &lacking{NeedsEffect, fmt.Sprintf("the effect %s would happen again: no recorded result has the same request, and --grant does not name it", strings.Join(missing, ", "))}
	}
	return nil
}

// lacking is the error of a step that needs an answer which the earlier run does not have.
type lacking struct {
	kind kind.Kind
	why  string
}

func (e *lacking) Error() string       { return e.why }
func (e *lacking) FailureKind() string { return string(e.kind) }
func (e *lacking) Retryable() bool     { return false }

// Note adds the step's request to its record. If the result is taken from an earlier run, Note instead replaces the record with
// the earlier one and returns true.
func (x *Exchange) Note(rec *step.Record) (taken bool) {
	if x.found != nil {
		*rec = *x.found
		return true
	}
	if x.request != "" {
		if rec.Meta = maps.Clone(rec.Meta); rec.Meta == nil {
			rec.Meta = map[string]string{}
		}
		rec.Meta[terms.Request] = x.request
	}
	return false
}

// Settle counts a step that has a result, no matter which process has computed it. If paid is true, the step draws on an account.
func Settle(ctx context.Context, rec step.Record, paid bool) {
	request := rec.Meta[terms.Request]
	lacks := rec.Failure != nil && (rec.Failure.Kind == NeedsPerson || rec.Failure.Kind == NeedsEffect)
	if request == "" && !lacks {
		return
	}
	r := Of(ctx)
	if r == nil {
		return
	}
	earlier := rec.Meta[terms.From] == r.ID
	if rec.Replayed && earlier {
		r.note(request)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if lacks && r.stopped == nil {
		r.stopped = &lacking{rec.Failure.Kind, rec.Failure.Reason}
	}
	if paid && !lacks {
		if r.counts.Requests++; !earlier {
			r.counts.New++
			return
		}
		var used struct{ USD float64 }
		if json.Unmarshal([]byte(rec.Meta[terms.UsageNote]), &used) == nil {
			r.counts.USD += used.USD
		}
	}
}

// LeafAt returns the node that a leaf with effects created from the same nodes in the earlier run, or nil if the leaf must run.
// If the leaf must run but may not have these effects, LeafAt returns an error. The path is a path in this run.
func (r *Run) LeafAt(ctx context.Context, path string, effects []string, same func(dag.DAG) bool) (*dag.Node, error) {
	n, err := r.Leaf(ctx, strings.TrimPrefix(path, r.Under+"/"), same)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", kind.Recorder, err)
	case n != nil:
		return n, nil
	}
	return nil, r.Allow(effects)
}

// Asking returns a frontend that gives the same answers as people did in the context's earlier run, and passes all other questions
// to next. It returns next if the context has no recorded runs.
func Asking(ctx context.Context, next ask.Frontend) ask.Frontend {
	if RunsOf(ctx) == nil {
		return next
	}
	return frontend{next}
}

type frontend struct{ ask.Frontend }

func (f frontend) Ask(ctx context.Context, q ask.Question) (ask.Answer, error) {
	r := Of(ctx)
	switch {
	case r == nil && f.Frontend == nil:
		return ask.Answer{}, kind.Waiting
	case r == nil:
		return f.Frontend.Ask(ctx, q)
	}
	a, known, err := r.Person(ctx, q.Version())
	if err != nil {
		return a, fmt.Errorf("%w: %w", kind.Recorder, err)
	}
	if !known || q.Problem != "" {
		return a, &lacking{NeedsPerson, fmt.Sprintf("nobody has answered this version of the question %q", q.Name)}
	}
	return a, nil
}
