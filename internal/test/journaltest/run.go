package journaltest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
)

// runCases check journal.Keep with the journal under test.
var runCases = []journalCase{
	{"Run resumes where it stopped", testResume},
	{"Run resumes only existing runs", testResumeOnly},
	{"Run keeps the input", testInput},
	{"Run refuses another pipeline", testChanged},
	{"Run that is refused keeps what it has", testRefused},
	{"Run that was refused continues by force", testRefusedForce},
	{"Run retries failed steps", testRetry},
	{"Run retries lost lanes", testRetryLanes},
	{"Run waits for an answer", testWaiting},
	{"a question of a lane that lost is closed", testLostQuestion},
	{"a cancelled question is asked again by a resume", testDeclined},
	{"Run takes an answer from elsewhere", testAnswerElsewhere},
	{"Run ends when the store has trouble with a question", testQuestionTrouble},
	{"Run is interrupted while the store is away", testAway},
	{"a flow and its run have equal DAGs", testFlow},
	{"two equal flows do not differ", testSameFlow},
	{"a budget applies to all resumes of a run", testBudget},
	{"recorded steps are not paid again", testPaidOnce},
	{"the total of a run is what its account is charged with", testTotals},
	{"Run drains", testDrain},
	{"Run drains within its grace", testGrace},
	{"Run drains although a person is asked", testDrainQuestion},
	{"Run is cancelled", testCancel},
	{"Run records no secret", testSecrets},
	{"Run tells no secret", testSecretFailures},
	{"Run refuses secrets in the input and the source", testKeptSecrets},
	{"Run reuses, and Diff explains differences", testIncremental},
	{"one of two concurrent resumes wins", testRivals},
}

var (
	plan  = dag.NewType[[]int]("plan")
	item  = dag.NewType[int]("item")
	draft = dag.NewType[string]("draft")
	final = dag.NewType[string]("final")
	reply = dag.NewType[stone.Answer]("reply")
)

// counter counts the calls of bodies.
type counter struct {
	mu    sync.Mutex
	calls map[string]int
}

func (c *counter) add(what string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.calls == nil {
		c.calls = map[string]int{}
	}
	c.calls[what]++
	return c.calls[what]
}

// want compares the counts with "name:count …", sorted by name.
func (c *counter) want(t *testing.T, want string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	var got []string
	for what, n := range c.calls {
		got = append(got, fmt.Sprintf("%s:%d", what, n))
	}
	if slices.Sort(got); strings.Join(got, " ") != want {
		t.Errorf("bodies ran %q, want %q", got, want)
	}
}

func (c *counter) leaf(name string, out dag.Type[string], body func(n int) (string, error), opts ...stone.LeafOption) stone.Ashlar {
	return stone.Func0(name, out, func(context.Context) (string, error) { return body(c.add(name)) }, opts...)
}

func ok(int) (string, error) { return "ok", nil }

// once fails only the first time.
func once(n int) (string, error) {
	if n == 1 {
		return "", stone.Fail("unlucky", "the first time")
	}
	return "ok", nil
}

func config() stone.Config {
	return stone.Config{RunID: "run", Now: func() time.Time { return moment }}
}

// kept returns a Config whose run is recorded in j.
func kept(cfg stone.Config, j journal.Journal, opts journal.Options) stone.Config {
	cfg.Recorder = journal.Keep(j, opts)
	return cfg
}

func run(t *testing.T, j journal.Journal, p stone.Ashlar, opts journal.Options) (stone.Result, error) {
	t.Helper()
	return stone.Run(t.Context(), p, kept(config(), j, opts))
}

func mustRun(t *testing.T, j journal.Journal, p stone.Ashlar, opts journal.Options) stone.Result {
	t.Helper()
	result, err := run(t, j, p, opts)
	must(t, err)
	return result
}

func wantState(t *testing.T, j journal.Journal, want journal.State) journal.RunInfo {
	t.Helper()
	info, err := j.Find(t.Context(), "run")
	if err != nil || info.State != want {
		t.Errorf("the run is %s, %v; want it %s", info.State, err, want)
	}
	return info
}

// nodes returns the lines that dag.Write writes, sorted.
func nodes(t *testing.T, d dag.DAG) []string {
	t.Helper()
	var text bytes.Buffer
	must(t, dag.Write(&text, d))
	return slices.Sorted(strings.Lines(text.String()))
}

func testResume(t *testing.T, j tested) {
	var c counter
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p := stone.Seq("all", c.leaf("first", draft, ok), stone.New("second", final, func(ctx context.Context, _ dag.DAG) (string, error) {
		text, err := stone.Step(ctx, "paid", nil, func(context.Context, any) (string, error) { c.add("paid"); return "paid", nil })
		if c.add("second") == 1 {
			cancel()
			return "", ctx.Err()
		}
		return text, err
	}))
	_, err := stone.Run(ctx, p, kept(config(), j, journal.Options{}))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Run: %v, want that it was cancelled", err)
	}
	wantState(t, j, journal.Canceled)
	result := mustRun(t, j.open(), p, journal.Options{})
	c.want(t, "first:1 paid:1 second:2")
	info := wantState(t, j, journal.Done)
	if info.Steps != 3 || info.Pipeline != "all" || info.Fingerprint != p.Fingerprint() || info.Owner != "" || !info.Ended.Equal(moment) {
		t.Errorf("recorded run: %+v", info)
	}
	later := config()
	later.Now = func() time.Time { return moment.Add(time.Hour) }
	again, err := stone.Run(t.Context(), p, kept(later, j.open(), journal.Options{}))
	must(t, err)
	c.want(t, "first:1 paid:1 second:2")
	if info = wantState(t, j, journal.Done); !info.Ended.Equal(moment) {
		t.Errorf("a run that was done ended at %v after it was resumed, want %v as before", info.Ended, moment)
	}
	for name, d := range map[string]func() (dag.DAG, error){
		"the run that is replayed": func() (dag.DAG, error) { return again.DAG, nil },
		"the journal":              func() (dag.DAG, error) { return j.DAG(t.Context(), "run") },
	} {
		got, err := d()
		must(t, err)
		if diff := cmp.Diff(nodes(t, result.DAG), nodes(t, got)); diff != "" {
			t.Errorf("%s has other nodes (-want +got):\n%s", name, diff)
		}
	}
}

func testInput(t *testing.T, j tested) {
	p := stone.Func("use", draft, final, func(_ context.Context, s string) (string, error) { return s + "!", nil })
	with := func(s string) stone.Config {
		cfg := config()
		var err error
		cfg.Input, err = draft.Append(dag.DAG{}, s)
		must(t, err)
		return cfg
	}
	first, err := stone.Run(t.Context(), p, kept(with("x"), j, journal.Options{}))
	must(t, err)
	again := mustRun(t, j.open(), p, journal.Options{})
	if first.Node.ID() != again.Node.ID() {
		t.Errorf("without the input the run is resumed to %s, want %s", again.Node.JSON(), first.Node.JSON())
	}
	_, err = stone.Run(t.Context(), p, kept(with("y"), j, journal.Options{}))
	if changed, ok := errors.AsType[*journal.ChangedError](err); !ok || !slices.Equal(changed.Changes, []string{"the input changed"}) {
		t.Errorf("with another input: %v, want a ChangedError", err)
	}
	forced, err := stone.Run(t.Context(), p, kept(with("y"), j, journal.Options{Force: true}))
	must(t, err)
	again = mustRun(t, j, p, journal.Options{})
	if forced.Node.Text() != "y!" || again.Node.Text() != "y!" {
		t.Errorf("forced with another input: %s, and resumed: %s; want y! twice", forced.Node.Text(), again.Node.Text())
	}
}

func testChanged(t *testing.T, j tested) {
	var c counter
	first := c.leaf("first", draft, ok)
	before := stone.Seq("all", first, c.leaf("second", final, ok))
	now := stone.Seq("all", first, c.leaf("third", draft, ok), c.leaf("second", final, ok))
	mustRun(t, j, before, journal.Options{})
	result, err := run(t, j, now, journal.Options{})
	changed, ok := errors.AsType[*journal.ChangedError](err)
	if !ok || changed.Run != "run" || !slices.Equal(changed.Changes, []string{"all/third was added"}) || result.DAG.Len() > 0 {
		t.Errorf("Run of another pipeline: %v, want a ChangedError", err)
	}
	c.want(t, "first:1 second:1")
	wantState(t, j, journal.Done)
	mustRun(t, j, now, journal.Options{Force: true})
	c.want(t, "first:1 second:1 third:1") // second reads nothing, so its record is still valid
	mustRun(t, j, now, journal.Options{})
}

func testRetry(t *testing.T, j tested) {
	var c counter
	inner := stone.New("ends", final, func(ctx context.Context, _ dag.DAG) (string, error) {
		for i := range 3 {
			name := fmt.Sprint("step-", i)
			_, err := stone.Step(ctx, name, nil, func(context.Context, any) (string, error) {
				n := c.add(name)
				if i == 1 {
					return once(n)
				}
				return "", nil
			})
			if err != nil {
				return "", err
			}
		}
		return "ok", nil
	}, stone.Retry{Attempts: 2, Kinds: []kind.Kind{"other"}})
	p := stone.Seq("all",
		stone.Rescue("saved", c.leaf("rescued", draft, func(int) (string, error) { return "", errors.New("always") }), c.leaf("heal", draft, ok)),
		inner)
	for range 2 {
		_, err := run(t, j, p, journal.Options{})
		if f, ok := errors.AsType[*stone.Failure](err); ok && f.Kind == "unlucky" {
			info := wantState(t, j, journal.Failed)
			if info.Attempt != 0 || info.Failure == nil || *info.Failure != (journal.Failure{Kind: "unlucky", Reason: "the first time", Path: "all/ends"}) {
				t.Errorf("recorded failure: %+v at attempt %d", info.Failure, info.Attempt)
			}
			continue
		}
		must(t, err)
	}
	if info := wantState(t, j, journal.Done); info.Attempt != 2 {
		t.Errorf("the run that failed and was resumed is at attempt %d, want 2", info.Attempt)
	}
	c.want(t, "heal:1 rescued:1 step-0:1 step-1:2 step-2:1")
}

func testRetryLanes(t *testing.T, j tested) {
	var c counter
	lane := stone.Func("lane", item, draft, func(_ context.Context, i int) (string, error) {
		n := c.add(fmt.Sprint("lane-", i))
		if i == 1 {
			return once(n)
		}
		return "ok", nil
	})
	read := stone.Func0("read", plan, func(context.Context) ([]int, error) { return []int{0, 1, 2}, nil })
	join := stone.Reduce(stone.Func("join", dag.All(draft), final, func(_ context.Context, all []string) (string, error) { return strings.Join(all, " "), nil }))
	p := stone.Seq("all", read, stone.Map("fan", plan, item, lane, stone.AllLanes()), join)
	_, err := run(t, j, p, journal.Options{})
	if f, ok := errors.AsType[*stone.Failure](err); !ok || f.Kind != kind.LanesFailed {
		t.Errorf("Run: %v, want that a lane is missing", err)
	}
	if result := mustRun(t, j.open(), p, journal.Options{}); result.Node.Text() != "ok ok ok" {
		t.Errorf("after the lane was tried again: %s", result.Node.Text())
	}
	c.want(t, "lane-0:1 lane-1:2 lane-2:1")
}

func question(c *counter) stone.Ashlar {
	return stone.Seq("all", c.leaf("first", draft, ok),
		stone.Ask("sure", dag.Nothing, reply, func(struct{}) string { return "really?" }, stone.Choices("yes", "no")))
}

func testWaiting(t *testing.T, j tested) {
	var c counter
	p := question(&c)
	for range 2 {
		if _, err := run(t, j, p, journal.Options{}); !errors.Is(err, kind.Waiting) {
			t.Errorf("Run: %v, want that it waits", err)
		}
		wantState(t, j, journal.Waiting)
	}
	other := j.open()
	questions, err := other.Questions(t.Context(), "run")
	if err != nil || len(questions) != 1 || questions[0].Text != "really?" || !questions[0].Open() {
		t.Fatalf("Questions: %+v, %v", questions, err)
	}
	for _, c := range []struct{ name, text, want string }{
		{"sure", "perhaps", "want one of"}, {"unsure", "yes", `has no question "unsure": it has 1 "all/sure"`},
	} {
		if err := journal.Answer(t.Context(), other, "run", c.name, ask.Answer{Response: c.text}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Answer(%s, %s): %v, want %q", c.name, c.text, err, c.want)
		}
	}
	must(t, journal.Answer(t.Context(), other, "run", "sure", ask.Answer{Response: "yes", By: "user ada"}))
	if result := mustRun(t, other, p, journal.Options{}); result.Node.Get("response", "") != "yes" {
		t.Errorf("the answer is %s", result.Node.JSON())
	}
	c.want(t, "first:1")
}

// person is a function that serves as a frontend.
type person func(context.Context, ask.Question) (string, error)

func (p person) Ask(ctx context.Context, q ask.Question) (ask.Answer, error) {
	response, err := p(ctx, q)
	return ask.Answer{Response: response, By: "person"}, err
}

func testAnswerElsewhere(t *testing.T, j tested) {
	var c counter
	cfg := config()
	cfg.Frontend = person(func(ctx context.Context, q ask.Question) (string, error) {
		if q.Problem == "" {
			return "perhaps", nil // not one of the choices, so the question is repeated
		}
		if err := journal.Answer(ctx, j.open(), q.RunID, q.Path, ask.Answer{Response: "no"}); err != nil {
			return "", err
		}
		<-ctx.Done()
		return "", ctx.Err()
	})
	result, err := stone.Run(t.Context(), question(&c), kept(cfg, j, journal.Options{}))
	if err != nil || result.Node.Get("response", "") != "no" {
		t.Errorf("the answer is %s, %v; want that from elsewhere", result.Node.JSON(), err)
	}
}

func testRivals(t *testing.T, j tested) {
	var group sync.WaitGroup
	var won, lost, calls atomic.Int64
	p := stone.Func0("a", draft, func(context.Context) (string, error) {
		calls.Add(1)
		time.Sleep(20 * time.Millisecond)
		return "x", nil
	})
	started := make(chan struct{})
	rivals := []journal.Journal{j, j.open(), j.open()}
	for _, rival := range rivals {
		group.Go(func() {
			<-started
			_, err := stone.Run(context.Background(), p, kept(config(), rival, journal.Options{}))
			switch held, ok := errors.AsType[*journal.HeldError](err); {
			case err == nil:
				won.Add(1)
			case ok && held.Owner != "":
				lost.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	close(started)
	group.Wait()
	if won.Load() < 1 || won.Load()+lost.Load() != int64(len(rivals)) || calls.Load() != 1 {
		t.Errorf("%d won, %d were told who has the run, the body ran %d times; want it once", won.Load(), lost.Load(), calls.Load())
	}
}
