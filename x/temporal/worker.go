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
	"go.temporal.io/sdk/workflow"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/limit"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
)

// A Worker executes runs of a pool.
type Worker struct {
	Client  client.Client // the connection to the Temporal server; with a lazy client, the server may be started later
	Journal journal.Journal
	Pool    string // name of the task queue
	// Pipelines are the pipelines that the worker can run. They may include several versions of the same pipeline.
	Pipelines []stone.Ashlar
	Secrets   []string      // as in journal.Options
	Slots     int           // maximum number of runs at a time; zero means 100
	Grace     time.Duration // time that running steps have when the worker is stopped; zero means 30 s
	// Prepare is called before a run is started or resumed. It may set the grant, a watcher or a frontend, and returns a context,
	// for example with a budget. It may be nil.
	Prepare func(ctx context.Context, run string, cfg *stone.Config) context.Context
	Log     *slog.Logger // receives errors, which are not sent to Temporal; nil means slog.Default
}

// patient is the time after which the SDK considers a workflow to be deadlocked. It is long, for busy machines, because Drive
// cannot deadlock.
const patient = time.Minute

// Run executes runs until ctx ends. Then it accepts no more runs and drains those in progress: running steps may continue for
// Grace, and other workers take over the runs. Runs see the values of ctx, such as prices. While the server cannot be reached,
// Run keeps trying.
func (w Worker) Run(ctx context.Context) error {
	switch {
	case w.Client == nil || w.Journal == nil || w.Pool == "" || len(w.Pipelines) == 0:
		return errors.New("a worker needs a Client, a Journal, a Pool and at least one pipeline")
	case w.Slots < 0 || w.Grace < 0:
		return fmt.Errorf("Slots %d and Grace %v of a worker must not be negative", w.Slots, w.Grace)
	}
	w.Slots, w.Grace, w.Log = cmp.Or(w.Slots, 100), cmp.Or(w.Grace, 30*time.Second), cmp.Or(w.Log, slog.Default())
	stop, err := w.start(ctx)
	if err != nil {
		return err
	}
	defer stop()
	<-ctx.Done()
	return nil
}

// start starts an SDK worker. While the server cannot be reached, start retries until ctx is done. Any other error is returned at
// once.
func (w Worker) start(ctx context.Context) (stop func(), err error) {
	const longest = 10 * time.Second
	for pause := 200 * time.Millisecond; ; pause = min(2*pause, longest) {
		sdk := worker.New(w.Client, w.Pool, worker.Options{
			MaxConcurrentActivityExecutionSize: w.Slots, MaxConcurrentActivityTaskPollers: min(w.Slots, 8),
			WorkerStopTimeout: w.Grace + 5*time.Second, MaxHeartbeatThrottleInterval: time.Second,
			DeadlockDetectionTimeout: patient, BackgroundActivityContext: context.WithoutCancel(ctx),
		})
		sdk.RegisterWorkflowWithOptions(Drive, workflow.RegisterOptions{Name: runWorkflow})
		sdk.RegisterActivityWithOptions(w.hold, activity.RegisterOptions{Name: runActivity})
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

// hold is the activity that runs a pipeline.
func (w Worker) hold(ctx context.Context, run string) (Status, error) {
	drain := activity.GetWorkerStopChannel(ctx)
	ctx, stop := alive(ctx, w.Grace)
	defer stop()
	info, err := find(ctx, w.Journal, run)
	if err != nil {
		return Status{}, w.told(ctx, run, err)
	}
	if w.orphan(ctx, info) {
		if err := journal.Cancel(ctx, w.Journal, run); err != nil && !errors.As(err, new(*journal.StateError)) {
			return Status{}, w.told(ctx, run, err)
		}
		return Status{string(journal.Canceled)}, nil
	}
	ctx = w.watched(ctx, info)
	p, err := w.pipelineOf(info)
	if err != nil {
		return Status{}, w.told(ctx, run, err)
	}
	cfg := stone.Config{
		RunID:    run,
		Recorder: journal.Keep(w.Journal, journal.Options{Secrets: w.Secrets, Drain: drain, Grace: w.Grace, Refuse: true, Resume: true}),
	}
	about := sourceOf(info)
	ctx = limit.Ranked(ctx, about.Rank)
	if w.Prepare != nil {
		ctx = w.Prepare(ctx, run, &cfg)
	}
	_, err = stone.Run(about.bounded(ctx, &cfg), p, cfg)
	return w.status(ctx, run, err)
}

var errOther = errors.New("this worker has another version of the pipeline")

// pipelineOf returns the pipeline with which a run was started. If the worker does not have it, pipelineOf returns another
// pipeline with the same name: the journal then refuses the run and lists what has changed, and a worker that has the old
// pipeline can continue the run.
func (w Worker) pipelineOf(info journal.RunInfo) (p stone.Ashlar, err error) {
	for _, p := range w.Pipelines {
		if p.Fingerprint() == info.Fingerprint {
			return p, nil
		}
	}
	for _, p := range w.Pipelines {
		if p.Name() == info.Pipeline {
			return p, nil
		}
	}
	return p, fmt.Errorf("run %q of pipeline %q: %w", info.ID, info.Pipeline, errOther)
}

// status returns the Status of a finished run, which is sent to Temporal.
func (w Worker) status(ctx context.Context, run string, err error) (Status, error) {
	var failure *stone.Failure
	switch {
	case err == nil:
		return Status{string(journal.Done)}, nil
	case errors.Is(context.Cause(ctx), errOrphan):
		return Status{string(journal.Canceled)}, nil
	case errors.Is(err, journal.ErrDrained):
		return Status{}, again(stoppedError)
	case errors.Is(err, kind.Waiting):
		return Status{string(journal.Waiting)}, nil
	case errors.As(err, new(*journal.HeldError)), ctx.Err() != nil:
		return Status{}, w.told(ctx, run, err)
	case errors.As(err, new(*journal.ChangedError)):
		return Status{}, w.told(ctx, run, fmt.Errorf("%w: %w", errOther, err))
	case errors.As(err, &failure) && failure.Kind != kind.Recorder, errors.As(err, new(*stone.Invalid)):
		w.Log.WarnContext(ctx, "temporal: run failed", "run", run, "error", err)
		return Status{string(journal.Failed)}, nil
	}
	return Status{}, w.told(ctx, run, err)
}

// Errors that are sent to Temporal. They reveal no contents; the actual error is logged by the worker.
const (
	otherError   = "another version of the pipeline"
	journalError = "the journal cannot be used"
	stoppedError = "the worker was stopped"
	heldError    = "another process holds the run"
)

// again returns an error for Temporal, which then starts the activity again.
func again(why string) error { return temporal.NewApplicationError(why, "stone") }

// told logs err and returns an error without contents, to be sent to Temporal.
func (w Worker) told(ctx context.Context, run string, err error) error {
	switch {
	case errors.Is(context.Cause(ctx), errStopped):
		return again(stoppedError)
	case ctx.Err() != nil:
		return temporal.NewCanceledError()
	}
	w.Log.WarnContext(ctx, "temporal: returned a run to the queue", "run", run, "error", err)
	switch {
	case errors.Is(err, errOther):
		return again(otherError)
	case errors.As(err, new(*journal.HeldError)):
		return again(heldError)
	}
	return again(journalError)
}

var errStopped = errors.New(stoppedError)

// errTaken is the reason why a run ends in this process after Temporal has given up on its activity, for example because
// heartbeats did not arrive in time. The run was not canceled: it continues at another worker.
var errTaken = stone.Fail(kind.Canceled, "%w: Temporal gives the run to another worker", journal.ErrDrained)

// alive sends heartbeats until stop is called. The context that it returns ends with its parent, and also when the grace period
// of a stopped worker has elapsed.
func alive(of context.Context, grace time.Duration) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(of))
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
			case <-of.Done():
				if why := context.Cause(of); errors.As(why, new(*temporal.CanceledError)) {
					cancel(why)
				}
				cancel(errTaken)
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}
