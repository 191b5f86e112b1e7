package batch

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/remote"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

// Cancel cancels the batches of a run at their providers. The providers bill the requests that they have already answered. To
// find the waiting requests, Cancel visits the pipeline as Run does, with a recorder for cfg.Journal and the options keep, but
// creates no batches and starts no new steps. The run itself is not canceled: it is still waiting when Cancel returns.
func Cancel(ctx context.Context, p stone.Ashlar, run stone.Config, keep journal.Options, cfg Config) error {
	s, err := open(ctx, &run, cfg)
	if err != nil {
		return err
	}
	steps, err := cfg.Journal.Steps(ctx, run.RunID)
	if err != nil {
		return err
	}
	// After one lane has reached a new step, the other lanes have some time to make their requests.
	soon := sync.OnceValue(func() <-chan struct{} {
		over := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(over) })
		return over
	})
	started := map[[2]string]bool{}
	for _, one := range steps {
		started[[2]string{one.Path, one.Kind}] = true
	}
	only := remote.Only{Journal: cfg.Journal, May: func(key step.Key) bool { return started[[2]string{key.Path, key.Kind}] }, Soon: soon}
	run.Recorder = journal.Keep(only, keep)
	_, err = stone.Run(s.context(ctx), p, run)
	s.release()
	if !errors.Is(err, kind.Waiting) {
		return err
	}
	if err := s.hold(ctx, s.cancel); err != nil {
		return err // the run is still waiting for them, so it can be cancelled again
	}
	return s.wake(ctx)
}
