package temporal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/remote"
)

// A Worker executes the leaves of a pool's runs and, with Runs, holds runs.
type Worker struct {
	Client  client.Client // a lazy one survives a server that starts later
	Journal journal.Journal
	Pool    string // task queue
	// Pipelines are the pipelines that the worker knows; several versions of one may be among them.
	Pipelines []stone.Ashlar
	Secrets   []string      // as in journal.Options
	Slots     int           // leaves, or batches, done at once; 16 if zero
	Grace     time.Duration // how long running leaves may take when the worker is stopped; 30 s if zero
	Runs      *Runs         // nil for a worker that does only leaves
	Log       *slog.Logger  // for errors, which Temporal is not told; slog.Default if nil
}

// Run works until ctx ends. Then it takes no more work, lets running leaves finish within Grace,
// returns the others to the queue, and drains its runs. Leaves and runs get the values of
// ctx, such as prices. While the server cannot be reached, Run tries again.
func (w Worker) Run(ctx context.Context) error {
	switch {
	case w.Client == nil || w.Journal == nil || w.Pool == "" || len(w.Pipelines) == 0:
		return errors.New("a worker needs a Client, a Journal, a Pool and at least one pipeline")
	case w.Slots < 0 || w.Grace < 0:
		return fmt.Errorf("Slots %d and Grace %v of a worker must not be negative", w.Slots, w.Grace)
	}
	w.Slots, w.Grace = cmp.Or(w.Slots, 16), cmp.Or(w.Grace, 30*time.Second)
	w.Log = cmp.Or(w.Log, slog.Default())
	opts := worker.Options{
		MaxConcurrentActivityExecutionSize: w.Slots, MaxConcurrentActivityTaskPollers: min(w.Slots, 8),
		WorkerStopTimeout: w.Grace + 5*time.Second, MaxHeartbeatThrottleInterval: time.Second,
		DisableWorkflowWorker: true, BackgroundActivityContext: context.WithoutCancel(ctx),
	}
	l := &leafWorker{Worker: w, remote: &remote.Worker{Journal: w.Journal, Pipelines: w.Pipelines, Secrets: w.Secrets}}
	stop, err := w.start(ctx, func() worker.Worker {
		leaves := worker.New(w.Client, w.Pool, opts)
		leaves.RegisterActivityWithOptions(l.leaf, activity.RegisterOptions{Name: leafActivity})
		return leaves
	})
	if err != nil {
		return err
	}
	defer stop()
	if w.Runs != nil {
		stop, err := w.start(ctx, func() worker.Worker { return w.Runs.worker(w, opts) })
		if err != nil {
			return err
		}
		defer stop()
	}
	<-ctx.Done()
	return nil
}

// start starts a worker of the SDK, which gives up if it does not reach the server.
func (w Worker) start(ctx context.Context, fresh func() worker.Worker) (stop func(), err error) {
	const longest = 10 * time.Second
	for pause := 200 * time.Millisecond; ; pause = min(2*pause, longest) {
		sdk := fresh()
		if err = sdk.Start(); err == nil {
			return sdk.Stop, nil
		}
		var down *serviceerror.Unavailable
		var late *serviceerror.DeadlineExceeded
		if !errors.As(err, &down) && !errors.As(err, &late) && !errors.Is(err, context.DeadlineExceeded) {
			return nil, fmt.Errorf("temporal: %w", err)
		}
		w.Log.WarnContext(ctx, "temporal: the server cannot be reached", "error", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return func() {}, nil
		}
	}
}

type leafWorker struct {
	Worker
	remote *remote.Worker
}

// patience is after how many attempts a leaf that no worker knows goes back to the holder:
// about 25 s, with the pauses of the retries.
const patience = 8

// Errors that Temporal is told. They hold no contents: what went wrong is logged here.
const (
	otherError   = "another version of the pipeline"
	journalError = "the journal cannot be used"
	stoppedError = "the worker was stopped"
	heldError    = "another process holds the run"
)

// again is an error after which the activity is delivered again.
func again(why string) error { return temporal.NewApplicationError(why, "stone") }

// leaf is the activity that does leaves.
func (l *leafWorker) leaf(ctx context.Context, work remote.Work) (bool, error) {
	ctx, stop := alive(ctx, l.Grace)
	defer stop()
	err := l.remote.Do(ctx, work)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, remote.ErrOther) && activity.GetInfo(ctx).Attempt >= patience:
		if err = l.remote.GiveBack(ctx, work); err == nil {
			return false, nil
		}
	}
	return false, l.told(ctx, work.Run, err)
}

// told logs an error and returns what Temporal is told of it.
func (w Worker) told(ctx context.Context, run string, err error) error {
	switch {
	case errors.Is(context.Cause(ctx), errStopped):
		return again(stoppedError)
	case ctx.Err() != nil:
		return temporal.NewCanceledError()
	}
	w.Log.WarnContext(ctx, "temporal: returned work to the queue", "run", run, "error", err)
	switch {
	case errors.Is(err, remote.ErrOther):
		return again(otherError)
	case errors.As(err, new(*journal.HeldError)):
		return again(heldError)
	}
	return again(journalError)
}

var errStopped = errors.New(stoppedError)

// alive sends heartbeats until stop is called. The context that it returns also ends when
// the grace period of a stopped worker is over.
func alive(ctx context.Context, grace time.Duration) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	beats := time.NewTicker(max(activity.GetInfo(ctx).HeartbeatTimeout/4, 100*time.Millisecond))
	stopping := activity.GetWorkerStopChannel(ctx)
	var over <-chan time.Time
	go func() {
		defer beats.Stop()
		for {
			select {
			case <-beats.C:
				activity.RecordHeartbeat(ctx)
			case <-stopping:
				stopping, over = nil, time.After(grace)
			case <-over:
				cancel(errStopped)
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}
