package stone_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/kind"
)

func letter(name string) dag.Type[string] { return dag.NewType[string](name) }

// toil makes a leaf that takes some seconds, reads the nearest nodes of the types
// in from, a letter each, and writes what it read and its own letter.
func toil(to, from string, seconds int) stone.Ashlar {
	var qs []dag.Querier
	for _, r := range from {
		qs = append(qs, letter(string(r)))
	}
	return stone.New(to, letter(to), func(ctx context.Context, d dag.DAG) (string, error) {
		select {
		case <-time.After(time.Duration(seconds) * time.Second):
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		all := ""
		for _, r := range from {
			s, err := letter(string(r)).From(d)
			if err != nil {
				return "", err
			}
			all += s
		}
		return all + to, nil
	}, stone.Queries(qs...))
}

// fails makes a leaf that fails after some seconds.
func fails(name, from string, seconds int, err error) stone.Ashlar {
	var qs []dag.Querier
	for _, r := range from {
		qs = append(qs, letter(string(r)))
	}
	return stone.New(name, letter(name), func(ctx context.Context, _ dag.DAG) (string, error) {
		time.Sleep(time.Duration(seconds) * time.Second)
		return "", err
	}, stone.Queries(qs...))
}

func TestFlowTakesNoLonger(t *testing.T) {
	everything := stone.New("all", letter("all"), func(_ context.Context, d dag.DAG) (string, error) {
		return fmt.Sprint(d.Len()), nil
	}, stone.Queries(dag.Everything))
	for _, tt := range []struct {
		name    string
		steps   []stone.Ashlar
		seconds int
		want    []string
	}{
		{"apart", []stone.Ashlar{toil("a", "", 3), toil("b", "", 2), toil("c", "", 1)}, 3, []string{`a "a"`, `b "b"`, `c "c"`}},
		{"two lines", []stone.Ashlar{toil("a", "", 1), toil("b", "", 3), toil("c", "a", 2), toil("d", "b", 1)}, 4, []string{`a "a"`, `b "b"`, `c "ac"`, `d "bd"`}},
		{"a diamond", []stone.Ashlar{toil("a", "", 1), toil("b", "a", 2), toil("c", "a", 3), toil("d", "bc", 1)}, 5, []string{`a "a"`, `b "ab"`, `c "ac"`, `d "abacd"`}},
		{"everything", []stone.Ashlar{toil("a", "", 1), toil("b", "", 2), everything, toil("c", "a", 1)}, 2, []string{`a "a"`, `b "b"`, `all "2"`, `c "ac"`}},
		{"two writers", []stone.Ashlar{toil("a", "", 3), stone.Seq("again", toil("a", "", 1)), toil("b", "a", 1)}, 4, []string{`a "a"`, `a "a"`, `b "ab"`}},
		{"a sequence", []stone.Ashlar{toil("a", "", 1), toil("b", "a", 1), toil("c", "ab", 1)}, 3, []string{`a "a"`, `b "ab"`, `c "aabc"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				result, err := stone.Run(t.Context(), stone.Flow("f", tt.steps...), stone.Config{})
				if took := time.Since(start); err != nil || took != time.Duration(tt.seconds)*time.Second {
					t.Errorf("took %v, %v; want %d s", took, err, tt.seconds)
				}
				wantShow(t, result.DAG, tt.want...)
			})
		})
	}
}

// The first failed step in source order is the failure; earlier steps finish, later
// steps are cancelled and their nodes are dropped.
func TestFlowFails(t *testing.T) {
	own := stone.Fail("own", "b")
	for _, tt := range []struct {
		name    string
		steps   []stone.Ashlar
		seconds int
		path    string
		want    []string
	}{
		{"an earlier step finishes", []stone.Ashlar{toil("a", "", 9), fails("b", "", 1, own), toil("c", "a", 1)}, 9, "f/b", []string{`a "a"`}},
		{"a later step is cancelled", []stone.Ashlar{toil("a", "", 2), fails("b", "a", 1, own), toil("c", "", 60)}, 3, "f/b", []string{`a "a"`}},
		{"a later failure does not count", []stone.Ashlar{toil("a", "", 1), fails("b", "", 5, own), fails("c", "", 1, errBoom)}, 5, "f/b", []string{`a "a"`}},
		{"a dependent step never starts", []stone.Ashlar{toil("a", "", 1), fails("b", "", 2, own), toil("c", "b", 60), toil("d", "c", 60)}, 2, "f/b", []string{`a "a"`}},
		{"its nodes stay", []stone.Ashlar{toil("a", "", 3), stone.Seq("s", toil("d", "", 1), fails("b", "", 1, own)), toil("c", "", 60)}, 3, "f/s/b", []string{`a "a"`, `d "d"`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				memory := memdb.New(t)
				for range 2 { // the second time out of the memory
					result, err := stone.Run(t.Context(), stone.Flow("f", tt.steps...), stone.Config{RunID: "r", Recorder: memory})
					if f := wantKind(t, err, "own"); f.Path != tt.path {
						t.Errorf("failed at %s, want %s", f.Path, tt.path)
					}
					wantShow(t, result.DAG, append(slices.Clip(tt.want), `failure {"kind":"own","reason":"b"}`)...)
					if took := time.Since(start); took != time.Duration(tt.seconds)*time.Second {
						t.Errorf("took %v, want %d s", took, tt.seconds)
					}
				}
			})
		})
	}
}

// While one step waits for an answer, independent steps run; steps that read it, or
// await it, wait too.
func TestFlowWaits(t *testing.T) {
	answered := false
	ask := stone.Func0("q", letter("q"), func(context.Context) (string, error) {
		if !answered {
			return "", fmt.Errorf("no one there: %w", kind.Waiting)
		}
		return "q", nil
	})
	runs := map[string]int{}
	counted := func(to string, body func(context.Context, dag.DAG) (string, error), qs ...dag.Querier) stone.Ashlar {
		return stone.New(to, letter(to), func(ctx context.Context, d dag.DAG) (string, error) {
			s, err := body(ctx, d)
			if err == nil {
				runs[to]++
			}
			return s, err
		}, stone.Queries(qs...))
	}
	p := stone.Flow("f",
		toil("a", "", 3),
		ask,
		counted("b", func(context.Context, dag.DAG) (string, error) { return "b", nil }),
		counted("c", func(_ context.Context, d dag.DAG) (string, error) { return letter("q").From(d) }, letter("q")),
		counted("e", func(ctx context.Context, d dag.DAG) (string, error) {
			d, err := stone.In(ctx).Await(d)
			return fmt.Sprint(d.Len()), err
		}),
	)
	synctest.Test(t, func(t *testing.T) {
		memory := memdb.New(t)
		cfg := stone.Config{RunID: "r", Recorder: memory}
		result, err := stone.Run(t.Context(), p, cfg)
		if !errors.Is(err, kind.Waiting) || runs["b"] != 1 || runs["c"] != 0 || runs["e"] != 0 {
			t.Fatalf("Run returned %v after %v; want b done, and the rest waiting", err, runs)
		}
		if words := show(result.DAG); len(words) != 2 || words[0] != `a "a"` {
			t.Errorf("nodes %q, want the nodes before the question", words)
		}
		answered = true
		result, err = stone.Run(t.Context(), p, cfg)
		if err != nil || runs["b"] != 1 || runs["c"] != 1 || runs["e"] != 1 {
			t.Fatalf("Run returned %v after %v; want everything done once", err, runs)
		}
		wantShow(t, result.DAG, `a "a"`, `q "q"`, `b "b"`, `c "q"`, `e "4"`)
	})
}

func TestFlowIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(2*time.Second, cancel)
		p := stone.Flow("f", toil("a", "", 1), toil("b", "", 60), toil("c", "b", 1), last, toil("d", "a", 60),
			stone.New("e", letter("e"), func(ctx context.Context, d dag.DAG) (string, error) {
				_, err := stone.In(ctx).Await(d)
				return "", err
			}))
		start := time.Now()
		result, err := stone.Run(ctx, p, stone.Config{})
		wantKind(t, err, kind.Canceled)
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("took %v, want 2 s", took)
		}
		wantShow(t, result.DAG, `a "a"`, `failure {"kind":"canceled","reason":"context canceled"}`)
	})
}

// A step that ends its goroutine fails like one that panics.
func TestFlowGoexit(t *testing.T) {
	exit := stone.Func0("x", letter("x"), func(context.Context) (string, error) {
		time.Sleep(time.Millisecond) // so that the caller has a step of its own by then
		runtime.Goexit()
		return "", nil
	})
	first := stone.Func0("a", letter("a"), func(context.Context) (string, error) {
		time.Sleep(50 * time.Millisecond)
		return "a", nil
	})
	result, err := stone.Run(t.Context(), stone.Flow("f", first, exit, toil("c", "x", 1), toil("d", "", 9)), stone.Config{})
	if f := wantKind(t, err, kind.Panic); f.Path != "f/x" {
		t.Errorf("failed at %s, want f/x", f.Path)
	}
	wantShow(t, result.DAG, `a "a"`, `failure {"kind":"panic","reason":"the step called runtime.Goexit"}`)
}

// An abandoned attempt cannot continue the step.
func TestAwaitTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := make(chan error, 1)
		slow := stone.New("b", letter("b"), func(ctx context.Context, d dag.DAG) (string, error) {
			if stone.In(ctx).Path() == "f/b" {
				time.Sleep(3 * time.Second)
				_, err := stone.In(context.WithoutCancel(ctx)).Await(d)
				late <- err
				return "late", nil
			}
			return "b", nil
		}, stone.Timeout(time.Second), stone.Retry{Attempts: 2})
		result, err := stone.Run(t.Context(), stone.Flow("f", toil("a", "", 1), slow, toil("c", "", 5)), stone.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := <-late; err == nil {
			t.Error("Await succeeded in an abandoned attempt")
		}
		wantShow(t, result.DAG, `a "a"`, `b "b"`, `c "c"`)
	})
}

func BenchmarkFlow(b *testing.B) {
	types := make([]dag.Type[int], 1000)
	for i := range types {
		types[i] = dag.NewType[int](fmt.Sprint("t", i))
	}
	leaf := func(i int, qs ...dag.Querier) stone.Ashlar {
		return stone.New(fmt.Sprint("s", i), types[i], func(context.Context, dag.DAG) (int, error) { return i, nil }, stone.Queries(qs...))
	}
	shapes := []struct {
		name string
		step func(i int) stone.Ashlar
	}{
		{"chain", func(i int) stone.Ashlar {
			if i == 0 {
				return leaf(i)
			}
			return leaf(i, types[i-1])
		}},
		{"apart", func(i int) stone.Ashlar { return leaf(i) }},
		{"two chains", func(i int) stone.Ashlar {
			if i < 2 {
				return leaf(i)
			}
			return leaf(i, types[i-2])
		}},
		{"two chains with a config", func(i int) stone.Ashlar {
			if i < 3 {
				return leaf(i)
			}
			return leaf(i, types[i-2], types[0])
		}},
		{"layers", func(i int) stone.Ashlar {
			if i < 30 {
				return leaf(i)
			}
			var qs []dag.Querier
			for k := i/30*30 - 30; k < i/30*30; k++ {
				qs = append(qs, types[k])
			}
			return leaf(i, qs...)
		}},
	}
	for _, shape := range shapes {
		for _, n := range []int{100, 1000} {
			steps := make([]stone.Ashlar, n)
			for i := range steps {
				steps[i] = shape.step(i)
			}
			for _, form := range []struct {
				name string
				make compose
			}{{"seq", stone.Seq}, {"flow", stone.Flow}} {
				b.Run(fmt.Sprintf("%s/%d/%s", shape.name, n, form.name), func(b *testing.B) {
					p := form.make("f", steps...)
					for b.Loop() {
						if _, err := stone.Run(b.Context(), p, stone.Config{}); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/step")
				})
			}
		}
	}
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprintf("writers and readers of one type, with analysis/%d", n), func(b *testing.B) {
			steps := make([]stone.Ashlar, n)
			for i := range steps {
				steps[i] = say(fmt.Sprint("s", i), "x")
				if i%3 == 2 {
					steps[i] = stone.New(fmt.Sprint("s", i), number, func(context.Context, dag.DAG) (int, error) { return i, nil }, stone.Queries(dag.All(word)))
				}
			}
			for b.Loop() {
				if _, err := stone.Run(b.Context(), stone.Flow("f", steps...), stone.Config{}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/step")
		})
	}
}
