package serve

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// timed is a journal that measures the duration of operations that runs and requests wait for, and records whether its store
// works.
type timed struct {
	journal.Journal
	*meters
	health   *health
	pipeline string // pipeline whose steps are counted; empty counts none
	queued   *queued
	noted    *noted // set for the journal of one run; otherwise nil
}

// noted is the last state of a run that this process wrote to the journal, so that the server need not read it.
type noted struct {
	id      string
	mu      sync.Mutex
	info    journal.RunInfo
	created bool // the run was not in the journal before
	begun   bool // the run has started and not ended: info describes its start
	over    bool // the run has stopped: info describes its end. Only the journal knows whether a waiting or refused run has continued in another process.
}

// is returns the state of the run since its last start or end in this process, whether the run is new, and whether the state is
// known. A resumed run counts as started once its watchers have received an event.
func (n *noted) is(goesOn bool) (info journal.RunInfo, created, known bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.info, n.created, n.over || n.begun && goesOn
}

// queued holds the records, by run, that are not yet durable.
type queued struct {
	mu   sync.Mutex
	runs map[string]*unsettled
}

type unsettled struct {
	writes  []writing
	results []step.Record // results to be counted once they are durable
}

// wrote records the outcome of a run's write, and of the writes queued before it, as soon as it is known.
func (t timed) wrote(run string, err error, w writing, results ...step.Record) {
	t.queued.mu.Lock()
	defer t.queued.mu.Unlock()
	u := t.queued.runs[run]
	if u == nil {
		u = new(unsettled)
		t.queued.runs[run] = u
	}
	if u.results = append(u.results, results...); w.operation != "" {
		u.writes = append(u.writes, w)
	}
	if err == nil && t.Journal.Settled(run) != nil {
		return
	}
	delete(t.queued.runs, run)
	if err != nil { // a smaller write may succeed
		if len(u.writes) > 0 {
			t.health.writes(slices.MaxFunc(u.writes, func(a, b writing) int { return cmp.Compare(a.size, b.size) }), err)
		}
		return
	}
	for _, w := range u.writes {
		t.health.writes(w, nil)
	}
	for _, rec := range u.results {
		t.step(t.pipeline, rec)
	}
}

// of returns the journal that a run of the pipeline must use.
func (t timed) of(pipeline string, run *noted) timed {
	t.pipeline, t.noted = pipeline, run
	return t
}

// notes calls set with t.noted if t is the journal of this run.
func (t timed) notes(id string, set func(*noted)) {
	if t.noted != nil && t.noted.id == id {
		t.noted.mu.Lock()
		defer t.noted.mu.Unlock()
		set(t.noted)
	}
}

// Acquire records whether the run is new.
func (t timed) Acquire(ctx context.Context, id string) (journal.RunInfo, error) {
	info, err := t.Journal.Acquire(ctx, id)
	t.notes(id, func(run *noted) { run.created = err == nil && info.Started.IsZero() })
	return info, err
}

func (t timed) since(operation string, start time.Time) {
	t.meters.journal.Observe(time.Since(start).Seconds(), operation)
}

func (t timed) Find(ctx context.Context, prefix string) (journal.RunInfo, error) {
	defer t.since("find", time.Now())
	info, err := t.Journal.Find(ctx, prefix)
	t.health.reads(err)
	return info, err
}

func (t timed) Counts(ctx context.Context, q journal.Query) ([]journal.Count, error) {
	defer t.since("list", time.Now())
	counts, err := t.Journal.Counts(ctx, q)
	t.health.reads(err)
	return counts, err
}

func (t timed) CountQuestions(ctx context.Context, q journal.QuestionQuery) (int, error) {
	defer t.since("list", time.Now())
	n, err := t.Journal.CountQuestions(ctx, q)
	t.health.reads(err)
	return n, err
}

func (t timed) EachQuestion(ctx context.Context, q journal.QuestionQuery) iter.Seq2[journal.Question, error] {
	return func(yield func(journal.Question, error) bool) {
		defer t.since("list", time.Now())
		for one, err := range t.Journal.EachQuestion(ctx, q) {
			if err != nil {
				t.health.reads(err)
			}
			if !yield(one, err) {
				return
			}
		}
		t.health.reads(nil)
	}
}

func (t timed) Runs(ctx context.Context, q journal.Query) ([]journal.RunInfo, error) {
	defer t.since("list", time.Now())
	runs, err := t.Journal.Runs(ctx, q)
	t.health.reads(err)
	return runs, err
}

func (t timed) Begin(ctx context.Context, r journal.RunInfo, input dag.DAG) error {
	defer t.since("begin", time.Now())
	err := t.Journal.Begin(ctx, r, input)
	size := len(r.Source)
	for n := range input.Nodes() {
		size += len(n.Content())
	}
	t.wrote(r.ID, err, writing{"begin", size >> 14})
	t.notes(r.ID, func(run *noted) {
		run.begun, run.over, run.info = err == nil, false, r
		run.info.Outcome = journal.Outcome{State: journal.Running, Steps: r.Steps, Usage: r.Usage}
	})
	return err
}

func (t timed) End(ctx context.Context, id string, o journal.Outcome) error {
	defer t.since("end", time.Now())
	err := t.Journal.End(ctx, id, o)
	t.wrote(id, err, writing{operation: "end"})
	t.notes(id, func(run *noted) {
		final := o.State == journal.Done || o.State == journal.Failed || o.State == journal.Canceled
		run.over, run.begun = run.begun && err == nil && final, false
		o.DAG, run.info.Outcome = dag.DAG{}, o
	})
	return err
}

// Release forgets the run's unsettled steps.
func (t timed) Release(id string) error {
	t.queued.mu.Lock()
	delete(t.queued.runs, id)
	t.queued.mu.Unlock()
	return t.Journal.Release(id)
}

// Do measures how long it takes to record a step, not counting the step's work.
func (t timed) Do(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	start := time.Now()
	var worked time.Duration
	var failed error // error of the work, which says nothing about the store
	var made step.Record
	rec, err := t.Journal.Do(ctx, key, func(ctx context.Context) (rec step.Record, err error) {
		t.wrote(key.RunID, nil, writing{}) // writes queued before the intent
		start := time.Now()
		defer func() { worked, failed, made = time.Since(start), err, rec }()
		return work(ctx)
	})
	t.since("do", start.Add(worked))
	var w writing
	if failed == nil && !rec.Replayed {
		w = writing{"do", (len(made.Content) + len(made.Kept)) >> 14}
	}
	var results []step.Record
	if t.pipeline != "" && key.Kind != "input" && err == nil {
		results = []step.Record{{Replayed: rec.Replayed, Failure: rec.Failure}}
	}
	if failed == nil || len(results) > 0 {
		t.wrote(key.RunID, err, w, results...)
	}
	return rec, err
}
