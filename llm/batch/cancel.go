package batch

import (
	"context"
	"errors"
	"sync"
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
		return err
	}
	// The other lanes get so much time to make their requests once one of them has come to a new step.
	soon := sync.OnceValue(func() <-chan struct{} {
		over := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(over) })
		return over
	})
	started := startedOnly{cfg.Journal, map[[2]string]bool{}, soon}
	for _, one := range steps {
		started.steps[[2]string{one.Path, one.Kind}] = true
	}
	run.Recorder = journal.Keep(started, keep)
	_, err = stone.Run(s.context(ctx), p, run)
	s.release()
	if !errors.Is(err, kind.Waiting) {
		return err
	}
	if err := s.hold(ctx, s.cancel); err != nil {
		return err // the run waits for them, so that it can be canceled again
	}
	return s.wake(ctx)
}

// startedOnly is a journal that runs only steps that had started before.
type startedOnly struct {
	journal.Journal
	steps map[[2]string]bool // by path and kind
	soon  func() <-chan struct{}
}

// Do implements journal.Journal.
func (j startedOnly) Do(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	if key.Kind != "value" && !j.steps[[2]string{key.Path, key.Kind}] {
		work = func(ctx context.Context) (step.Record, error) {
			select { // the error ends the visit
			case <-ctx.Done():
			case <-j.soon():
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
