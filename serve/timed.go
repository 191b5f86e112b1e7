package serve

import (
	"context"
	"sync"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// timed is a journal that measures the operations that runs and requests wait for, and notes
// whether its store answers.
type timed struct {
	journal.Journal
	*meters
	health   *health
	pipeline string // the one whose steps are counted; empty counts none
	queued   *queued
}

// queued has the results of a run that are to be counted when they are durable.
type queued struct {
	mu      sync.Mutex
	records []step.Record
}

// of returns the journal for a run of a pipeline.
func (t timed) of(pipeline string) timed {
	t.pipeline, t.queued = pipeline, new(queued)
	return t
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

// Counts is for [journal.Counts].
func (t timed) Counts(ctx context.Context, q journal.Query) ([]journal.Count, error) {
	defer t.since("list", time.Now())
	counts, err := journal.Counts(ctx, t.Journal, q)
	t.health.reads(err)
	return counts, err
}

// OpenQuestions is for [journal.OpenQuestions].
func (t timed) OpenQuestions(ctx context.Context, q journal.Query) ([]journal.Question, error) {
	defer t.since("list", time.Now())
	open, err := journal.OpenQuestions(ctx, t.Journal, q.Labels)
	t.health.reads(err)
	return open, err
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
	t.wrote(r.ID, err)
	return err
}

func (t timed) End(ctx context.Context, id string, o journal.Outcome) error {
	defer t.since("end", time.Now())
	err := t.Journal.End(ctx, id, o)
	t.wrote(id, err)
	return err
}

// wrote notes how a write ended, unless that is not known yet, and counts what is durable with it.
func (t timed) wrote(run string, err error) {
	if err == nil && t.Journal.Settled(run) != nil {
		return
	}
	if t.health.writes(err); err == nil {
		t.count()
	}
}

// count counts the results that are durable now.
func (t timed) count() {
	if t.queued == nil {
		return
	}
	t.queued.mu.Lock()
	defer t.queued.mu.Unlock()
	for _, rec := range t.queued.records {
		t.step(t.pipeline, rec)
	}
	t.queued.records = nil
}

// Do measures how long recording a step takes, without its work.
func (t timed) Do(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	start := time.Now()
	var worked time.Duration
	var failed error // of the work, which says nothing about the store
	rec, err := t.Journal.Do(ctx, key, func(ctx context.Context) (rec step.Record, err error) {
		t.wrote(key.RunID, nil) // the intent
		start := time.Now()
		defer func() { worked, failed = time.Since(start), err }()
		return work(ctx)
	})
	t.since("do", start.Add(worked))
	if t.queued != nil && key.Kind != "input" && err == nil {
		t.queued.mu.Lock()
		t.queued.records = append(t.queued.records, step.Record{Replayed: rec.Replayed, Failure: rec.Failure})
		t.queued.mu.Unlock()
	}
	if failed == nil && (err != nil || !rec.Replayed) {
		t.wrote(key.RunID, err)
	} else if err == nil && t.Journal.Settled(key.RunID) == nil {
		t.count()
	}
	return rec, err
}
