package stone_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/step"
)

// dynamic makes a leaf that runs a plan, and writes how many nodes it left.
func dynamic(name string, plan func() stone.Ashlar, grant []string, opts ...stone.LeafOption) stone.Ashlar {
	return stone.New(name, number, func(ctx context.Context, d dag.DAG) (int, error) {
		out := stone.In(ctx).RunDynamic(plan(), d, grant)
		if out.Failed() {
			return 0, out.Cause()
		}
		return out.Len() - d.Len(), nil
	}, opts...)
}

func effectful(name string, effects ...string) stone.Ashlar {
	return stone.Func0(name, word, func(context.Context) (string, error) { return name, nil }, stone.Effects(effects...))
}

// The grant of a plan never exceeds the grant around it.
func TestRunDynamicGrant(t *testing.T) {
	for _, tt := range []struct {
		name              string
		run, outer, inner []string
		ok                bool
	}{
		{"no limits", nil, nil, nil, true},
		{"granted by the run", []string{"net", "fs"}, nil, nil, true},
		{"not granted by the run", []string{"fs"}, nil, nil, false},
		{"nor by a plan that the run does not allow it", []string{"fs"}, []string{"net"}, []string{"net"}, false},
		{"granted by the plan around", nil, []string{"net"}, nil, true},
		{"not granted by the plan around", nil, []string{"fs"}, []string{"net"}, false},
		{"not granted by its own", []string{"net"}, []string{"net"}, []string{}, false},
		{"granted by all", []string{"net", "x"}, []string{"y", "net"}, []string{"net"}, true},
		{"no effect is left", []string{"x"}, []string{"y"}, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inner := dynamic("inner", func() stone.Ashlar { return effectful("e", "net") }, tt.inner)
			p := dynamic("outer", func() stone.Ashlar { return inner }, tt.outer)
			_, err := stone.Run(t.Context(), p, stone.Config{Grant: tt.run})
			if tt.ok {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			f := wantKind(t, err, kind.Invalid)
			var invalid *stone.Invalid
			if !errors.As(err, &invalid) || invalid.Findings[0].Type != "effect-not-granted" || f.Path != "outer/inner/e" {
				t.Errorf("Run returned %v, want the finding at its place", err)
			}
		})
	}
}

// No step of an invalid plan runs; a plan may read earlier nodes.
func TestRunDynamicValidates(t *testing.T) {
	ran := false
	touch := stone.Func0("touch", list, func(context.Context) ([]int, error) { ran = true; return nil, nil })
	reads := stone.Func("reads", word, number, func(context.Context, string) (int, error) { return 1, nil })
	plan := func() stone.Ashlar { return stone.Seq("plan", touch, reads) }
	_, err := stone.Run(t.Context(), dynamic("d", plan, nil), stone.Config{})
	if wantKind(t, err, kind.Invalid); ran || !strings.Contains(err.Error(), "missing-producer") {
		t.Errorf("Run returned %v, ran %t; want a refusal before anything runs", err, ran)
	}
	if _, err := stone.Run(t.Context(), stone.Seq("s", say("a", "x"), dynamic("d", plan, nil)), stone.Config{}); err != nil || !ran {
		t.Errorf("Run returned %v; want the plan to read what its leaf has not declared", err)
	}
	rescued, err := stone.Run(t.Context(), stone.Rescue("r", dynamic("d", func() stone.Ashlar { return stone.Ashlar{} }, nil), say("heal", "h")), stone.Config{})
	if err != nil || len(show(rescued.DAG)) != 2 {
		t.Errorf("%q, %v; want the refusal rescued", show(rescued.DAG), err)
	}
	if out := stone.In(t.Context()).RunDynamic(say("a", "x"), dag.DAG{}, nil); !out.Failed() {
		t.Error("RunDynamic does not fail outside a run")
	}
	if _, err := stone.In(t.Context()).Keep(dag.DAG{}); err == nil {
		t.Error("Keep does not fail outside a run")
	}
	if _, err := stone.In(t.Context()).Await(dag.DAG{}); err == nil {
		t.Error("Await does not fail outside a run")
	}
}

func TestRunDynamicDeep(t *testing.T) {
	const depth = 100
	var nest func(n int) stone.Ashlar
	nest = func(n int) stone.Ashlar {
		if n == 0 {
			return effectful("bottom", "net")
		}
		return dynamic("d", func() stone.Ashlar { return nest(n - 1) }, []string{"net"})
	}
	memory := memdb.New(t)
	var paths []string
	for range 2 {
		l := recorderFunc(func(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
			return memory.Do(ctx, key, func(ctx context.Context) (step.Record, error) {
				paths = append(paths, key.Path)
				return work(ctx)
			})
		})
		if _, err := stone.Run(t.Context(), nest(depth), stone.Config{RunID: "r", Recorder: l, Grant: []string{"net"}}); err != nil {
			t.Fatal(err)
		}
	}
	if len(paths) != depth+1 || paths[depth] != strings.Repeat("d/", depth)+"bottom" {
		t.Errorf("%d places, the last %q; want %d, each once", len(paths), paths[len(paths)-1], depth+1)
	}
}

// An ashlar may run itself: the spans of its visits are its own.
func TestRunDynamicItself(t *testing.T) {
	var self stone.Ashlar
	spans := map[string]bool{}
	self = stone.New("self", number, func(ctx context.Context, d dag.DAG) (int, error) {
		if strings.Count(stone.In(ctx).Path(), "/") == 3 {
			return 1, nil
		}
		out := stone.In(ctx).RunDynamic(self, d, nil)
		if _, err := stone.In(ctx).Keep(d, out); err == nil {
			return 0, errors.New("kept lanes of an empty DAG")
		}
		return out.Len(), nil
	})
	watch := event.Func(slog.LevelDebug, func(e event.Event) { spans[e.Span] = true })
	result, err := stone.Run(t.Context(), self, stone.Config{Watch: watch})
	if err != nil || len(spans) != 4 {
		t.Errorf("%v with %d spans, want 4", err, len(spans))
	}
	wantShow(t, result.DAG, "number 1")
}

// Plans with different names run concurrently, plans with one name do not; all are
// cancelled with the run.
func TestRunDynamicConcurrently(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := stone.New("d", number, func(ctx context.Context, d dag.DAG) (int, error) {
			var wait sync.WaitGroup
			outs := make([]dag.DAG, 10)
			for i := range outs {
				wait.Go(func() { outs[i] = stone.In(ctx).RunDynamic(stone.Seq(fmt.Sprint("p", i), toil("a", "", 1)), d, nil) })
			}
			wait.Wait()
			var errs []error
			for _, out := range outs {
				errs = append(errs, out.Cause())
			}
			return 1, errors.Join(errs...)
		})
		start := time.Now()
		if _, err := stone.Run(t.Context(), p, stone.Config{}); err != nil || time.Since(start) != time.Second {
			t.Errorf("%v after %v, want all of them done in a second", err, time.Since(start))
		}
		twice := stone.New("d", number, func(ctx context.Context, d dag.DAG) (int, error) {
			done := make(chan dag.DAG)
			go func() { done <- stone.In(ctx).RunDynamic(toil("a", "", 1), d, nil) }()
			synctest.Wait()
			second := stone.In(ctx).RunDynamic(toil("a", "", 1), d, nil)
			<-done
			return 1, second.Cause()
		})
		_, err := stone.Run(t.Context(), twice, stone.Config{})
		wantKind(t, err, kind.Error)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err = stone.Run(ctx, dynamic("d", func() stone.Ashlar { return toil("a", "", 60) }, nil), stone.Config{})
		wantKind(t, err, kind.Timeout)
	})
}

// keeper runs two plans, one of which fails, and keeps what they leave in lanes.
func keeper(calls *int) stone.Ashlar {
	return stone.Leaf("keeper", number, func(ctx context.Context, d dag.DAG) (*dag.Node, error) {
		*calls++
		d, err := dag.Origin(d.Within(nil))
		if err != nil {
			return nil, err
		}
		var lanes []dag.DAG
		fan := stone.Seq("fan", numbers(3), stone.Map("m", list, number, say("a", "x")), last)
		for i, plan := range []stone.Ashlar{fan, stone.Seq("bad", say("b", "y"), boom("c"))} {
			lane, err := dag.Lane(d, i)
			if err != nil {
				return nil, err
			}
			if lane, err = stone.In(ctx).RunDynamic(plan, lane, nil).RecordFailure(); err != nil {
				return nil, err
			}
			lanes = append(lanes, lane)
		}
		on, err := stone.In(ctx).Keep(d, lanes...)
		if err != nil {
			return nil, err
		}
		words, err := dag.All(word).From(on.Within(nil))
		if err != nil {
			return nil, err
		}
		return dag.NewNode(dag.Spec{Type: "number", Content: len(words), Parents: on.Next()})
	})
}

func TestKeepResumes(t *testing.T) {
	for _, first := range [][]stone.Ashlar{{say("first", "w")}, nil} {
		calls := 0
		p := stone.Seq("s", append(first, keeper(&calls), last)...)
		want, err := stone.Run(t.Context(), p, stone.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := want.DAG.Nearest("list"); err == nil {
			t.Error("what is kept is found by Nearest")
		}
		if n, err := number.From(want.DAG); err != nil || n < 5 {
			t.Errorf("the keeper wrote %d, %v; want the words of its lanes counted", n, err)
		}
		memory := memdb.New(t)
		calls = 0
		for range 2 {
			got, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: memory})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(ids(want.DAG), ids(got.DAG)); diff != "" {
				t.Errorf("recorded or replayed it leaves something else (-want +got):\n%s", diff)
			}
			if got.DAG.Latest().Time().IsZero() {
				t.Error("a node has no time")
			}
			for n := range got.DAG.Nodes() {
				if n.Type() == "failure" && n.Meta()["path"] == "" {
					t.Error("the meta of a kept node is lost")
				}
			}
		}
		if calls != 1 {
			t.Errorf("the keeper ran %d times, want once", calls)
		}
	}
}

func TestKeptIsTampered(t *testing.T) {
	calls := 0
	p := stone.Seq("s", say("a", "x"), keeper(&calls))
	for _, kept := range []string{"", `{}`, `nonsense`, `{"nodes":[{"type":"word","content":"z"}]}`} {
		forger := forger{DB: memdb.New(t)}
		if _, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: &forger}); err != nil {
			t.Fatal(err)
		}
		forger.place, forger.change = "leaf s/keeper", func(r *step.Record) { r.Kept = json.RawMessage(kept) }
		_, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: &forger})
		wantKind(t, err, kind.Replay)
	}
}

func TestKeepRefuses(t *testing.T) {
	for _, tt := range []struct {
		name string
		body func(context.Context, dag.DAG) error
	}{
		{"lanes of another DAG", func(ctx context.Context, d dag.DAG) error {
			other, _ := word.Append(d.Within(nil), "other")
			lane, _ := word.Append(other, "z")
			_, err := stone.In(ctx).Keep(other, lane)
			return err
		}},
		{"lanes that do not extend it", func(ctx context.Context, d dag.DAG) error {
			lane, _ := word.Append(dag.DAG{}, "z")
			_, err := stone.In(ctx).Keep(d, lane)
			return err
		}},
		{"twice", func(ctx context.Context, d dag.DAG) error {
			lane, _ := word.Append(d.Within(nil), "z")
			_, err := stone.In(ctx).Keep(d, lane)
			if err == nil {
				_, err = stone.In(ctx).Keep(d, lane)
			}
			return err
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := stone.Seq("s", say("a", "x"), stone.New("k", number, func(ctx context.Context, d dag.DAG) (int, error) { return 1, tt.body(ctx, d) }))
			result, err := stone.Run(t.Context(), p, stone.Config{})
			wantKind(t, err, kind.BadContent)
			if words, _ := result.DAG.All("word"); len(words) != 1 {
				t.Errorf("%q is left, want nothing kept", show(result.DAG))
			}
		})
	}
}

// detailed is an error that says more.
type detailed struct{}

func (detailed) Error() string { return "refused" }
func (detailed) FailureMeta() map[string]string {
	return map[string]string{"tried": "a, b", "path": "elsewhere", "stack": "none", "odd": "\xff"}
}

func TestFailureMeta(t *testing.T) {
	p := stone.Seq("s", stone.Rescue("r", stone.Func0("a", word, func(context.Context) (string, error) {
		return "", fmt.Errorf("call: %w", detailed{})
	}), say("heal", "h")), stone.Func0("b", word, func(context.Context) (string, error) {
		return "", detailed{}
	}))
	memory := memdb.New(t)
	for range 2 {
		result, err := stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: memory})
		wantKind(t, err, kind.Error)
		nodes, _ := result.DAG.All("failure")
		for i, path := range []string{"s/r/a", "s/b"} {
			want := map[string]string{"path": path, "tried": "a, b", "odd": "\uFFFD"}
			if diff := cmp.Diff(want, nodes[i].Meta()); diff != "" {
				t.Errorf("meta (-want +got):\n%s", diff)
			}
		}
	}
}
