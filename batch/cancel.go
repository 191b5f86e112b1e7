package batch

import (
	"context"
	"errors"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

// Cancel cancels the batches of a run at their providers, which bill what they have answered by then. To learn which
// requests wait, it visits the pipeline as Run does, with a recorder over cfg.Journal and the options keep. The visit
// makes no batches and starts no step that had not started before. The run still waits afterwards.
func Cancel(ctx context.Context, p stone.Ashlar, run stone.Config, keep journal.Options, cfg Config) error {
	s, err := open(ctx, &run, cfg)
	if err != nil {
		return err
	}
	steps, err := cfg.Journal.Steps(ctx, run.RunID)
	if err != nil {
		return errors.Join(err, s.close())
	}
	started := startedOnly{cfg.Journal, map[[2]string]bool{}}
	for _, one := range steps {
		started.steps[[2]string{one.Path, one.Kind}] = true
	}
	run.Recorder = journal.Keep(started, keep)
	_, err = stone.Run(s.context(ctx), p, run)
	s.release()
	if errors.Is(err, kind.Waiting) {
		if err = s.settle(ctx); err == nil {
			err = errors.Join(s.cancel(ctx), s.wake(ctx))
		}
	}
	return errors.Join(err, s.close())
}

// Made reports whether batches were made for a run, perhaps by another process. If not, journal.Cancel cancels it.
func Made(ctx context.Context, j journal.Journal, run string) (bool, error) {
	info, err := j.Find(ctx, Notes(run))
	if errors.Is(err, journal.ErrNoRun) || errors.As(err, new(*journal.AmbiguousError)) {
		return false, nil
	}
	return err == nil && info.ID == Notes(run), err
}

// Of returns the run whose batches a run notes, or "". The notes are not canceled: that would leave the batches running.
func Of(notes journal.RunInfo) string {
	if of := notes.Labels[ofLabel]; notes.ID == Notes(of) {
		return of
	}
	return ""
}

// startedOnly is a journal that runs only steps that had started before.
type startedOnly struct {
	journal.Journal
	steps map[[2]string]bool // by path and kind
}

// Do implements journal.Journal.
func (j startedOnly) Do(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	if key.Kind != "value" && !j.steps[[2]string{key.Path, key.Kind}] {
		work = func(ctx context.Context) (step.Record, error) {
			select { // the error ends the visit, so the other lanes get time to make their requests
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
			return step.Record{}, notStarted{}
		}
	}
	return j.Journal.Do(ctx, key, work)
}

// notStarted is the error of a step that must not start.
type notStarted struct{}

func (notStarted) Error() string        { return "the run is being canceled" }
func (notStarted) Is(target error) bool { return target == kind.Waiting }
