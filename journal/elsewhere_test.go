package journal_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/tree"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/kind"
)

// besides starts children on goroutines of this process.
type besides struct {
	journal.Journal
	mu    sync.Mutex
	stops map[string]context.CancelFunc
}

func (b *besides) Start(ctx context.Context, c journal.Child) error {
	info, err := b.Find(ctx, c.ID)
	if err != nil && !errors.Is(err, journal.ErrNoRun) {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if info.State == journal.Done || info.State == journal.Waiting || b.stops[c.ID] != nil {
		return nil
	}
	input, err := tree.ReadInput(ctx, c.Pipeline, c.Input)
	if err != nil {
		return err
	}
	b.run(c, input)
	return nil
}

func (b *besides) run(c journal.Child, input dag.DAG) {
	ctx, cancel := context.WithCancel(budget.With(context.Background(), budget.New(c.Limits)))
	if b.stops == nil {
		b.stops = map[string]context.CancelFunc{}
	}
	b.stops[c.ID] = cancel
	go func() {
		_, _ = stone.Run(ctx, c.Pipeline, stone.Config{RunID: c.ID, Input: input, Grant: c.Grant,
			Recorder: journal.Keep(b.Journal, journal.Options{Labels: c.Labels})})
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.stops, c.ID)
	}()
}

func (b *besides) Wait(ctx context.Context, c journal.Child) (s journal.ChildState, err error) {
	for ; ctx.Err() == nil; time.Sleep(time.Millisecond) { // no change of the journal says that the goroutine of a run has ended
		b.mu.Lock()
		running := b.stops[c.ID] != nil
		b.mu.Unlock()
		info, err := b.Find(ctx, c.ID)
		if running || err != nil || info.State == journal.Running {
			continue
		}
		s = journal.ChildState{State: info.State, Failure: info.Failure, Usage: info.Usage}
		if info.State == journal.Done {
			n, err := b.Node(ctx, c.ID, info.Node.String())
			s.Result = n.Content
			return s, err
		}
		s.Questions, err = b.Questions(ctx, c.ID)
		return s, err
	}
	return s, context.Cause(ctx)
}

func (b *besides) Answer(ctx context.Context, c journal.Child, path string, a ask.Answer) error {
	if err := b.Journal.Answer(ctx, c.ID, path, a); err != nil && !errors.Is(err, journal.ErrNoQuestion) {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stops[c.ID] == nil {
		b.run(c, dag.DAG{})
	}
	return nil
}

func (b *besides) Cancel(ctx context.Context, id string) error {
	b.mu.Lock()
	if stop := b.stops[id]; stop != nil {
		stop()
	}
	b.mu.Unlock()
	for running := true; running; time.Sleep(time.Millisecond) {
		b.mu.Lock()
		running = b.stops[id] != nil
		b.mu.Unlock()
	}
	if err := journal.Cancel(ctx, b.Journal, id); !errors.As(err, new(*journal.StateError)) && !errors.Is(err, journal.ErrNoRun) {
		return err
	}
	return nil
}

var (
	chunk  = dag.NewType[[]int]("chunk")
	chunks = dag.NewType[[][]int]("chunks")
	sum    = dag.NewType[int]("sum")
	total  = dag.NewType[int]("total")
)

// add sums up a chunk, in a step of a dollar.
func add(work func(context.Context) error) stone.Ashlar {
	type reply struct {
		Sum   int          `json:"sum"`
		Usage budget.Usage `json:"usage"`
	}
	return stone.Func("add", chunk, sum, func(ctx context.Context, all []int) (int, error) {
		draw, err := budget.From(ctx).Draw(ctx, stone.In(ctx), "pay", budget.Fixed(budget.Amount{Roundtrips: 1, USD: 1}))
		if err != nil {
			return 0, err
		}
		defer draw.Close()
		r, err := stone.Step(draw.Context(ctx), "pay", all, func(ctx context.Context, all []int) (r reply, err error) {
			if err = errors.Join(draw.Begin(), work(ctx)); err != nil {
				return r, budget.Costly(err, budget.Usage{USD: 1})
			}
			for _, n := range all {
				r.Sum += n
			}
			r.Usage.USD = 1
			return r, nil
		})
		if err != nil {
			return 0, err
		}
		draw.End(r.Usage)
		return r.Sum, nil
	}, stone.Effects("network"))
}

// parent sums up four chunks elsewhere.
func parent(b *besides, work func(context.Context) error) stone.Ashlar {
	return stone.Seq("parent",
		stone.Func0("make", chunks, func(context.Context) ([][]int, error) { return [][]int{{1}, {2, 3}, {4}, {5, 6}}, nil }),
		stone.Map("each", chunks, chunk, journal.Elsewhere("add", add(work), budget.Limits{USD: new(2.0)}, b), stone.AllLanes()),
		stone.Reduce(stone.Func("total", dag.All(sum), total, func(_ context.Context, all []int) (n int, err error) {
			for _, s := range all {
				n += s
			}
			return n, nil
		})))
}

func fine(context.Context) error { return nil }

func TestElsewhere(t *testing.T) {
	b := &besides{Journal: memdb.New(t)}
	account := budget.New(budget.Limits{USD: new(8.0)})
	ctx := budget.With(t.Context(), account)
	cfg := stone.Config{RunID: "run", Grant: []string{"network", "process"}, Recorder: journal.Keep(b.Journal, journal.Options{})}
	for range 2 { // the second one replays
		result, err := stone.Run(ctx, parent(b, fine), cfg)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := total.From(result.DAG); err != nil || got != 21 {
			t.Errorf("the total is %d, %v", got, err)
		}
		for n := range result.DAG.Nodes() {
			if n.Type() == sum.Name() && (len(n.Parents()) != 1 || n.Parents()[0].Type() != chunk.Name()) {
				t.Errorf("the parents of %s are %v, want the chunk that was read", n, n.Parents())
			}
		}
	}
	children, err := journal.Children(t.Context(), b.Journal, "run")
	if err != nil || len(children) != 4 {
		t.Fatalf("%d children, %v", len(children), err)
	}
	for _, c := range children {
		if c.State != journal.Done || c.Usage.USD != 1 {
			t.Errorf("child %+v", c)
		}
	}
	if spent := account.Spent(); spent.USD != 4 {
		t.Errorf("the account was charged with %v, want 4", spent)
	}
	info, err := b.Find(t.Context(), "run")
	if err != nil || info.Usage.USD != 4 || info.Usage.Possible != (budget.Possible{}) {
		t.Errorf("the run used %+v, %v", info.Usage, err)
	}
	if err := errors.Join(b.Remove(t.Context(), "run")); err != nil {
		t.Fatal(err)
	}
	if left, err := b.Runs(t.Context(), journal.Query{}); err != nil || len(left) > 0 {
		t.Errorf("runs are left: %v, %v", left, err)
	}
}

// The effects of the child are known before the run, and its account cannot pay for more than the limits.
func TestElsewhereIsBounded(t *testing.T) {
	b := &besides{Journal: memdb.New(t)}
	cfg := stone.Config{RunID: "run", Grant: []string{}, Recorder: journal.Keep(b.Journal, journal.Options{})}
	if _, err := stone.Run(t.Context(), parent(b, fine), cfg); err == nil || !strings.Contains(err.Error(), "network") {
		t.Errorf("without a grant: %v", err)
	}
	cfg = stone.Config{RunID: "poor", Recorder: journal.Keep(b.Journal, journal.Options{})}
	account := budget.New(budget.Limits{USD: new(7.0)}) // for three children of 2 at once
	_, err := stone.Run(budget.With(t.Context(), account), parent(b, fine), cfg)
	if spent := account.Spent().USD; err != nil && !errors.As(err, new(*budget.ExhaustedError)) || spent > 7 {
		t.Errorf("%v after %v USD", err, spent)
	}
	open := journal.Elsewhere("add", add(fine), budget.Limits{}, b) // what is left of 0.5
	p := stone.Seq("open", stone.Func0("make", chunk, func(context.Context) ([]int, error) { return []int{1}, nil }), open)
	_, err = stone.Run(budget.With(t.Context(), budget.New(budget.Limits{USD: new(0.5)})), p, stone.Config{RunID: "open", Recorder: journal.Keep(b.Journal, journal.Options{})})
	if err == nil || !strings.Contains(err.Error(), budget.Kind) {
		t.Errorf("a child without limits of its own: %v", err)
	}
}

// A child draws on the budgets of its parent: what its siblings have spent leaves no room for the third one.
func TestElsewhereDraws(t *testing.T) {
	b := &besides{Journal: memdb.New(t)}
	day := budget.Shared{Name: "all", Per: budget.Day, Limits: budget.Limits{USD: new(2.0)}}
	cfg := stone.Config{RunID: "run", Recorder: journal.Keep(b.Journal, journal.Options{Budgets: []budget.Shared{day}, Account: "ada"})}
	if _, err := stone.Run(t.Context(), parent(b, fine), cfg); err == nil || !strings.Contains(err.Error(), `budget "all" of this day has no room`) {
		t.Errorf("four children of a dollar, with two in the budget: %v", err)
	}
	for _, of := range []budget.Shared{day, {Name: "ada", Per: budget.Day, Payer: true}} {
		if got, err := b.Balance(t.Context(), of, time.Now()); err != nil || got.Used.USD != 2 {
			t.Errorf("%s has %+v, %v, want 2 USD used", of, got, err)
		}
	}
}

// A run says what has become of children that are in another journal.
func TestElsewhereIsNamed(t *testing.T) {
	b := &besides{Journal: memdb.New(t)}
	var calls atomic.Int64
	work := func(context.Context) error {
		if calls.Add(1) == 1 {
			return errors.New("broken")
		}
		return nil
	}
	here := memdb.New(t)
	if _, err := stone.Run(t.Context(), parent(b, work), stone.Config{RunID: "run", Recorder: journal.Keep(here, journal.Options{})}); err == nil {
		t.Fatal("a lane is missing, and the run has a result")
	}
	far, err := journal.Children(t.Context(), b.Journal, "run")
	near, other := journal.Children(t.Context(), here, "run")
	if err = errors.Join(err, other); err != nil || len(far) != 4 || len(near) != 4 {
		t.Fatalf("%d children in their journal and %d in that of the run, %v", len(far), len(near), err)
	}
	for _, n := range near {
		i := slices.IndexFunc(far, func(f journal.RunInfo) bool { return f.ID == n.ID })
		if i < 0 || far[i].State != n.State || far[i].Usage != n.Usage || (n.Failure == nil) != (far[i].Failure == nil) {
			t.Errorf("the run knows %+v, want %+v", n, far[max(i, 0)])
		}
	}
}

// A process that dies while its children run leaves them to the next one: each is done and paid for once.
func TestElsewhereGoesOn(t *testing.T) {
	t.Run("memory", func(t *testing.T) { goesOn(t, memdb.New(t)) })
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "stone.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	t.Run("file", func(t *testing.T) { goesOn(t, db) })
}

func goesOn(t *testing.T, j journal.Journal) {
	b := &besides{Journal: j}
	var calls atomic.Int64
	release := make(chan struct{})
	work := func(context.Context) error { calls.Add(1); <-release; return nil }
	drain := make(chan struct{})
	for n := range 3 {
		drain = make(chan struct{})
		go func() {
			for calls.Load() < 4 {
				time.Sleep(time.Millisecond)
			}
			close(drain)
		}()
		ctx := budget.With(t.Context(), budget.New(budget.Limits{USD: new(8.0)}))
		_, err := stone.Run(ctx, parent(b, work), stone.Config{RunID: "run", Recorder: journal.Keep(b.Journal, journal.Options{Drain: drain, Grace: time.Hour})})
		if !errors.Is(err, journal.ErrDrained) {
			t.Fatalf("process %d ended with %v", n, err)
		}
	}
	close(release)
	account := budget.New(budget.Limits{USD: new(8.0)})
	if _, err := stone.Run(budget.With(t.Context(), account), parent(b, work), stone.Config{RunID: "run", Recorder: journal.Keep(b.Journal, journal.Options{})}); err != nil {
		t.Fatal(err)
	}
	info, err := b.Find(t.Context(), "run")
	if children, err := journal.Children(t.Context(), b.Journal, "run"); err != nil || len(children) != 4 {
		t.Errorf("%d children, %v", len(children), err)
	}
	if err != nil || calls.Load() != 4 || account.Spent().USD != 4 || info.Usage.USD != 4 || info.Usage.Possible != (budget.Possible{}) {
		t.Errorf("%d calls, %v spent, the run used %+v, %v; want 4 of a dollar", calls.Load(), account.Spent(), info.Usage, err)
	}
	if err := b.Remove(t.Context(), "run"); err != nil {
		t.Fatal(err)
	}
	if left, err := b.Runs(t.Context(), journal.Query{}); err != nil || len(left) > 0 {
		t.Errorf("runs are left: %v, %v", left, err)
	}
}

// A child that has failed is resumed by the same attempt, and its cost counts once.
func TestElsewhereRetries(t *testing.T) {
	b := &besides{Journal: memdb.New(t)}
	var calls atomic.Int64
	work := func(context.Context) error {
		if calls.Add(1) == 1 {
			return errors.New("broken")
		}
		return nil
	}
	p := stone.Seq("p", stone.Func0("make", chunk, func(context.Context) ([]int, error) { return []int{1, 2}, nil }),
		journal.Elsewhere("add", add(work), budget.Limits{USD: new(2.0)}, b))
	cfg := stone.Config{RunID: "run", Recorder: journal.Keep(b.Journal, journal.Options{})}
	run := func() error {
		_, err := stone.Run(budget.With(t.Context(), budget.New(budget.Limits{USD: new(2.0)})), p, cfg)
		return err
	}
	if err := run(); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Fatal(err)
	}
	if err := run(); err != nil {
		t.Fatal(err)
	}
	info, err := b.Find(t.Context(), "run")
	children, other := journal.Children(t.Context(), b.Journal, "run")
	if err = errors.Join(err, other); err != nil || len(children) != 1 || info.Usage.USD != 2 || info.Usage.Possible != (budget.Possible{}) {
		t.Errorf("%d children, the run used %+v, %v; want one child that cost 2", len(children), info.Usage, err)
	}
}

// The questions of a child are questions of its parent.
func TestElsewhereAsks(t *testing.T) {
	b := &besides{Journal: memdb.New(t)}
	answer := dag.NewType[stone.Answer]("answer")
	p := stone.Seq("p", stone.Func0("make", chunk, func(context.Context) ([]int, error) { return []int{1, 2}, nil }),
		journal.Elsewhere("sure", stone.Seq("child", stone.Ask("sure?", chunk, answer, func(c []int) string { return fmt.Sprint("Add ", c, "?") }, stone.Choices("yes", "no"))), budget.Limits{}, b))
	cfg := stone.Config{RunID: "run", Recorder: journal.Keep(b.Journal, journal.Options{})}
	if _, err := stone.Run(t.Context(), p, cfg); !errors.Is(err, kind.Waiting) {
		t.Fatal(err)
	}
	questions, err := b.Questions(t.Context(), "run")
	if err != nil || len(questions) != 1 || questions[0].Text != "Add [1 2]?" || len(questions[0].Choices) != 2 || !strings.Contains(questions[0].Path, "p/sure/child-") {
		t.Fatalf("%+v, %v", questions, err)
	}
	if err := journal.Answer(t.Context(), b.Journal, "run", questions[0].Path, ask.Answer{Response: "no"}); err != nil {
		t.Fatal(err)
	}
	result, err := stone.Run(t.Context(), p, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := answer.From(result.DAG); err != nil || got.Response != "no" {
		t.Errorf("the answer is %+v, %v", got, err)
	}
}

// Who cancels a run cancels its children, those that run and those that wait.
func TestElsewhereIsCanceled(t *testing.T) {
	b := &besides{Journal: memdb.New(t)}
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan struct{}, 4)
	work := func(ctx context.Context) error { started <- struct{}{}; <-ctx.Done(); return ctx.Err() }
	go func() {
		for range 4 {
			<-started
		}
		cancel()
	}()
	if _, err := stone.Run(ctx, parent(b, work), stone.Config{RunID: "run", Recorder: journal.Keep(b.Journal, journal.Options{})}); err == nil {
		t.Fatal("the run was not canceled")
	}
	answer := dag.NewType[stone.Answer]("answer")
	p := stone.Seq("p", stone.Func0("make", chunk, func(context.Context) ([]int, error) { return nil, nil }),
		journal.Elsewhere("sure", stone.Ask("sure?", chunk, answer, func([]int) string { return "Sure?" }), budget.Limits{}, b))
	if _, err := stone.Run(t.Context(), p, stone.Config{RunID: "waits", Recorder: journal.Keep(b.Journal, journal.Options{})}); !errors.Is(err, kind.Waiting) {
		t.Fatal(err)
	}
	if err := journal.Cancel(t.Context(), b.Journal, "waits"); err != nil {
		t.Fatal(err)
	}
	for run, want := range map[string]int{"run": 4, "waits": 1} {
		children, err := journal.Children(t.Context(), b.Journal, run)
		if err != nil || len(children) != want {
			t.Fatalf("%s has %d children, %v", run, len(children), err)
		}
		for _, c := range children {
			if c.State != journal.Canceled {
				t.Errorf("a child of %s is %s", run, c.State)
			}
		}
	}
}
