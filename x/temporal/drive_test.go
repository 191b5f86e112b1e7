package temporal

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
)

// drive runs the workflow with an activity that returns the states, one for each call.
func drive(t *testing.T, states []string, during func(env *testsuite.TestWorkflowEnvironment, call int)) (Status, int, error) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: patient})
	calls := 0
	env.RegisterActivityWithOptions(func(_ context.Context, run string) (Status, error) {
		calls++
		if during != nil {
			during(env, calls)
		}
		if run != "nightly" || calls > len(states) {
			return Status{}, temporal.NewNonRetryableApplicationError("unexpected", "test", nil)
		}
		return Status{states[calls-1]}, nil
	}, activity.RegisterOptions{Name: runActivity})
	env.ExecuteWorkflow(Drive, "nightly")
	if !env.IsWorkflowCompleted() {
		t.Fatal("the workflow has not ended")
	}
	var st Status
	err := env.GetWorkflowError()
	if err == nil {
		err = env.GetWorkflowResult(&st)
	}
	return st, calls, err
}

// A run is driven until it no longer waits. An answer while the activity runs is not lost.
func TestDrive(t *testing.T) {
	started := time.Now()
	st, calls, err := drive(t, []string{"waiting", "waiting", "done"}, func(env *testsuite.TestWorkflowEnvironment, call int) {
		if call == 1 {
			env.SignalWorkflow(answered, nil)
		} else if call == 2 {
			env.RegisterDelayedCallback(func() { env.SignalWorkflow(answered, nil) }, time.Hour)
		}
	})
	if err != nil || st.State != "done" || calls != 3 {
		t.Errorf("got %v, %v after %d calls", st, err, calls)
	}
	if took := time.Since(started); took > time.Hour/2 {
		t.Errorf("the test did not skip time: %v", took)
	}
}

// A lost signal is healed by a timer.
func TestDriveWithoutSignal(t *testing.T) {
	st, calls, err := drive(t, []string{"waiting", "failed"}, nil)
	if err != nil || st.State != "failed" || calls != 2 {
		t.Errorf("got %v, %v after %d calls", st, err, calls)
	}
}

func TestDriveCanceled(t *testing.T) {
	_, calls, err := drive(t, []string{"waiting", "done"}, func(env *testsuite.TestWorkflowEnvironment, _ int) {
		env.RegisterDelayedCallback(env.CancelWorkflow, time.Minute)
	})
	var canceled *temporal.CanceledError
	if !errors.As(err, &canceled) || calls != 1 {
		t.Errorf("got %v after %d calls, want it canceled after 1", err, calls)
	}
}

// signals is a client that counts signals.
type signals struct {
	client.Client
	sent int
}

func (s *signals) SignalWithStartWorkflow(context.Context, string, string, any, client.StartWorkflowOptions, any, ...any) (client.WorkflowRun, error) {
	s.sent++
	return nil, nil
}

// A run whose start another program has recorded is answered, too, without a rank.
func TestForeignStart(t *testing.T) {
	j := memdb.New(t)
	p := stone.Seq("p", stone.Func0("ask", dag.NewType[bool]("yes"), func(context.Context) (bool, error) {
		return false, &stone.Failure{Kind: kind.Waiting, Reason: "nobody has answered"}
	}))
	for run, source := range map[string]string{"none": "", "text": `"a text"`, "other": `{"rank":7,"published":"p"}`} {
		opts := journal.Options{Source: []byte(source)}
		if _, err := stone.Run(t.Context(), p, stone.Config{RunID: run, Recorder: journal.Keep(j, opts)}); !errors.Is(err, kind.Waiting) {
			t.Fatal(err)
		}
		if _, err := j.Ask(t.Context(), journal.Question{Run: run, Path: "p/ask", Name: "ask", Asked: time.Unix(1, 0)}); err != nil {
			t.Fatal(err)
		}
		var c signals
		if err := Answer(t.Context(), &c, j, "p", run, "p/ask", ask.Answer{Response: "yes"}); err != nil || c.sent != 1 {
			t.Errorf("%s: %d signals, %v; want that the answer wakes the run", run, c.sent, err)
		}
	}
}

// starts is a client that counts started workflows.
type starts struct {
	client.Client
	started int
}

func (s *starts) ExecuteWorkflow(context.Context, client.StartWorkflowOptions, any, ...any) (client.WorkflowRun, error) {
	s.started++
	return nil, nil
}

// Start records the pipeline, the input and the labels of a run, and does none of its work, however often it is called.
func TestStartRecords(t *testing.T) {
	j := memdb.New(t)
	var c starts
	number := dag.NewType[int]("number")
	p := stone.Scoped("p", stone.Walk{}, func(_ context.Context, d dag.DAG) (dag.DAG, error) {
		t.Error("the pipeline runs in the process that starts it")
		return d, nil
	})
	run := Run{ID: "run", Pipeline: p, Input: dag.Of(number.With(7)), Pool: "pool", Labels: map[string]string{"team": "a"}}
	for n := range 2 {
		if err := Start(t.Context(), &c, j, run); err != nil || c.started != n+1 {
			t.Fatalf("%d workflows, %v", c.started, err)
		}
		info, err := j.Find(t.Context(), "run")
		if err != nil {
			t.Fatal(err)
		}
		input, err := journal.Input(t.Context(), j, info)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := number.From(input); err != nil || got != 7 || info.State != journal.Drained || info.Fingerprint != p.Fingerprint() || info.Labels["team"] != "a" {
			t.Errorf("input %d, %v, run %+v", got, err, info)
		}
	}
	run.Input = dag.Of(number.With(8))
	if err := Start(t.Context(), &c, j, run); !errors.As(err, new(*journal.ChangedError)) || c.started != 2 {
		t.Errorf("with another input: %v, %d workflows", err, c.started)
	}
}

func TestRunIDs(t *testing.T) {
	for id, ok := range map[string]bool{"nightly": true, "": false, string(make([]byte, maxRun)): true, string(make([]byte, maxRun+1)): false} {
		if err := checkRun(id); (err == nil) != ok {
			t.Errorf("%d bytes: %v", len(id), err)
		}
	}
}

// A worker that lacks something says so before it connects.
func TestWorkerNeeds(t *testing.T) {
	for _, w := range []Worker{{}, {Pool: "p"}} {
		if err := w.Run(t.Context()); err == nil {
			t.Errorf("%+v: want an error", w)
		}
	}
}
