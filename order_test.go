package stone_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

// elsewhere is an executor whose leaves are performed by a function.
type elsewhere struct {
	crowd
	perform func(context.Context, step.Order) (step.Record, error)
}

func (e elsewhere) Leaf(t step.Task, d dag.DAG) dag.DAG { return t.DoBy(d, e.perform) }

// posted performs orders of p as if they had travelled.
func posted(p stone.Ashlar, cfg stone.Config) elsewhere {
	return elsewhere{crowd{2}, func(ctx context.Context, o step.Order) (step.Record, error) {
		var there step.Order
		raw, err := json.Marshal(o)
		if err == nil {
			err = json.Unmarshal(raw, &there)
		}
		if err != nil {
			return step.Record{}, err
		}
		return stone.Perform(ctx, p, there, cfg)
	}}
}

// A pipeline runs with its leaves in another process, which has the same pipeline and
// receives orders.
func ExampleTask_DoBy() {
	word := dag.NewType[string]("word")
	length := dag.NewType[int]("length")
	pipeline := func() stone.Ashlar {
		return stone.Seq("measure",
			stone.Func0("say", word, func(context.Context) (string, error) { return "stone", nil }),
			stone.Func("count", word, length, func(_ context.Context, w string) (int, error) { return len(w), nil }),
		)
	}
	// In the other process: an order comes in as JSON, a record goes out as JSON.
	worker := func(order []byte) ([]byte, error) {
		var o step.Order
		if err := json.Unmarshal(order, &o); err != nil {
			return nil, err
		}
		fmt.Println("performs", o.Key.Path)
		rec, err := stone.Perform(context.Background(), pipeline(), o, stone.Config{})
		if err != nil {
			return nil, err
		}
		return json.Marshal(rec)
	}
	// In the process of the run:
	pool := elsewhere{perform: func(_ context.Context, o step.Order) (rec step.Record, err error) {
		order, err := json.Marshal(o)
		if err != nil {
			return rec, err
		}
		answer, err := worker(order)
		if err != nil {
			return rec, err
		}
		return rec, json.Unmarshal(answer, &rec)
	}}
	n, err := stone.Produce(context.Background(), pipeline(), length, stone.Config{Executor: pool})
	fmt.Println(n, err)
	// Output:
	// performs measure/say
	// performs measure/count
	// 5 <nil>
}

// A leaf that was performed elsewhere is recorded here like any other, and has its
// failure here.
func TestDoBy(t *testing.T) {
	var memory journal.Memory
	done := 0
	p := stone.Rescue("r", stone.Seq("s",
		stone.Func0("a", word, func(ctx context.Context) (string, error) {
			done++
			return stone.Step(ctx, "step", 0, func(ctx context.Context, _ int) (string, error) { return stone.In(ctx).Path(), nil })
		}),
		stone.Func0("b", word, func(context.Context) (string, error) { done++; return "", stone.Fail("own", "no") })),
		stone.New("heal", word, func(_ context.Context, d dag.DAG) (string, error) {
			done++
			f, err := dag.Failure.From(d)
			return string(f.Kind) + " " + f.Reason, err
		}, stone.Queries(dag.Failure)))
	want, err := stone.Run(t.Context(), p, stone.Config{RunID: "r"})
	if err != nil {
		t.Fatal(err)
	}
	done = 0
	for range 2 {
		got, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: &memory, Executor: posted(p, stone.Config{})})
		if err != nil || got.Node.ID() != want.Node.ID() || got.Node.Text() != "own no" || done != 3 {
			t.Errorf("Run = %v, %v after %d leaves; want %v after 3", got.Node, err, done, want.Node)
		}
	}
}

// An error of the transport stops the run, and is not recorded as a result.
func TestDoByFails(t *testing.T) {
	p := stone.Rescue("r", say("a", "x", stone.Version("1")), say("heal", "y"))
	other := stone.Rescue("r", say("a", "x", stone.Version("2")), say("heal", "y"))
	for name, tt := range map[string]struct {
		perform func(context.Context, step.Order) (step.Record, error)
		want    string
	}{
		"lost":            {func(context.Context, step.Order) (step.Record, error) { return step.Record{}, errBoom }, "boom"},
		"another version": {posted(other, stone.Config{}).perform, "another version"},
		"another program": {posted(say("q", "x"), stone.Config{}).perform, `nothing at "r/a"`},
		"tampered": {func(ctx context.Context, o step.Order) (step.Record, error) {
			rec, err := stone.Perform(ctx, p, o, stone.Config{})
			rec.Content = json.RawMessage(`"z"`)
			return rec, err
		}, "changed in transit"},
	} {
		var memory journal.Memory
		_, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: &memory, Executor: elsewhere{crowd{1}, tt.perform}})
		if f := wantKind(t, err, kind.Executor); !strings.Contains(f.Reason, tt.want) || f.Path != "r/a" {
			t.Errorf("%s: %v, want %q in it", name, err, tt.want)
		}
		res, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: &memory})
		if err != nil || res.Node.Text() != "x" {
			t.Errorf("%s: resumed it gave %v, %v", name, res.Node, err)
		}
	}
}

// A question that waits elsewhere makes the run wait.
func TestDoByWaits(t *testing.T) {
	p := stone.Func0("a", word, func(context.Context) (string, error) { return "", fmt.Errorf("later: %w", kind.Waiting) })
	var memory journal.Memory
	_, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: &memory, Executor: posted(p, stone.Config{})})
	if steps, _ := memory.Steps(t.Context(), "r"); !errors.Is(err, kind.Waiting) || len(steps) != 1 || steps[0].Recorded {
		t.Errorf("Run: %v, steps %+v; want that it waits, unrecorded", err, steps)
	}
}

// A leaf that needs the process of the run is done there, even if its body handles
// ErrLocal.
func TestPerformIsLocal(t *testing.T) {
	for name, body := range map[string]func(context.Context, dag.DAG) error{
		"dynamic": func(ctx context.Context, d dag.DAG) error {
			return stone.In(ctx).RunDynamic(say("x", "y"), d, nil).Cause()
		},
		"await": func(ctx context.Context, d dag.DAG) error { _, err := stone.In(ctx).Await(d); return err },
		"keep": func(ctx context.Context, d dag.DAG) error {
			base, err := dag.Origin(d)
			if err == nil {
				_, err = stone.In(ctx).Keep(base)
			}
			return err
		},
	} {
		var errs []error
		p := stone.New("a", word, func(ctx context.Context, d dag.DAG) (string, error) {
			errs = append(errs, body(ctx, d))
			return fmt.Sprint(len(errs)), nil
		})
		res, err := stone.Run(t.Context(), p, stone.Config{Executor: posted(p, stone.Config{})})
		if err != nil || res.Node.Text() != "2" || !errors.Is(errs[0], step.ErrLocal) || errs[1] != nil {
			t.Errorf("%s: %v, %v; the body met %v, want ErrLocal and then nothing", name, res.Node, err, errs)
		}
	}
}

// waiting is an executor through which flows wait, and whose lanes have a context.
type waiting struct {
	crowd
	waits chan struct{}
}

type laneKey struct{}

func (w waiting) Wait(ctx context.Context, ready <-chan struct{}) {
	w.waits <- struct{}{}
	select {
	case <-ready:
	case <-ctx.Done():
	}
}

func (w waiting) Fan(t step.Task, n int, lane func(context.Context, int)) {
	w.crowd.Fan(t, n, func(ctx context.Context, i int) { lane(context.WithValue(ctx, laneKey{}, i), i) })
}

func TestExecutorWaitsAndHandsContexts(t *testing.T) {
	w := waiting{crowd{3}, make(chan struct{}, 100)}
	release := make(chan struct{})
	slow := stone.Func0("slow", word, func(ctx context.Context) (string, error) {
		<-release
		return fmt.Sprint(ctx.Value(laneKey{}) != nil), nil
	})
	aside := stone.Func0("aside", list, func(context.Context) ([]int, error) {
		<-w.waits // of the step that needs the slow one
		close(release)
		return nil, nil
	})
	needs := stone.Func("needs", word, number, func(ctx context.Context, s string) (int, error) { return len(s), nil })
	res, err := stone.Run(t.Context(), stone.Flow("f", slow, aside, needs), stone.Config{Executor: w})
	if got, _ := word.From(res.DAG); err != nil || got != "true" {
		t.Errorf("Run: %v; a lane has its own context: %s", err, got)
	}
}
