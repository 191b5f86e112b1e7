package temporal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/finding"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/remote"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/limit"
)

// Runs makes a worker hold runs.
type Runs struct {
	Slots   int            // runs held at once; 100 if zero
	Routes  []remote.Route // of the leaves; nil keeps them in the process of the run
	Window  int            // as in remote.Config
	Options Options        // of the carrier
	// Prepare, if it is not nil, is called before a run starts or is resumed. It may set the
	// grant, a watcher or a frontend, and returns a context, for example with a budget.
	Prepare func(ctx context.Context, run string, cfg *stone.Config) context.Context
}

// A Run is a run for Start.
type Run struct {
	ID       string // at most 180 bytes
	Pipeline stone.Ashlar
	Input    dag.DAG
	Pool     string // whose workers hold the run
}

// runsQueue is the task queue of runs. Workers that only do leaves do not poll it.
func runsQueue(pool string) string { return pool + "/runs" }

// started is the item on the board of a run that Start leaves for its holder.
type started struct {
	Pipeline    string     `json:"pipeline"`
	Fingerprint dag.ID     `json:"fingerprint"`
	Input       string     `json:"input,omitempty"` // in the format of dag.Write
	Rank        limit.Rank `json:"rank,omitzero"`
}

const startedKey = "started"

// Start starts a run, or resumes it if it has ended, failed or waits for an answer. It does
// nothing if the run is running. The run keeps the limit.Rank of the ctx that started it, also
// in the processes that resume it. Tasks that wait at Temporal are taken in this order: runs for which a
// person waits, then a priority above zero, none, below zero. Tenants take turns.
func Start(ctx context.Context, c client.Client, j journal.Journal, r Run) error {
	if err := checkRun(r.ID); err != nil {
		return err
	}
	if err := stone.Validate(r.Pipeline, stone.Config{Input: r.Input}.Given()).Err(); err != nil {
		return err
	}
	if err := announce(ctx, j, r); err != nil && !errors.As(err, new(*journal.HeldError)) {
		return err
	}
	_, err := c.ExecuteWorkflow(ctx, startOptions(r.ID, r.Pool, limit.RankOf(ctx)), runWorkflow, r.ID)
	return err
}

// announce leaves the pipeline and the input of a run for the process that will hold it.
func announce(ctx context.Context, j journal.Journal, r Run) error {
	about := started{Pipeline: r.Pipeline.Name(), Fingerprint: r.Pipeline.Fingerprint(), Rank: limit.RankOf(ctx)}
	if r.Input.Len() > 0 {
		var text bytes.Buffer
		if err := dag.Write(&text, r.Input); err != nil {
			return fmt.Errorf("the input of run %q: %w", r.ID, err)
		}
		about.Input = text.String()
	}
	data, err := json.Marshal(about)
	if err != nil {
		return err
	}
	if _, err := j.Acquire(ctx, r.ID); err != nil {
		return err
	}
	_, err = j.Post(ctx, r.ID, journal.Item{Key: startedKey, Data: data})
	return errors.Join(err, j.Release(r.ID))
}

func startOptions(run, pool string, rank limit.Rank) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID: run, TaskQueue: runsQueue(pool), Priority: priority(rank),
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
	}
}

// Answer answers a question of a run that was started with Start, and wakes the run.
func Answer(ctx context.Context, c client.Client, j journal.Journal, pool, run, path string, a ask.Answer) error {
	if err := j.Answer(ctx, run, path, a); err != nil {
		return err
	}
	about, _, _ := left(ctx, j, run) // if its rank is lost, the run goes on without one
	_, err := c.SignalWithStartWorkflow(ctx, run, answered, nil, startOptions(run, pool, about.Rank), runWorkflow, run)
	return err
}

// Wait blocks until a run's workflow has ended, and returns the run's state.
func Wait(ctx context.Context, c client.Client, run string) (journal.State, error) {
	var st Status
	err := c.GetWorkflow(ctx, run, "").Get(ctx, &st)
	return journal.State(st.State), err
}

// patient is for a machine that is busy: Drive itself never blocks.
const patient = time.Minute

func (r *Runs) worker(w Worker, opts worker.Options) worker.Worker {
	opts.DisableWorkflowWorker, opts.DeadlockDetectionTimeout = false, patient
	if opts.MaxConcurrentActivityExecutionSize = r.Slots; r.Slots == 0 {
		opts.MaxConcurrentActivityExecutionSize = 100
	}
	out := worker.New(w.Client, runsQueue(w.Pool), opts)
	h := &holder{Worker: w, executor: remote.New(remote.Config{
		Journal: w.Journal, Carrier: Carrier(w.Client, r.Options), Routes: r.Routes, Window: r.Window,
	})}
	out.RegisterWorkflowWithOptions(Drive, workflow.RegisterOptions{Name: runWorkflow})
	out.RegisterActivityWithOptions(h.run, activity.RegisterOptions{Name: runActivity})
	return out
}

// holder holds runs.
type holder struct {
	Worker
	executor *remote.Executor
}

// run is the activity that runs a pipeline.
func (h *holder) run(ctx context.Context, run string) (Status, error) {
	drain := activity.GetWorkerStopChannel(ctx)
	ctx, stop := alive(ctx, h.Grace)
	defer stop()
	cfg := stone.Config{
		RunID: run, Executor: h.executor,
		Recorder: journal.Keep(h.Journal, journal.Options{Secrets: h.Secrets, Drain: drain, Grace: h.Grace, Refuse: true}),
	}
	p, rank, err := h.find(ctx, run, &cfg)
	if err != nil {
		return Status{}, h.told(ctx, run, err)
	}
	ctx = limit.Ranked(ctx, rank)
	if h.Runs.Prepare != nil {
		ctx = h.Runs.Prepare(ctx, run, &cfg)
	}
	_, err = stone.Run(ctx, p, cfg)
	return h.status(ctx, run, err)
}

// status returns a finished run's status for Temporal.
func (h *holder) status(ctx context.Context, run string, err error) (Status, error) {
	var failure *stone.Failure
	switch {
	case err == nil:
		return Status{string(journal.Done)}, nil
	case errors.Is(err, journal.ErrDrained):
		return Status{}, again(stoppedError)
	case errors.Is(err, kind.Waiting):
		return Status{string(journal.Waiting)}, nil
	case errors.As(err, new(*journal.HeldError)), ctx.Err() != nil:
		return Status{}, h.told(ctx, run, err)
	case errors.As(err, new(*journal.ChangedError)):
		return Status{}, h.told(ctx, run, fmt.Errorf("%w: %w", remote.ErrOther, err))
	case errors.As(err, &failure) && failure.Kind != kind.Recorder && failure.Kind != kind.Executor, errors.As(err, new(*finding.Invalid)):
		h.Log.WarnContext(ctx, "temporal: run failed", "run", run, "error", err)
		return Status{string(journal.Failed)}, nil
	}
	return Status{}, h.told(ctx, run, err)
}

// find returns the pipeline of a run and its rank, and sets its input.
func (h *holder) find(ctx context.Context, run string, cfg *stone.Config) (p stone.Ashlar, rank limit.Rank, err error) {
	about, begun, err := h.started(ctx, run)
	if err != nil {
		return p, rank, err
	}
	if about.Input != "" {
		if cfg.Input, err = dag.Read(bytes.NewReader([]byte(about.Input))); err != nil {
			return p, rank, err
		}
	}
	for _, p := range h.Pipelines {
		if p.Fingerprint() == about.Fingerprint {
			return p, about.Rank, nil
		}
	}
	for _, p := range h.Pipelines {
		if begun && p.Name() == about.Pipeline {
			return p, about.Rank, nil // the journal refuses the run with the changes, for a worker that has the old one
		}
	}
	return p, rank, fmt.Errorf("run %q of pipeline %q: %w", run, about.Pipeline, remote.ErrOther)
}

// started describes the run: as recorded if it has started, or as Start has left it.
func (h *holder) started(ctx context.Context, run string) (about started, begun bool, err error) {
	info, err := h.Journal.Find(ctx, run)
	if err != nil && !errors.Is(err, journal.ErrNoRun) && !errors.As(err, new(*journal.AmbiguousError)) {
		return about, false, err
	}
	begun = err == nil && info.ID == run && info.Fingerprint != (dag.ID{})
	about, ok, err := left(ctx, h.Journal, run)
	switch {
	case begun: // it needs only the rank, and goes on without one
		return started{Pipeline: info.Pipeline, Fingerprint: info.Fingerprint, Rank: about.Rank}, true, nil
	case err == nil && !ok:
		err = fmt.Errorf("run %q: %w", run, journal.ErrNoRun)
	}
	return about, begun, err
}

// left returns what Start has left of a run, if it has. With an error it returns nothing of it.
func left(ctx context.Context, j journal.Journal, run string) (about started, ok bool, err error) {
	items, err := j.Posted(ctx, run, startedKey)
	if err != nil {
		return about, false, err
	}
	item, ok := items[startedKey]
	if !ok {
		return about, false, nil
	}
	if err := json.Unmarshal(item.Data, &about); err != nil {
		return started{}, true, fmt.Errorf("what Start has left of run %q cannot be read: %w", run, err)
	}
	return about, true, nil
}
