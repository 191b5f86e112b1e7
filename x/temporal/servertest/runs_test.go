package servertest

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/limit"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/x/temporal"
)

var (
	text   = dag.NewType[string]("text")
	answer = dag.NewType[stone.Answer]("answer")
)

// start starts a run and fails the test if that fails.
func start(t *testing.T, c client.Client, j journal.Journal, r temporal.Run) {
	t.Helper()
	if err := temporal.Start(t.Context(), c, j, r); err != nil {
		t.Fatal(err)
	}
}

func wait(t *testing.T, c client.Client, run string, want journal.State) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if got, err := temporal.Wait(ctx, c, run); err != nil || got != want {
		t.Fatalf("run %s: got %q, %v, want %q", run, got, err, want)
	}
}

// A run that Temporal drives has the nodes of a run in one process.
func TestRuns(t *testing.T) {
	number, sum := dag.NewType[int]("number"), dag.NewType[int]("sum")
	list := dag.NewType[[]int]("list")
	double := stone.Func("double", number, number, func(_ context.Context, n int) (int, error) {
		if n == 3 {
			return 0, errors.New("three")
		}
		return 2 * n, nil
	})
	p := stone.Seq("p",
		stone.Func0("make", list, func(context.Context) ([]int, error) { return []int{1, 2, 3, 4}, nil }),
		stone.Map("each", list, number, double),
		stone.Reduce(stone.Func("sum", dag.All(number), sum, func(_ context.Context, all []int) (n int, err error) {
			for _, i := range all {
				n += i
			}
			return n, nil
		})))
	bad := stone.Func0("bad", text, func(context.Context) (string, error) { return "", errors.New("bad") })
	c, j := server().client(t), memdb.New(t)
	work(t, temporal.Worker{Client: c, Journal: j, Pool: t.Name(), Pipelines: []stone.Ashlar{p, bad}})
	for run, p := range map[string]stone.Ashlar{"good": p, "bad": bad} {
		local, err := stone.Run(t.Context(), p, stone.Config{RunID: run})
		start(t, c, j, temporal.Run{ID: run, Pipeline: p, Pool: t.Name()})
		want := journal.Done
		if err != nil {
			want = journal.Failed
		}
		wait(t, c, run, want)
		d, err := j.DAG(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := nodes(stone.Result{DAG: d}), nodes(local); got != want {
			t.Fatalf("run %s produced\n%s\nwant\n%s", run, got, want)
		}
	}
}

// Neither contents, questions, answers, errors nor secrets enter Temporal: not a byte of them
// is in what holders and workers send to the server, nor in the history.
func TestContentsStay(t *testing.T) {
	sent := server().record()
	c, j := server().client(t), memdb.New(t)
	const marked = "MARKED"
	var tries atomic.Int64
	p := stone.Seq("p",
		stone.Func("summarise", text, text, func(ctx context.Context, in string) (string, error) {
			if err := journal.Secret(ctx, marked+"-secret"); err != nil {
				return "", err
			}
			_, err := stone.Step(ctx, "inner", in, func(context.Context, string) (string, error) { return marked + "-step", nil })
			return marked + "-result " + marked + "-secret", err
		}),
		stone.Func("flaky", text, text, func(context.Context, string) (string, error) {
			if tries.Add(1) == 1 {
				return "", errors.New(marked + "-error")
			}
			return marked, nil
		}, stone.Retry{Attempts: 2}),
		stone.Ask("ask", text, answer, func(string) string { return marked + "-question" }),
		stone.Func("fail", answer, text, func(context.Context, stone.Answer) (string, error) { return "", errors.New(marked + "-failure") }),
	)
	input, err := dag.DAG{}.Append(must(dag.NewNode(dag.Spec{Type: text.Name(), Content: marked + "-input"})))
	if err != nil {
		t.Fatal(err)
	}
	work(t, temporal.Worker{Client: c, Journal: j, Pool: t.Name(), Pipelines: []stone.Ashlar{p}})
	run := "contents"
	start(t, c, j, temporal.Run{ID: run, Pipeline: p, Input: input, Pool: t.Name()})
	q := question(t, j, run)
	if err := temporal.Answer(t.Context(), c, j, t.Name(), run, q.Path, ask.Answer{Response: marked + "-answer"}); err != nil {
		t.Fatal(err)
	}
	wait(t, c, run, journal.Failed)
	all := sent()
	for i := c.GetWorkflowHistory(t.Context(), run, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); i.HasNext(); {
		e, err := i.Next()
		if err != nil {
			t.Fatal(err)
		}
		raw, err := proto.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		all += string(raw)
	}
	if !strings.Contains(all, `"contents"`) {
		t.Fatal("the test did not see the requests")
	}
	if i := strings.Index(all, marked); i >= 0 {
		t.Errorf("a content entered Temporal: …%q…", all[max(0, i-300):min(len(all), i+100)])
	}
	if d, err := j.DAG(t.Context(), run); err != nil || !strings.Contains(nodes(stone.Result{DAG: d}), marked+"-result [redacted]") {
		t.Errorf("the run has no marked content: %v", err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// question waits for the question of a run.
func question(t *testing.T, j journal.Journal, run string) journal.Question {
	t.Helper()
	for {
		questions, err := j.Questions(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		if len(questions) > 0 {
			return questions[0]
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("the run asks nothing")
		}
	}
}

// A run goes to the worker that has its version. While there is none, it waits.
func TestRollingDeploy(t *testing.T) {
	var calls, others atomic.Int64
	version := func(v string, calls *atomic.Int64) stone.Ashlar {
		return stone.Seq("p", stone.Func0("leaf", text, func(context.Context) (string, error) {
			calls.Add(1)
			return v, nil
		}, stone.Version(v)))
	}
	old, fresh := version("old", &calls), version("new", &others)
	c, j, pool := server().client(t), memdb.New(t), t.Name()
	work(t, temporal.Worker{Client: c, Journal: j, Pool: pool, Pipelines: []stone.Ashlar{fresh}})
	start(t, c, j, temporal.Run{ID: "rolling", Pipeline: old, Pool: pool})
	for {
		info, err := j.Find(t.Context(), "rolling")
		if err != nil {
			t.Fatal(err)
		}
		if info.State == journal.Refused { // by the worker with the new version
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	work(t, temporal.Worker{Client: c, Journal: j, Pool: pool, Pipelines: []stone.Ashlar{old}})
	wait(t, c, "rolling", journal.Done)
	d, err := j.DAG(t.Context(), "rolling")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := text.From(d); err != nil || got != "old" || calls.Load() != 1 || others.Load() != 0 {
		t.Errorf("got %q, %v after %d calls, and %d of another version", got, err, calls.Load(), others.Load())
	}
}

// Cancelling the workflow of a run cancels the run and its steps.
func TestCancel(t *testing.T) {
	c, j, pool := server().client(t), memdb.New(t), t.Name()
	started, ended := make(chan struct{}), make(chan struct{})
	p := stone.Seq("p", stone.Func0("leaf", text, func(ctx context.Context) (string, error) {
		close(started)
		<-ctx.Done()
		close(ended)
		return "", ctx.Err()
	}))
	work(t, temporal.Worker{Client: c, Journal: j, Pool: pool, Pipelines: []stone.Ashlar{p}})
	start(t, c, j, temporal.Run{ID: "cancel", Pipeline: p, Pool: pool})
	<-started
	if err := c.CancelWorkflow(t.Context(), "cancel", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := temporal.Wait(t.Context(), c, "cancel"); !sdktemporal.IsCanceledError(err) {
		t.Errorf("the workflow ended with %v", err)
	}
	<-ended
	if info, err := j.Find(t.Context(), "cancel"); err != nil || info.State != journal.Canceled {
		t.Errorf("the run is %q, %v", info.State, err)
	}
}

// A worker that is stopped lets its leaves end, and the run continues elsewhere.
func TestDrain(t *testing.T) {
	c, j, pool := server().client(t), memdb.New(t), t.Name()
	var calls atomic.Int64
	started, release := make(chan struct{}), make(chan struct{})
	p := stone.Seq("p", stone.Func0("slow", text, func(context.Context) (string, error) {
		calls.Add(1)
		close(started)
		<-release
		return "slow", nil
	}), stone.Func("next", text, answer, func(context.Context, string) (stone.Answer, error) { return stone.Answer{Response: "end"}, nil }))
	w := temporal.Worker{Client: c, Journal: j, Pool: pool, Pipelines: []stone.Ashlar{p}}
	stop := work(t, w)
	start(t, c, j, temporal.Run{ID: "drain", Pipeline: p, Pool: pool})
	<-started
	stopped := make(chan struct{})
	go func() {
		stop()
		close(stopped)
	}()
	time.Sleep(300 * time.Millisecond) // the worker is stopping
	close(release)
	<-stopped
	work(t, w)
	wait(t, c, "drain", journal.Done)
	if calls.Load() != 1 {
		t.Errorf("the leaf ran %d times", calls.Load())
	}
}

// A run keeps the rank with which it was started: in the process that holds it, also after a question, and where
// tasks of Temporal wait.
func TestRank(t *testing.T) {
	want := limit.Rank{Tenant: "acme", Priority: -7}
	var mu sync.Mutex
	seen := map[string]limit.Rank{}
	note := func(name string, t dag.Type[string]) stone.Ashlar {
		return stone.Func0(name, t, func(ctx context.Context) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			seen[name] = limit.RankOf(ctx)
			return name, nil
		})
	}
	p := stone.Seq("ranked", note("far", text), stone.Ask("sure", text, answer, func(string) string { return "sure?" }), note("near", text))
	sent := server().record()
	c, j := server().client(t), memdb.New(t)
	work(t, temporal.Worker{Client: c, Journal: j, Pool: t.Name(), Pipelines: []stone.Ashlar{p}})
	if err := temporal.Start(limit.Ranked(t.Context(), want), c, j, temporal.Run{ID: "ranked", Pipeline: p, Pool: t.Name()}); err != nil {
		t.Fatal(err)
	}
	if err := temporal.Answer(t.Context(), c, j, t.Name(), "ranked", question(t, j, "ranked").Path, ask.Answer{Response: "yes"}); err != nil {
		t.Fatal(err)
	}
	wait(t, c, "ranked", journal.Done)
	if seen["far"] != want || seen["near"] != want {
		t.Errorf("got %+v, want %+v in both", seen, want)
	}
	all := sent()
	if tenant := fmt.Sprintf("%x", sha256.Sum256([]byte(want.Tenant)))[:32]; strings.Count(all, tenant) < 2 || strings.Contains(all, want.Tenant) {
		t.Errorf("the run or its answer has no tenant, or its name entered Temporal:\n%s", all)
	}
}
