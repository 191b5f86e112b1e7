package serve

import (
	"context"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/batch"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

// This file runs pipelines whose models answer in batches. Such a run holds no process while it waits: it is looked at
// again and again.

// batchLabel is the label of such a run, by which it is found.
const batchLabel = "batch"

// inBatches visits a run once, after it has canceled its batches if it is to be canceled.
func (s *Server) inBatches(ctx context.Context, t task) error {
	cfg := batch.Config{Journal: s.cfg.Journal, NoWait: true}
	if t.cancel {
		if err := s.cancelBatches(ctx, t, cfg); err != nil {
			s.cfg.Log.Warn("batches of a canceled run go on at their provider", "run", t.run.RunID, "error", err)
		}
	}
	_, err := batch.Run(ctx, t.Ashlar, t.run, cfg)
	return err
}

// cancelBatches finds out which batches a run waits for, by a visit that starts nothing new, and cancels them. Nobody
// watches the visit: at its first event the run would be canceled, before it can record that.
func (s *Server) cancelBatches(ctx context.Context, t task, cfg batch.Config) error {
	steps, err := s.cfg.Journal.Steps(ctx, t.run.RunID)
	if err != nil {
		return err
	}
	begun := begunOnly{s.cfg.Journal, map[[2]string]bool{}}
	for _, one := range steps {
		begun.steps[[2]string{one.Path, one.Kind}] = true
	}
	run := t.run
	run.Recorder, run.Watch = journal.Keep(begun, t.keep), nil
	return batch.Cancel(ctx, t.Ashlar, run, cfg)
}

// begunOnly is a journal in whose runs only steps work that had begun before.
type begunOnly struct {
	journal.Journal
	steps map[[2]string]bool // by path and kind
}

// Do implements journal.Journal.
func (j begunOnly) Do(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	if key.Kind != "value" && !j.steps[[2]string{key.Path, key.Kind}] {
		work = func(ctx context.Context) (step.Record, error) {
			select { // its error ends the visit: the other lanes first ask for what they wait for
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			return step.Record{}, notBegun{}
		}
	}
	return j.Journal.Do(ctx, key, work)
}

// notBegun is the error of a step that is not to begin.
type notBegun struct{}

func (notBegun) Error() string        { return "the run is being canceled" }
func (notBegun) Is(target error) bool { return target == kind.Waiting }

// look resumes the runs whose batches may have ended.
func (s *Server) look(ctx context.Context) error {
	waiting := journal.Query{States: []journal.State{journal.Waiting}, Labels: map[string]string{batchLabel: "true"}}
	for info, err := range s.each(ctx, waiting) {
		if err != nil {
			return err
		}
		if time.Since(info.Ended) < lookAfter(info, s.cfg.Scan) || s.busy() >= resumeAtOnce {
			continue
		}
		if src, ok := sourceOf(info); ok && src.Batch {
			_, _ = s.resume(ctx, info, task{quiet: true}) // fails for other pipelines, and while the server is closing
		}
	}
	return nil
}

// lookAfter is how long a run rests after a look at its batches: an eighth of its age, so that no server needs to
// remember anything.
func lookAfter(info journal.RunInfo, scan time.Duration) time.Duration {
	return min(max(info.Ended.Sub(info.Started)/8, scan), max(10*time.Minute, scan))
}

// asksForBatch reports whether a question waits for a batch, and not for a person.
func asksForBatch(src source, q journal.Question) bool { return src.Batch && q.Name == batch.Question }

// visit runs a task until it ends or waits.
func (s *Server) visit(ctx context.Context, t task) error {
	if ctx = s.meters.context(ctx); t.source.Batch {
		return s.inBatches(ctx, t)
	}
	_, err := stone.Run(ctx, t.Ashlar, t.run)
	return err
}
