package serve

import (
	"context"
	"time"

	"github.com/stonelayer/stone/internal/batches"
	"github.com/stonelayer/stone/internal/remote"
	"github.com/stonelayer/stone/journal"
)

// This file runs pipelines whose models answer in batches. A waiting run occupies no process; the server polls its batches.

// batchLabel is the label by which the server finds these runs.
const batchLabel = "batch"

// batched sets the visit function of a task if its run uses batches or is to be canceled.
func (s *Server) batched(ctx context.Context, t *task) error {
	if t.start.Batch {
		t.source.Batch, t.keep.Labels[batchLabel] = true, "true"
	}
	if s.cfg.Batches == nil && !t.Ashlar.IsZero() {
		needed, err := t.source.Batch, error(nil)
		if t.cancel {
			needed, err = batches.Made(ctx, s.cfg.Journal.(timed).Journal, t.run.RunID)
		}
		switch {
		case err != nil:
			return err
		case needed:
			return invalid("%v", batches.ErrNotLinked)
		}
	}
	switch {
	case t.cancel:
		t.visit = s.cancelStopped
	case t.source.Batch:
		t.visit = s.inBatches
	}
	return nil
}

// cancelStopped cancels a stopped run in the journal. If the run's pipeline is published, it also cancels the tasks that the run
// started at other agents, and its batches.
func (s *Server) cancelStopped(ctx context.Context, t task) error {
	if !t.Ashlar.IsZero() {
		run := t.run
		run.Watch = nil // the watcher would cancel the run at its first event
		if err := remote.Cancel(ctx, t.Ashlar, run, t.keep, s.cfg.Journal.(timed).Journal); err != nil {
			s.cfg.Log.Warn("tasks of a canceled run go on at their agents", "run", t.run.RunID, "error", err)
		}
	}
	made, err := batches.Made(ctx, s.cfg.Journal.(timed).Journal, t.run.RunID)
	switch {
	case err != nil:
		return err
	case !made:
		return journal.Cancel(ctx, s.cfg.Journal, t.run.RunID)
	case t.Ashlar.IsZero() || s.cfg.Batches == nil:
		return notPublished(journal.RunInfo{})
	}
	return s.inBatches(ctx, t)
}

// inBatches continues a run until it waits for its batches again. If the run is to be canceled, its batches are canceled first.
func (s *Server) inBatches(ctx context.Context, t task) error {
	cfg := batches.Config{Journal: s.cfg.Journal.(timed).Journal, NoWait: true}
	if t.cancel {
		run := t.run
		run.Watch = nil // the watcher would cancel the run at its first event
		if err := s.cfg.Batches.Cancel(ctx, t.Ashlar, run, t.keep, cfg); err != nil {
			s.cfg.Log.Warn("batches of a canceled run go on at their provider", "run", t.run.RunID, "error", err)
		}
	}
	_, err := s.cfg.Batches.Run(ctx, t.Ashlar, t.run, cfg)
	return err
}

// look resumes the runs with batches that may have ended.
func (s *Server) look(ctx context.Context) error {
	waiting := journal.Query{States: []journal.State{journal.Waiting}, Labels: map[string]string{batchLabel: "true"}}
	for info, err := range each(ctx, s.cfg.Journal, waiting) {
		if err != nil {
			return err
		}
		if since := time.Since(info.Ended); since >= 0 && since < lookAfter(info, s.cfg.Scan) || s.busy() >= resumeAtOnce { // a clock that was set back must not delay runs
			continue
		}
		if src, ok := sourceOf(info); ok && src.Batch {
			_, _ = s.resume(ctx, info, task{quiet: true}) // an error means that the pipeline is not published or the server is closing
		}
	}
	return nil
}

// lookAfter returns the pause before a run's batches are polled again: an eighth of the run's age, but at least scan and at most
// 10 minutes. Every server can compute it from the journal.
func lookAfter(info journal.RunInfo, scan time.Duration) time.Duration {
	return min(max(info.Ended.Sub(info.Started)/8, scan), max(10*time.Minute, scan))
}

// asksForBatch reports whether a question is waiting for a batch, not for a person.
func asksForBatch(src source, q journal.Question) bool {
	return src.Batch && q.Name == batches.Question
}
