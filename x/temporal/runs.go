package temporal

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/limit"
	"github.com/stonelayer/stone/journal"
)

// A Run describes a run to start.
type Run struct {
	ID       string // at most 180 bytes
	Pipeline stone.Ashlar
	Input    dag.DAG
	Pool     string            // name of the pool whose workers execute the run
	Labels   map[string]string // as in journal.Options
}

// Names of the workflows and activities that workers register, and of signals.
const (
	runActivity = "stone.Run"
	runWorkflow = "stone.Drive"
	answered    = "answered" // name of the workflow's signal
)

// maxRun is the maximum length of a run id in bytes. With PostgreSQL, Temporal stores at most 255 bytes of a workflow id.
const maxRun = 180

func checkRun(run string) error {
	if run == "" || len(run) > maxRun {
		return fmt.Errorf("run id %q has %d bytes: want 1 to %d, or Temporal cannot store it", run, len(run), maxRun)
	}
	return nil
}

// source is what Start records about a run in addition to its pipeline and input.
type source struct {
	Rank   limit.Rank    `json:"rank,omitzero"`
	Grant  []string      `json:"grant"`           // grant of a child run; null means all
	Limits budget.Limits `json:"limits,omitzero"` // limits of a child run
}

// sourceOf returns the source of a run. If another program recorded the start of the run, it returns the zero source.
func sourceOf(info journal.RunInfo) (s source) {
	if json.Unmarshal(info.Source, &s) != nil {
		return source{}
	}
	return s
}

// Start records the start of a run in the journal and starts its workflow on the Temporal cluster. If the run already exists and
// has ended, has failed or waits for an answer, Start resumes it; if it is in progress, Start does nothing. If the existing run
// was started with a different pipeline or input, the error is a *journal.ChangedError.
//
// A run keeps the limit.Rank of the ctx with which it was started, even in processes that resume it. Temporal dispatches waiting
// tasks in this order: runs for which a person is waiting, then runs with priorities above zero, zero, and below zero. Tenants
// take turns.
func Start(ctx context.Context, c client.Client, j journal.Journal, r Run) error {
	return start(ctx, c, j, r, source{})
}

// start is like Start, but also records the source about. It uses the source only when the run is started for the first time.
func start(ctx context.Context, c client.Client, j journal.Journal, r Run, about source) error {
	if err := checkRun(r.ID); err != nil {
		return err
	}
	var kept json.RawMessage
	switch info, err := find(ctx, j, r.ID); {
	case err == nil:
		about = sourceOf(info)
	case !errors.Is(err, journal.ErrNoRun):
		return err
	default:
		about.Rank = limit.RankOf(ctx)
		if kept, err = json.Marshal(about); err != nil {
			return err
		}
	}
	drained := make(chan struct{}) // the run is only recorded here; a worker does all of its work
	close(drained)
	_, err := stone.Run(ctx, r.Pipeline, stone.Config{RunID: r.ID, Input: r.Input,
		Recorder: journal.Keep(j, journal.Options{Source: kept, Labels: r.Labels, Drain: drained})})
	if !errors.Is(err, journal.ErrDrained) && !errors.As(err, new(*journal.HeldError)) {
		return err
	}
	_, err = c.ExecuteWorkflow(ctx, startOptions(r.ID, r.Pool, about.Rank), runWorkflow, r.ID)
	return err
}

func startOptions(run, pool string, rank limit.Rank) client.StartWorkflowOptions {
	return client.StartWorkflowOptions{
		ID: run, TaskQueue: pool, Priority: priority(rank),
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
	}
}

// priority returns a rank in Temporal's format, without the name of the tenant.
func priority(r limit.Rank) (p temporal.Priority) {
	switch {
	case r.Interactive:
		p.PriorityKey = 1
	case r.Priority != 0: // 0 becomes 3
		p.PriorityKey = 3 - cmp.Compare(r.Priority, 0)
	}
	if r.Tenant != "" {
		digest := sha256.Sum256([]byte(r.Tenant))
		p.FairnessKey = hex.EncodeToString(digest[:16])
	}
	return p
}

// Answer answers a question of a run that was started with Start, and wakes the run.
func Answer(ctx context.Context, c client.Client, j journal.Journal, pool, run, path string, a ask.Answer) error {
	if err := j.Answer(ctx, run, path, a); err != nil {
		return err
	}
	info, err := find(ctx, j, run)
	if err != nil {
		return err
	}
	_, err = c.SignalWithStartWorkflow(ctx, run, answered, nil, startOptions(run, pool, sourceOf(info).Rank), runWorkflow, run)
	return err
}

// Wait waits until the workflow of a run has ended, and returns the run's state.
func Wait(ctx context.Context, c client.Client, run string) (journal.State, error) {
	var st Status
	err := c.GetWorkflow(ctx, run, "").Get(ctx, &st)
	return journal.State(st.State), err
}

// find returns the run whose id is exactly the given id, not a run for which it is only a prefix.
func find(ctx context.Context, j journal.Journal, run string) (journal.RunInfo, error) {
	info, err := j.Find(ctx, run)
	if errors.As(err, new(*journal.AmbiguousError)) || err == nil && info.ID != run {
		return journal.RunInfo{}, fmt.Errorf("run %q: %w", run, journal.ErrNoRun)
	}
	return info, err
}
