package stone_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

// world is what the bodies of a random pipeline do to the world.
type world struct {
	mu    sync.Mutex
	done  map[string]int // how often the body or step at a path finished
	calls int
	crash int    // the call that cancels the run, 0 for none
	late  bool   // whether what it cancels from returns a result all the same
	stop  func() // cancels the run
}

// call is what a body does first.
func (w *world) call(ctx context.Context) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	if w.calls == w.crash {
		w.stop()
		if !w.late {
			return ctx.Err()
		}
	}
	return nil
}

func (w *world) ended(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done[stone.In(ctx).Path()]++
}

// run runs p in a world in which the call of that number is a crash.
func (w *world) run(p stone.Ashlar, recorder step.Recorder, crash int, late bool) (stone.Result, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	w.calls, w.crash, w.late, w.stop = 0, crash, late, cancel
	return stone.Run(ctx, p, stone.Config{RunID: "run", Recorder: recorder})
}

// forest draws random pipelines. What a leaf returns depends on what it reads.
type forest struct {
	*rapid.T
	*world
	names int
}

func (f *forest) name(form string) string {
	f.names++
	return fmt.Sprintf("%s/%d", form, f.names)
}

var everyNumber = dag.Maybe(dag.History(number))

func (f *forest) leaf() stone.Ashlar {
	fails := f.outOf(6)
	steps := rapid.IntRange(0, 2).Draw(f.T, "steps")
	name := f.name("leaf")
	again := f.outOf(5)
	body := func(ctx context.Context, d dag.DAG) (int, error) {
		if err := f.call(ctx); err != nil {
			return 0, err
		}
		all, err := dag.All(number).From(d)
		if err != nil {
			return 0, err
		}
		sum := len(all)
		for range steps {
			n, err := stone.Step(ctx, "step", nil, func(ctx context.Context, _ any) (int, error) {
				switch {
				case fails:
					return 0, errBoom
				case ctx.Err() != nil:
					return 0, ctx.Err()
				}
				f.ended(ctx)
				return len(stone.In(ctx).Path()), nil
			})
			if err != nil {
				return 0, fmt.Errorf("step: %w", err)
			}
			sum += n
		}
		if again && !strings.Contains(stone.In(ctx).Path(), "~") {
			return 0, errors.New("try again")
		}
		if fails {
			return 0, stone.Fail("own", "after %d", sum)
		}
		if !again {
			f.ended(ctx)
		}
		return sum, nil
	}
	opts := []stone.LeafOption{stone.Queries(everyNumber)}
	if again {
		opts = append(opts, stone.Retry{Attempts: 2})
	}
	return stone.New(name, number, body, opts...)
}

func (f *forest) outOf(n int) bool { return rapid.IntRange(1, n).Draw(f.T, "chance") == 1 }

func (f *forest) some(depth, most int) []stone.Ashlar {
	out := make([]stone.Ashlar, rapid.IntRange(1, most).Draw(f.T, "children"))
	for i := range out {
		out[i] = f.ashlar(depth - 1)
	}
	if f.outOf(3) {
		out = append(out, out[0]) // one ashlar in two places
	}
	return out
}

func (f *forest) ashlar(depth int) stone.Ashlar {
	if depth == 0 {
		return f.leaf()
	}
	numbersIn := func(d dag.DAG) int {
		all, _ := dag.All(number).From(d)
		return len(all)
	}
	switch rapid.IntRange(0, 6).Draw(f.T, "form") {
	case 0:
		return stone.Seq(f.name("seq"), f.some(depth, 3)...)
	case 1:
		enough := rapid.IntRange(1, 8).Draw(f.T, "enough")
		return stone.Loop(f.name("loop"), f.ashlar(depth-1), stone.Until(dag.ReaderFunc(func(d dag.DAG) (bool, error) { return numbersIn(d) >= enough, nil }, everyNumber), func(done bool) bool { return done }), 3)
	case 2:
		return stone.Seq(f.name("first"), f.leaf(), stone.Match(f.name("match"),
			stone.On(dag.ReaderFunc(func(d dag.DAG) (any, error) { return numbersIn(d) % 3, nil }, everyNumber), func(v any) any { return v }),
			stone.Case(0, f.ashlar(depth-1)), stone.Case(1, f.ashlar(depth-1)), stone.Case(2, f.leaf())))
	case 3:
		items := dag.ReaderFunc(func(d dag.DAG) ([]int, error) {
			return make([]int, numbersIn(d)%3+1), nil
		}, everyNumber)
		return stone.Seq(f.name("map-reduce"), stone.Map(f.name("map"), items, number, f.ashlar(depth-1)), stone.Reduce(f.leaf()))
	case 4:
		return stone.Seq(f.name("parallel-reduce"), stone.Parallel(f.name("parallel"), stone.Parts(f.some(depth, 3))...), stone.Reduce(f.leaf()))
	case 5:
		return stone.Rescue(f.name("rescue"), f.ashlar(depth-1), f.ashlar(depth-1))
	default:
		return f.scoped(depth)
	}
}

func (f *forest) scoped(depth int) stone.Ashlar {
	a, b := f.ashlar(depth-1), f.leaf()
	return stone.Scoped(f.name("scoped"), stone.Walk{}.InOrder(a, b), func(ctx context.Context, d dag.DAG) (dag.DAG, error) {
		for range 2 {
			if d = stone.In(ctx).RunChild(a, d); d.Failed() {
				return d, nil
			}
		}
		more, err := stone.Step(ctx, "more", nil, func(ctx context.Context, _ any) (bool, error) {
			if ctx.Err() != nil {
				return false, ctx.Err()
			}
			f.ended(ctx)
			return d.Len()%2 == 0, nil
		})
		if err == nil && more {
			d = stone.In(ctx).RunChild(b, d)
		}
		return d, err
	})
}

// ledger is a journal that checks how it is used.
type ledger struct {
	*sqlite.DB
	mu       sync.Mutex
	places   map[string]bool // in one run
	worked   int
	recorded map[step.Key]int
	problems []string
}

func (l *ledger) Do(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	place := key.Kind + " " + key.Path
	l.mu.Lock()
	if l.places[place] {
		l.problems = append(l.problems, "two visits of "+place)
	}
	l.places[place] = true
	l.mu.Unlock()
	return l.DB.Do(ctx, key, func(ctx context.Context) (step.Record, error) {
		rec, err := work(ctx)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.worked++
		if err == nil {
			l.recorded[key]++
		}
		return rec, err
	})
}

func newLedger(t memdb.T) *ledger {
	return &ledger{DB: memdb.New(t), places: map[string]bool{}, recorded: map[step.Key]int{}}
}

func (l *ledger) nextRun() { l.places, l.worked = map[string]bool{}, 0 }

func ids(d dag.DAG) []string {
	var out []string
	for n := range d.Nodes() {
		out = append(out, n.ID().String()[:12]+" "+n.Type()+" "+n.JSON())
	}
	return out
}

func outcome(r stone.Result, err error) string {
	return strings.Join(append(ids(r.DAG), fmt.Sprint(err)), "\n")
}

// A run that is stopped anywhere and run again with the same recorder has the same
// result as an undisturbed run, and does no recorded step twice.
func TestResume(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &forest{T: t, world: &world{done: map[string]int{}}}
		p := f.ashlar(3)
		if err := stone.Validate(p, stone.Given{}).Err(); err != nil {
			t.Fatal(err)
		}
		want := outcome(f.run(p, nil, 0, false))
		total := f.calls
		undisturbed := maps.Clone(f.done)

		whole := newLedger(t)
		if got := outcome(f.run(p, whole, 0, false)); got != want {
			t.Fatalf("recorded run differs (-want +got):\n%s", cmp.Diff(want, got))
		}
		whole.nextRun()
		if got := outcome(f.run(p, whole, 0, false)); got != want || whole.worked > 0 || f.calls > 0 {
			t.Fatalf("second run worked %d times (-want +got):\n%s", whole.worked, cmp.Diff(want, got))
		}

		crash := rapid.IntRange(1, max(1, total)).Draw(t, "crash")
		late := rapid.Bool().Draw(t, "late")
		l := newLedger(t)
		clear(f.done)
		_, _ = f.run(p, l, crash, late)
		l.nextRun()
		if got := outcome(f.run(p, l, 0, false)); got != want {
			t.Fatalf("run stopped at call %d of %d and resumed differs (-want +got):\n%s", crash, total, cmp.Diff(want, got))
		}
		for key, n := range l.recorded {
			if n != 1 {
				t.Errorf("%s was done %d times", key.Path, n)
			}
		}
		if diff := cmp.Diff(undisturbed, f.done); diff != "" {
			t.Errorf("bodies that finished, stopped at call %d of %d (-undisturbed +resumed):\n%s", crash, total, diff)
		}
		for _, problem := range append(whole.problems, l.problems...) {
			t.Error(problem)
		}
	})
}

// A changed record is rejected, and no Rescue handles that.
func TestTamperedRecord(t *testing.T) {
	p := stone.Rescue("r", stone.Seq("s", say("a", "x"), stone.Loop("l", stone.Func0("b", word, func(ctx context.Context) (string, error) {
		return stone.Step(ctx, "step", nil, func(context.Context, any) (string, error) { return "y", nil })
	}), stone.Until(word, func(string) bool { return true }), 2)), say("heal", "z"))
	for _, tt := range []struct {
		place  string
		change func(*step.Record)
	}{
		{"leaf r/s/a", func(r *step.Record) { r.Content = json.RawMessage(`"X"`) }},
		{"leaf r/s/a", func(r *step.Record) { r.Content = json.RawMessage(`nonsense`) }},
		{"leaf r/s/a", func(r *step.Record) { r.Type = "number" }},
		{"leaf r/s/a", func(r *step.Record) { r.Content, r.Failure = nil, &dag.FailureContent{Kind: "x"} }},
		{"decision r/s/l[0]", func(r *step.Record) { r.Content = json.RawMessage(`false`) }},
		{"step r/s/l[0]/b/step", func(r *step.Record) { r.Content = json.RawMessage(`"X"`) }},
	} {
		forger := forger{DB: memdb.New(t)}
		if _, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: &forger}); err != nil {
			t.Fatal(err)
		}
		forger.place, forger.change = tt.place, tt.change
		if strings.HasPrefix(tt.place, "step") {
			forger.forget = "leaf r/s/l[0]/b"
		}
		_, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: &forger})
		f := wantKind(t, err, kind.Replay)
		if place := strings.Fields(tt.place)[1]; f.Path != place || !strings.Contains(err.Error(), "is refused") {
			t.Errorf("%s: %v, want it to name the place", tt.place, err)
		}
	}
}

// forger changes one record when it is replayed, and forgets another.
type forger struct {
	*sqlite.DB
	place  string
	change func(*step.Record)
	forget string
}

func (f *forger) Do(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	place := key.Kind + " " + key.Path
	if place == f.forget {
		return work(ctx)
	}
	rec, err := f.DB.Do(ctx, key, work)
	if place == f.place {
		f.change(&rec)
	}
	return rec, err
}

// A recorder that fails stops the run, lanes and rescues notwithstanding.
func TestRecorderFails(t *testing.T) {
	broken := errors.New("disk full")
	fails := recorderFunc(func(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
		if key.Name != "b" {
			return work(ctx)
		}
		return step.Record{}, broken
	})
	p := stone.Rescue("r", stone.Seq("s", stone.Parallel("p", say("a", "x"), say("b", "y"), stone.Lanes(1)), last), say("heal", "z"))
	result, err := stone.Run(t.Context(), p, stone.Config{Recorder: fails})
	f := wantKind(t, err, kind.Recorder)
	if !errors.Is(err, broken) || f.Path != "r/s/p[1]/b" {
		t.Errorf("Run returned %v, want the error of the recorder and the place", err)
	}
	if words, _ := result.DAG.All("word"); len(words) != 1 {
		t.Errorf("%q, want what was done before and nothing after", show(result.DAG))
	}
}

func TestRecorderPanics(t *testing.T) {
	panics := recorderFunc(func(context.Context, step.Key, func(context.Context) (step.Record, error)) (step.Record, error) {
		panic(errBoom)
	})
	_, err := stone.Run(t.Context(), say("a", "x"), stone.Config{Recorder: panics})
	wantKind(t, err, kind.Recorder)
	if !errors.Is(err, errBoom) {
		t.Errorf("Run returned %v, want %v in it", err, errBoom)
	}
}

type recorderFunc func(context.Context, step.Key, func(context.Context) (step.Record, error)) (step.Record, error)

func (f recorderFunc) Do(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	return f(ctx, key, work)
}

// A recorder that does the work of a step again gets the new result, with nothing left of the first.
func TestRecorderRepeats(t *testing.T) {
	type result struct {
		N    int
		Note string `json:",omitempty"`
		List []int  `json:",omitempty"`
	}
	r := recorderFunc(func(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
		if key.Kind == "step" {
			if _, err := work(ctx); err != nil {
				t.Error(err)
			}
		}
		return work(ctx)
	})
	results := []result{{1, "first", []int{1}}, {N: 2}}
	p := stone.Func0("a", word, func(ctx context.Context) (string, error) {
		got, err := stone.Step(ctx, "s", nil, func(context.Context, any) (next result, _ error) {
			next, results = results[0], results[1:]
			return next, nil
		})
		if want := (result{N: 2}); !reflect.DeepEqual(got, want) {
			t.Errorf("the step returned %+v, want %+v", got, want)
		}
		return "x", err
	})
	if _, err := stone.Run(t.Context(), p, stone.Config{Recorder: r}); err != nil {
		t.Fatal(err)
	}
}

// The context of Do is alive when the work is done, its values and its end reach
// the body, and events find the step.
func TestRecorderContext(t *testing.T) {
	type contextKey struct{}
	r := recorderFunc(func(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
		ctx, cancel := context.WithCancelCause(context.WithValue(ctx, contextKey{}, "v"))
		defer cancel(nil)
		rec, err := work(ctx)
		if ctx.Err() != nil {
			t.Errorf("%s: the context of the recorder ended with the work: %v", key.Path, ctx.Err())
		}
		if stone.In(ctx).Path() != key.Path || stone.In(ctx).RunID() != key.RunID {
			t.Errorf("the context speaks of %q %q, want %q %q", stone.In(ctx).RunID(), stone.In(ctx).Path(), key.RunID, key.Path)
		}
		return rec, err
	})
	p := stone.Func0("a", word, func(ctx context.Context) (string, error) {
		_ = ctx.Done()
		if ctx.Value(contextKey{}) != "v" {
			t.Error("a value of the recorder does not reach the body")
		}
		return stone.Step(ctx, "s", nil, func(ctx context.Context, _ any) (string, error) {
			_ = ctx.Done()
			return "x", ctx.Err()
		})
	})
	if _, err := stone.Run(t.Context(), p, stone.Config{Recorder: r}); err != nil {
		t.Fatal(err)
	}
}

// A recorder that loses its lease cancels the work.
func TestLeaseLost(t *testing.T) {
	lease := errors.New("lease lost")
	r := recorderFunc(func(ctx context.Context, _ step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
		ctx, cancel := context.WithCancelCause(ctx)
		time.AfterFunc(time.Millisecond, func() { cancel(lease) })
		if rec, err := work(ctx); err != nil || rec.Failure.Kind != kind.Canceled {
			t.Errorf("work = %+v, %v; want a cancellation as the record", rec, err)
		}
		return step.Record{}, lease
	})
	_, err := stone.Run(t.Context(), stone.Func0("a", word, wait), stone.Config{Recorder: r})
	wantKind(t, err, kind.Recorder)
	if !errors.Is(err, lease) {
		t.Errorf("Run returned %v, want %v", err, lease)
	}
}

// strict is a recorder that refuses to look when its context is done, as a
// database would.
type strict struct {
	*sqlite.DB
	late atomic.Int32 // how often it refused
}

func (s *strict) Do(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	if err := ctx.Err(); err != nil {
		s.late.Add(1)
		return step.Record{}, err
	}
	return s.DB.Do(ctx, key, work)
}

// A context that ends inside of a run is no fault of the recorder: the run continues
// around it.
func TestContextEndsInsideOfRun(t *testing.T) {
	child := say("child", "x")
	late := stone.Scoped("late", stone.Walk{}.InOrder(child), func(ctx context.Context, d dag.DAG) (dag.DAG, error) {
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return stone.In(ctx).RunChild(child, d), nil
	})
	result, err := stone.Run(t.Context(), stone.Rescue("r", late, say("heal", "healed")), stone.Config{Recorder: &strict{DB: memdb.New(t)}})
	if err != nil || result.Node.Text() != "healed" {
		t.Errorf("Run = %v, %v; want that it was rescued", result.Node, err)
	}

	started := make(chan struct{})
	slow := stone.New("slow", number, func(ctx context.Context, d dag.DAG) (int, error) {
		close(started)
		<-ctx.Done()
		return 0, nil // paid for, and then the next step is overtaken
	}, stone.Queries(list))
	after := stone.Func("after", number, list, func(context.Context, int) ([]int, error) { return nil, nil }, stone.Reusable())
	fails := stone.New("fails", word, func(context.Context, dag.DAG) (string, error) { <-started; return "", errBoom }, stone.Queries(list))
	first := stone.Func0("first", list, func(context.Context) ([]int, error) { return []int{1}, nil })
	flow := stone.Flow("f", first, fails, stone.Seq("behind", slow, after))
	recorder := strict{DB: memdb.New(t)}
	result, err = stone.Run(t.Context(), stone.Rescue("r", flow, say("heal", "healed")), stone.Config{Recorder: &recorder})
	if err != nil || result.Node.Text() != "healed" || recorder.late.Load() > 0 {
		t.Errorf("Run of a flow = %v, %v; want that it was rescued, and that no step was started behind the one that failed", result.Node, err)
	}
}
