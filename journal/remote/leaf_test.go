package remote_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/remote"
	"github.com/stonelayer/stone/kind"
)

var (
	number = dag.NewType[int]("number")
	item   = dag.NewType[int]("item")
	text   = dag.NewType[string]("text")
)

// run runs p with workers that know the pipelines.
func run(t *testing.T, ctx context.Context, j journal.Journal, p stone.Ashlar, cfg stone.Config, known ...stone.Ashlar) (stone.Result, *pool, error) {
	t.Helper()
	c := newPool(t, &remote.Worker{Journal: j, Pipelines: known, Secrets: []string{"worker-secret"}})
	cfg.RunID, cfg.Recorder = "run", journal.Keep(j, journal.Options{})
	cfg.Executor = remote.New(remote.Config{Journal: j, Carrier: c, Routes: []remote.Route{{Leaf: "local"}, {Pool: "p"}}, Again: 50 * time.Millisecond})
	result, err := stone.Run(ctx, p, cfg)
	return result, c, err
}

// Secrets of the worker do not reach the board.
func TestSecrets(t *testing.T) {
	var j journal.Memory
	p := stone.Seq("p", stone.Func0("tell", text, func(ctx context.Context) (string, error) {
		if err := journal.Secret(ctx, "marked-secret"); err != nil {
			return "", err
		}
		_, err := stone.Step(ctx, "step", 0, func(context.Context, int) (string, error) { return "step worker-secret", nil })
		return "key worker-secret and marked-secret", err
	}), stone.Func("stop", text, number, func(context.Context, string) (int, error) { return 0, kindWaiting() }))
	result, _, err := run(t, t.Context(), &j, p, stone.Config{}, p)
	if !errors.Is(err, kind.Waiting) {
		t.Fatal(err)
	}
	if got, err := text.From(result.DAG); err != nil || got != "key [redacted] and [redacted]" {
		t.Errorf("got %q, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	items := 0
	for i, err := range j.Watch(ctx, "run", "", 0) {
		if err != nil {
			break
		}
		if strings.Contains(string(i.Data), "-secret") {
			t.Errorf("item %s holds a secret", i.Key)
		}
		if items++; strings.HasPrefix(i.Key, "result/") {
			cancel()
		}
	}
	cancel()
	if items < 3 {
		t.Errorf("the board had %d items", items)
	}
}

func kindWaiting() error { return &stone.Failure{Kind: kind.Waiting, Reason: "for the test"} }

// A leaf comes back if no worker has its version, and a worker with several versions does
// each with its own.
func TestVersions(t *testing.T) {
	version := func(v string) (stone.Ashlar, *atomic.Int64) {
		var calls atomic.Int64
		return stone.Seq("p", stone.Func0("leaf", text, func(context.Context) (string, error) {
			calls.Add(1)
			return v, nil
		}, stone.Version(v))), &calls
	}
	old, olds := version("old")
	fresh, freshes := version("new")
	for name, c := range map[string]struct {
		known []stone.Ashlar
		sent  bool
	}{"both": {[]stone.Ashlar{fresh, old}, true}, "only another": {[]stone.Ashlar{fresh}, false}} {
		t.Run(name, func(t *testing.T) {
			var j journal.Memory
			olds.Store(0)
			result, c2, err := run(t, t.Context(), &j, old, stone.Config{}, c.known...)
			if err != nil {
				t.Fatal(err)
			}
			if got, _ := text.From(result.DAG); got != "old" || olds.Load() != 1 || freshes.Load() != 0 || c2.sent.Load() == 0 {
				t.Errorf("got %q after %d calls of the old and %d of the new version", got, olds.Load(), freshes.Load())
			}
		})
	}
}

// The process of the run asks the questions of a leaf, which continues after the steps that it
// has done.
func TestQuestion(t *testing.T) {
	var j journal.Memory
	var calls atomic.Int64
	p := stone.Seq("p", stone.Func0("leaf", text, func(ctx context.Context) (string, error) {
		first, err := stone.Step(ctx, "first", 0, func(context.Context, int) (int, error) { return int(calls.Add(1)), nil })
		if err != nil {
			return "", err
		}
		return stone.Step(ctx, "ask", first, func(ctx context.Context, n int) (string, error) {
			return stone.In(ctx).Ask(ask.Question{Name: "sure", Text: fmt.Sprint(n)})
		})
	}))
	_, _, err := run(t, t.Context(), &j, p, stone.Config{}, p)
	if !errors.Is(err, kind.Waiting) {
		t.Fatal(err)
	}
	questions, err := j.Questions(t.Context(), "run")
	if err != nil || len(questions) != 1 {
		t.Fatal(questions, err)
	}
	if err := j.Answer(t.Context(), "run", questions[0].Path, ask.Answer{Response: "yes"}); err != nil {
		t.Fatal(err)
	}
	result, _, err := run(t, t.Context(), &j, p, stone.Config{}, p)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := text.From(result.DAG); got != "yes" || calls.Load() != 1 {
		t.Errorf("got %q after %d calls", got, calls.Load())
	}
}

// Cancelling a run cancels its leaves.
func TestCancel(t *testing.T) {
	var j journal.Memory
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	p := stone.Seq("p", stone.Func0("leaf", text, func(ctx context.Context) (string, error) {
		cancel()
		<-ctx.Done()
		close(ended)
		return "", ctx.Err()
	}))
	_, _, err := run(t, ctx, &j, p, stone.Config{}, p)
	if f := (*stone.Failure)(nil); !errors.As(err, &f) || f.Kind != kind.Canceled {
		t.Fatal(err)
	}
	<-ended
}

// A worker that dies leaves its steps to the next one, which learns that it is the second.
func TestAttempts(t *testing.T) {
	var j journal.Memory
	var steps, bodies atomic.Int64
	dying, die := context.WithCancel(t.Context())
	p := stone.Seq("p", stone.Func0("leaf", number, func(ctx context.Context) (int, error) {
		_, err := stone.Step(ctx, "step", 0, func(context.Context, int) (int64, error) { return steps.Add(1), nil })
		if bodies.Add(1) == 1 && err == nil {
			die()
			<-ctx.Done()
			return 0, ctx.Err()
		}
		return journal.Attempt(ctx), err
	}))
	c := newPool(t, &remote.Worker{Journal: &j, Pipelines: []stone.Ashlar{p}})
	c.ctx = dying
	go func() {
		<-dying.Done()
		c.mu.Lock()
		c.ctx = t.Context()
		c.mu.Unlock()
	}()
	e := remote.New(remote.Config{Journal: &j, Carrier: c, Routes: []remote.Route{{Pool: "p"}}, Again: 20 * time.Millisecond})
	result, err := stone.Run(t.Context(), p, stone.Config{RunID: "run", Recorder: journal.Keep(&j, journal.Options{}), Executor: e})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := number.From(result.DAG); got != 2 || steps.Load() != 1 || bodies.Load() != 2 {
		t.Errorf("attempt %d, %d steps, %d bodies", got, steps.Load(), bodies.Load())
	}
}

// fixed is a carrier that delivers to a function.
type fixed func(remote.Work)

func (f fixed) Send(_ context.Context, _ string, w remote.Work) error { go f(w); return nil }
func (fixed) Cancel(context.Context, remote.Work) error               { return nil }

// A returned leaf continues after the steps that its worker finished before it died.
func TestGiveBack(t *testing.T) {
	var j journal.Memory
	var steps atomic.Int64
	dying, die := context.WithCancel(t.Context())
	p := stone.Seq("p", stone.Func0("leaf", number, func(ctx context.Context) (int, error) {
		n, err := stone.Step(ctx, "step", 0, func(context.Context, int) (int, error) { return int(steps.Add(1)), nil })
		if dying.Err() == nil {
			die()
			<-ctx.Done()
			return 0, ctx.Err()
		}
		return n, err
	}))
	able, unable := &remote.Worker{Journal: &j, Pipelines: []stone.Ashlar{p}}, &remote.Worker{Journal: &j}
	carrier := fixed(func(w remote.Work) {
		if err := able.Do(dying, w); !errors.Is(err, context.Canceled) {
			t.Errorf("the worker ended with %v", err)
		}
		if err := unable.Do(t.Context(), w); !errors.Is(err, remote.ErrOther) {
			t.Errorf("a worker without the pipeline ended with %v", err)
		}
		if err := unable.GiveBack(t.Context(), w); err != nil {
			t.Error(err)
		}
	})
	e := remote.New(remote.Config{Journal: &j, Carrier: carrier, Routes: []remote.Route{{Pool: "p"}}})
	result, err := stone.Run(t.Context(), p, stone.Config{RunID: "run", Recorder: journal.Keep(&j, journal.Options{}), Executor: e})
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := number.From(result.DAG); got != 1 || steps.Load() != 1 {
		t.Errorf("got %d after %d steps", got, steps.Load())
	}
}

// A run ends with an error that says why, when its carrier fails for too long or its journal
// does not keep it.
func TestTrouble(t *testing.T) {
	p := stone.Seq("p", stone.Func0("leaf", number, func(context.Context) (int, error) { return 1, nil }))
	for name, c := range map[string]struct {
		cfg  func(*journal.Memory) stone.Config
		want string
	}{
		"carrier": {func(j *journal.Memory) stone.Config {
			return stone.Config{Recorder: journal.Keep(j, journal.Options{})}
		}, "no network"},
		"not kept": {func(*journal.Memory) stone.Config { return stone.Config{} }, "acquire it first, as journal.Keep does"},
	} {
		t.Run(name, func(t *testing.T) {
			var j journal.Memory
			cfg := c.cfg(&j)
			cfg.Executor = remote.New(remote.Config{Journal: &j, Carrier: broken{}, Routes: []remote.Route{{Pool: "p"}}, Patience: time.Millisecond, Again: time.Millisecond})
			_, err := stone.Run(t.Context(), p, cfg)
			if f := (*stone.Failure)(nil); !errors.As(err, &f) || f.Kind != kind.Executor || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

type broken struct{}

func (broken) Send(context.Context, string, remote.Work) error { return errors.New("no network") }
func (broken) Cancel(context.Context, remote.Work) error       { return nil }

// A large content is on the board once, however many leaves read it.
func TestLargeContents(t *testing.T) {
	var j journal.Memory
	big := strings.Repeat("<big>&", 2000)
	items := dag.NewType[[]int]("items")
	lane := stone.Func2("lane", text, entry, number, func(_ context.Context, s string, i int) (int, error) { return len(s) + i, nil })
	sum := stone.Reduce(stone.Func("sum", dag.All(number), dag.NewType[int]("sum"), func(_ context.Context, all []int) (int, error) {
		n := 0
		for _, i := range all {
			n += i
		}
		return n, nil
	}))
	p := stone.Seq("p",
		stone.Func0("local", text, func(context.Context) (string, error) { return big, nil }),
		stone.Func0("items", items, func(context.Context) ([]int, error) { return make([]int, 100), nil }),
		stone.Map("each", items, entry, lane), sum,
		stone.Func0("wait", number, func(context.Context) (int, error) { return 0, kindWaiting() }))
	_, _, err := run(t, t.Context(), &j, p, stone.Config{}, p)
	if !errors.Is(err, kind.Waiting) {
		t.Fatal(err)
	}
	d, err := j.DAG(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := dag.NewType[int]("sum").From(d); err != nil || got != 100*len(big) {
		t.Errorf("got %d, %v", got, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	times, size := 0, 0
	for i, err := range j.Watch(ctx, "run", "", 0) {
		if err != nil {
			break
		}
		size += len(i.Data)
		if strings.Contains(string(i.Data), "<big>&<big>") || strings.Contains(string(i.Data), "u003cbig") {
			times++
		}
	}
	if times != 1 || size > 500_000 {
		t.Errorf("the content is on the board %d times, which has %d bytes", times, size)
	}
}

var entry = dag.NewType[int]("entry")
