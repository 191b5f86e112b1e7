package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/fault"
	"github.com/stonelayer/stone/internal/past"
	"github.com/stonelayer/stone/internal/queue"
	"github.com/stonelayer/stone/internal/record"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

// recorder connects a run to its journal. It does not start steps of a drained run, removes secrets from results, and counts steps
// and costs. A single method Do does all this, because each nested recorder would add one or two frames to the stack of all work,
// and twice as many for steps within a step.
type recorder struct {
	*runner
}

func (r *recorder) Do(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	if err := r.admit(ctx, &key); err != nil {
		return step.Record{}, err
	}
	at := attempt{trouble: trouble{recorder: r}}
	do := func(ctx context.Context) (step.Record, error) {
		at.started = true
		if set := r.forked.sets(key, r.now()); set != nil {
			at.cleaned = true
			return *set, nil
		}
		if ctx = context.WithValue(ctx, troubleKey{}, &at.trouble); key.Kind == "step" {
			ctx = past.Noting(ctx, &at.exchange)
		}
		rec, err := work(record.WithAnew(ctx, r.times(key.Path)))
		if err == nil {
			err = at.made(ctx, key, &rec)
		}
		return rec, err
	}
	rec, err := r.inAnotherAttempt(ctx, key)
	ctx = r.forked.origin(ctx, key)
	if err == nil && !rec.Replayed {
		rec, err = r.journal.Do(ctx, key, do)
	}
	if rec.Differs && r.renewed(rec.Time) {
		key.Replace = true
		rec, err = r.journal.Do(ctx, key, do)
	}
	return at.settle(ctx, key, rec, err)
}

// inAnotherAttempt returns the result of a step in a retried leaf if an earlier process has recorded it in a different attempt at
// the leaf, and otherwise the zero Record. Results can be in different attempts because concurrent steps have no fixed order.
func (r *recorder) inAnotherAttempt(ctx context.Context, key step.Key) (step.Record, error) {
	if !r.resumed {
		return step.Record{}, nil
	}
	var failed error
	keys := queue.EveryAttempt(ctx, key, func(place string) []string {
		made, err := r.attempts(ctx)
		failed = err
		return made[place]
	})
	if failed != nil {
		return step.Record{}, &storeError{failed}
	}
	for i, k := range keys {
		r.renew(&k)
		rec, err := r.journal.Do(record.WithLookup(ctx), k, nil)
		if err != nil || rec.Replayed && (i == 0 || rec.Failure == nil) {
			return rec, err
		}
	}
	return step.Record{}, nil
}

// attempts returns the paths of the recorded attempts after the first, for each leaf. The keys are the leaves' paths without
// attempt numbers. The paths are found by reading all recorded steps, because a leaf may allow too many attempts to look up each
// one.
func (r *runner) attempts(ctx context.Context) (map[string][]string, error) {
	r.tried.mu.Lock()
	defer r.tried.mu.Unlock()
	if r.tried.made != nil {
		return r.tried.made, nil
	}
	steps, err := r.journal.Steps(ctx, r.cfg.RunID)
	if err != nil {
		return nil, err
	}
	made, known := map[string][]string{}, map[string]bool{}
	for _, s := range steps {
		place, numbers := address.Attempts(s.Path)
		places, paths := strings.Split(place, "/"), strings.Split(s.Path, "/")
		for i, n := range numbers {
			if n == 1 {
				continue
			}
			path := strings.Join(paths[:i+1], "/")
			if at := strings.Join(places[:i+1], "/"); !known[path] {
				made[at], known[path] = append(made[at], path), true
			}
		}
	}
	r.tried.made = made
	return made, nil
}

// Settled implements an optional method of step.Recorder.
func (r *recorder) Settled(run string) func(now bool) error { return r.journal.Settled(run) }

// tenantLabel is the label with which a server separates the runs of its tenants.
const tenantLabel = "tenant"

// admit prepares a step, or returns ErrDrained if the run is being drained. It changes the key of a repeated step. For a cached
// result, it changes the key such that tenants do not share the result.
func (r *recorder) admit(ctx context.Context, key *step.Key) error {
	select {
	case <-r.opts.Drain:
		return stone.Fail(kind.Canceled, "%w", ErrDrained)
	default:
	}
	r.renew(key)
	if tenant := r.info.Labels[tenantLabel]; tenant != "" && !key.Fresh.IsZero() {
		key.Reuse = sha256.Sum256(append([]byte(tenant+"\x00"), key.Reuse[:]...))
	}
	if news := r.news.Swap(nil); news != nil {
		for _, n := range *news {
			event.At(ctx).Send(n)
		}
	}
	if r.resumed && key.Kind == "step" {
		return r.earlier(ctx, func(*left) {})
	}
	return nil
}

// attempt is the state of one call of recorder.Do.
type attempt struct {
	trouble
	started  bool // work has been called
	cleaned  bool // made has changed the record, so the run must continue with the changed one
	exchange past.Exchange
}

// made prepares rec, the result of work, for the journal. In particular, it removes secrets.
func (a *attempt) made(ctx context.Context, key step.Key, rec *step.Record) (err error) {
	if err = a.found(); err != nil { // a journal error stops the run even if the body ignored it
		return err
	}
	taken := a.exchange.Note(rec)
	if a.cleaned, err = cleanRecord(a.recorder.secrets, rec); err != nil {
		return err
	}
	same, err := a.recorder.forked.again(key, rec)
	if a.cleaned = a.cleaned || same || taken; err != nil {
		return err
	}
	if key.Kind == "leaf" {
		return a.recorder.tellUnused(ctx, key.Path)
	}
	return nil
}

// settle counts the step whose record, or error, the journal returned. It returns the record and the error with which the run
// continues.
func (a *attempt) settle(ctx context.Context, key step.Key, rec step.Record, err error) (step.Record, error) {
	r, declared := a.recorder, record.Declared(ctx)
	if err != nil {
		if a.started {
			r.tally.left(declared, err)
		} else if record.Refused(err) { // a shared budget cannot pay for the step
			k := kind.Kind(fault.Kind(err))
			err = &stone.Failure{Kind: k, Reason: k.Trim(err.Error()), Cause: err}
		}
		return rec, err
	}
	if rec.Replayed && r.resumed && key.Kind == "step" {
		err = r.earlier(ctx, func(l *left) { delete(l.of, rec.Path) })
	}
	if r.opts.Force {
		rec.Differs, rec.Path = false, ""
	}
	past.Settle(ctx, rec, declared != (budget.Amount{}))
	if rec.Replayed && key.Kind == "leaf" && err == nil {
		err = r.settleWithin(ctx, key.Path)
	}
	r.tally.add(key.Kind, rec, declared != (budget.Amount{}))
	if key.Kind == "leaf" && rec.Failure == nil {
		r.withdraw(ctx, key.Path)
	}
	// If the recorded result differs from the result of work, the run continues with the recorded result, as if it had been
	// resumed.
	rec.Replayed = rec.Replayed || a.cleaned
	return rec, err
}

// Clean removes secrets from the text of failures that the run itself creates; see step.Recorder.
func (r *recorder) Clean(text string) string { return r.secrets.Clean(text) }

// tally counts the steps of a run and sums their cost.
type tally struct {
	mu    sync.Mutex
	steps int
	cost  budget.Total
}

// add counts a step with a result. It ignores replayed steps and values. A result from another run counts as a step without cost.
func (t *tally) add(kind string, rec step.Record, costs bool) {
	var usage budget.Usage
	switch reused := rec.Meta[terms.From] != ""; {
	case rec.Replayed && !reused || kind == step.Value:
		return
	case costs && !reused:
		usage = record.Usage(rec)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steps++
	t.cost.Usage = t.cost.Usage.Add(usage)
}

// left adds the cost of an attempt that ended with err and without a result.
func (t *tally) left(declared budget.Amount, err error) {
	used, known := record.Ended(declared, err)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cost.Usage = t.cost.Usage.Add(used); !known {
		t.cost.Possible = t.cost.Possible.Start(declared)
	}
}

func (t *tally) sum() (int, budget.Total) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.steps, t.cost
}

// inputStep is the path, kind and name of the step whose result is the input of a run.
const inputStep = "input"

// inputKey returns the key of the step whose result is the run's input. Each replacement of the input has a key of its own, even if
// the run has had the same input before. Therefore the input that was recorded last is always the current one.
func inputKey(info RunInfo) step.Key {
	id := "input " + info.Input.String()
	for _, a := range info.Again {
		if a.Path == "" {
			id += "+"
		}
	}
	return step.Key{RunID: info.ID, Path: inputStep, Kind: inputStep, Name: inputStep, Loose: true, Digest: sha256.Sum256([]byte(id))}
}

// InputStep returns the key and the record of the step whose result is a run's input. It is meant for implementations of Journal.
func InputStep(info RunInfo, input dag.DAG) (step.Key, step.Record, error) {
	var text bytes.Buffer
	if err := dag.Write(&text, input); err != nil {
		return step.Key{}, step.Record{}, fmt.Errorf("the input cannot be kept: %w", err)
	}
	content, err := json.Marshal(text.String())
	if err == nil {
		content, err = canon.Canonical(content)
	}
	rec := step.Record{Content: content, Time: info.Started}
	rec.Sum = rec.Seal()
	return inputKey(info), rec, err
}

func (r *runner) recordedInput(ctx context.Context, info RunInfo) (dag.DAG, error) {
	rec, err := r.journal.Do(ctx, inputKey(info), func(context.Context) (step.Record, error) { return step.Record{}, ErrNoInput })
	if err != nil {
		return dag.DAG{}, err
	}
	return readInput(rec, info.ID)
}

// Input returns the recorded input of a run, or an empty DAG if the run has no input. If the input was not recorded, the error is
// ErrNoInput.
func Input(ctx context.Context, from Journal, info RunInfo) (dag.DAG, error) {
	if info.Input == (dag.ID{}) {
		return dag.DAG{}, nil
	}
	rec, err := from.Record(ctx, info.ID, inputStep, inputStep)
	if errors.Is(err, ErrNoStep) {
		return dag.DAG{}, fmt.Errorf("run %q: %w", info.ID, ErrNoInput)
	} else if err != nil {
		return dag.DAG{}, err
	}
	return readInput(rec, info.ID)
}

func readInput(rec step.Record, run string) (d dag.DAG, err error) {
	var text string
	if err := json.Unmarshal(rec.Content, &text); err != nil {
		return d, fmt.Errorf("the recorded input of run %q cannot be read: %w", run, err)
	}
	if d, err = dag.Read(bytes.NewBufferString(text)); err != nil {
		return d, fmt.Errorf("the recorded input of run %q is refused: %w", run, err)
	}
	return d, nil
}

// Attempt returns how many times the work of the current step has been started, including this time. If that is more than once,
// the work may already have been billed. Outside a run with a journal it returns 1. stone.Body.RunID and Path are the same in
// every attempt, so a service that the body calls can use them to recognize a repeated call.
func Attempt(ctx context.Context) int { return record.Attempt(ctx) }
