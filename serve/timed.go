package serve

import (
	"context"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// timed is a journal that measures the operations that runs and requests wait for.
type timed struct {
	journal.Journal
	*meters
	pipeline string // the one whose steps are counted; empty counts none
}

// of returns the journal of the runs of a pipeline.
func (t timed) of(pipeline string) timed {
	t.pipeline = pipeline
	return t
}

func (t timed) since(operation string, start time.Time) {
	t.meters.journal.Observe(time.Since(start).Seconds(), operation)
}

func (t timed) Find(ctx context.Context, prefix string) (journal.RunInfo, error) {
	defer t.since("find", time.Now())
	return t.Journal.Find(ctx, prefix)
}

func (t timed) Runs(ctx context.Context, q journal.Query) ([]journal.RunInfo, error) {
	defer t.since("list", time.Now())
	return t.Journal.Runs(ctx, q)
}

func (t timed) Begin(ctx context.Context, r journal.RunInfo, input dag.DAG) error {
	defer t.since("begin", time.Now())
	return t.Journal.Begin(ctx, r, input)
}

func (t timed) End(ctx context.Context, id string, o journal.Outcome) error {
	defer t.since("end", time.Now())
	return t.Journal.End(ctx, id, o)
}

// Do measures how long recording a step takes, without its work.
func (t timed) Do(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	start := time.Now()
	var worked time.Duration
	rec, err := t.Journal.Do(ctx, key, func(ctx context.Context) (step.Record, error) {
		start := time.Now()
		defer func() { worked = time.Since(start) }()
		return work(ctx)
	})
	t.since("do", start.Add(worked))
	if t.pipeline != "" && key.Kind != "input" && err == nil {
		t.step(t.pipeline, rec)
	}
	return rec, err
}
