package stone_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/kind"
)

// gauge counts how many are in flight, and remembers the most.
type gauge struct{ now, most, total atomic.Int64 }

func (g *gauge) enter() {
	g.total.Add(1)
	n := g.now.Add(1)
	for most := g.most.Load(); n > most && !g.most.CompareAndSwap(most, n); most = g.most.Load() {
	}
}

func (g *gauge) leave() { g.now.Add(-1) }

// busy makes a leaf that is in flight for a second of synctest's time.
func busy(g *gauge) stone.Ashlar {
	return stone.Func0("busy", word, func(context.Context) (string, error) {
		g.enter()
		defer g.leave()
		time.Sleep(time.Second)
		return "x", nil
	})
}

func TestLanesLimit(t *testing.T) {
	for _, tt := range []struct{ lanes, items, want int }{
		{1, 10, 1}, {2, 10, 2}, {7, 100, 7}, {100, 7, 7}, {0, 1000, 256}, {5000, 5000, 4096},
	} {
		t.Run(fmt.Sprint(tt.lanes, tt.items), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var g gauge
				var opts []stone.FanOption
				if tt.lanes > 0 {
					opts = append(opts, stone.Lanes(tt.lanes))
				}
				p := stone.Seq("s", numbers(tt.items), stone.Map("m", list, number, busy(&g), opts...), last)
				start := time.Now()
				if _, err := stone.Run(t.Context(), p, stone.Config{}); err != nil {
					t.Fatal(err)
				}
				if g.most.Load() != int64(tt.want) {
					t.Errorf("%d lanes in flight at once, want %d", g.most.Load(), tt.want)
				}
				rounds := (tt.items + tt.want - 1) / tt.want
				if took := time.Since(start); took != time.Duration(rounds)*time.Second {
					t.Errorf("took %v, want %d s", took, rounds)
				}
			})
		})
	}
}

// Fan-outs within fan-outs share one limit, and none waits for another's place.
func TestNestedFanOuts(t *testing.T) {
	for _, tt := range []struct{ a, b, c int }{{300, 300, 1}, {20, 30, 40}, {1, 1, 5000}} {
		t.Run(fmt.Sprint(tt), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var g gauge
				level := func(n int, body stone.Ashlar) stone.Ashlar {
					return stone.Seq("level", numbers(n), stone.Map("map", list, number, body, stone.Lanes(5000)), last)
				}
				p := level(tt.a, level(tt.b, level(tt.c, busy(&g))))
				result, err := stone.Run(t.Context(), p, stone.Config{})
				if err != nil {
					t.Fatal(err)
				}
				n := int64(tt.a * tt.b * tt.c)
				if g.total.Load() != n || g.most.Load() > 4096 || g.most.Load() < min(n, 4096)*9/10 {
					t.Errorf("%d leaves ran, %d at once; want %d, and 4096 at once", g.total.Load(), g.most.Load(), n)
				}
				words, err := result.DAG.All("word")
				if want := tt.a*tt.b*tt.c + tt.a*tt.b + tt.a + 1; err != nil || len(words) != want {
					t.Errorf("%d words, %v; want %d", len(words), err, want)
				}
			})
		})
	}
}

// pick makes a leaf that fails in the lanes whose number is in fail.
func pick(fail ...int) stone.Ashlar {
	return stone.Func("pick", number, word, func(_ context.Context, n int) (string, error) {
		if slices.Contains(fail, n) {
			return "", stone.Fail("own", "lane %d: %w", n, errBoom)
		}
		return fmt.Sprint(n), nil
	})
}

func TestSurvivors(t *testing.T) {
	tests := []struct {
		name string
		opts []stone.FanOption
		fail []int
		ok   bool
	}{
		{"all live", nil, nil, true},
		{"one lives", nil, []int{0, 1, 3}, true},
		{"none lives", nil, []int{0, 1, 2, 3}, false},
		{"quorum met", []stone.FanOption{stone.Quorum(2)}, []int{0, 1}, true},
		{"quorum missed", []stone.FanOption{stone.Quorum(3)}, []int{0, 1}, false},
		{"quorum out of reach", []stone.FanOption{stone.Quorum(9)}, nil, false},
		{"all demanded, all live", []stone.FanOption{stone.AllLanes()}, nil, true},
		{"all demanded, one fails", []stone.FanOption{stone.AllLanes()}, []int{2}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := stone.Seq("s", numbers(4), stone.Map("m", list, number, stone.Seq("lane", say("before", "x"), pick(tt.fail...)), tt.opts...), last)
			result, err := stone.Run(t.Context(), p, stone.Config{})
			if tt.ok != (err == nil) {
				t.Fatalf("Run returned %v, want success to be %t", err, tt.ok)
			}
			if !tt.ok {
				wantKind(t, err, kind.LanesFailed)
			}
			lost, err := dag.Lost(result.DAG)
			if err != nil || len(lost) != len(tt.fail) {
				t.Fatalf("Lost: %v, %v; want %d", lost, err, len(tt.fail))
			}
			for i, l := range lost {
				c, err := dag.Failure.Of(l.Failure)
				if l.Index != tt.fail[i] || l.Marker.JSON() != fmt.Sprint(l.Index) || err != nil || c.Kind != "own" {
					t.Errorf("lost lane %+v %+v, %v; want lane %d with its item", l, c, err, tt.fail[i])
				}
			}
		})
	}
}

// The nodes of a fan-out do not depend on which lane finishes first.
func TestLanesInSourceOrder(t *testing.T) {
	run := func(slow int, lanes int) dag.ID {
		p := stone.Seq("s", numbers(5), stone.Map("m", list, number, stone.Func("f", number, word, func(_ context.Context, n int) (string, error) {
			time.Sleep(time.Duration((n+slow)%5) * time.Second)
			if n == 3 {
				return "", errBoom
			}
			return "same", nil
		}), stone.Lanes(lanes)), last)
		result, err := stone.Run(t.Context(), p, stone.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return result.Node.ID()
	}
	synctest.Test(t, func(*testing.T) {
		want := run(0, 1)
		for slow := range 5 {
			for _, lanes := range []int{1, 2, 5} {
				if got := run(slow, lanes); got != want {
					t.Errorf("the run ends in %v with lane %d slow, want %v", got, slow, want)
				}
			}
		}
	})
}

// Equal items have lanes of their own.
func TestEqualItems(t *testing.T) {
	p := stone.Seq("s", stone.Func0("l", list, func(context.Context) ([]int, error) { return []int{7, 7, 7}, nil }), stone.Map("m", list, number, pick()), last)
	result, err := stone.Run(t.Context(), p, stone.Config{})
	if err != nil || result.Node.JSON() != `"3"` {
		t.Errorf("%q, %v; want three words", show(result.DAG), err)
	}
}

func TestCancelLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var started atomic.Int64
		p := stone.Seq("s", numbers(100), stone.Map("m", list, number, stone.Func("f", number, word, func(ctx context.Context, n int) (string, error) {
			started.Add(1)
			switch {
			case n < 4:
				return "done", nil
			case n == 4:
				time.Sleep(time.Minute)
				cancel()
				return "late", nil
			}
			return wait(ctx)
		}), stone.Lanes(10)), last)
		result, err := stone.Run(ctx, p, stone.Config{})
		wantKind(t, err, kind.Canceled)
		if started.Load() != 14 {
			t.Errorf("%d lanes started, want the 5 that end and the 9 that wait", started.Load())
		}
		words, _ := result.DAG.All("word")
		lost, _ := dag.Lost(result.DAG)
		if len(words) != 5 || len(lost) != 0 || len(result.Lost) != 0 {
			t.Errorf("%d lanes finished and %d were lost, want 5 and none: that the run ended is no failure of theirs", len(words), len(lost))
		}
	})
}

// A fan-out that reaches the deadline of the run is a timeout.
func TestLanesDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		p := stone.Seq("s", stone.Parallel("p", say("a", "x"), stone.Func0("b", word, wait)), last)
		result, err := stone.Run(ctx, p, stone.Config{})
		wantKind(t, err, kind.Timeout)
		if _, err := result.DAG.Nearest("failure"); err != nil {
			t.Error(err)
		}
	})
}

// A lane that ends its goroutine is lost like one that panics; the other lanes continue.
func TestGoexitInLanes(t *testing.T) {
	exit := func(d int) stone.Ashlar {
		return stone.Func("exit", number, word, func(_ context.Context, n int) (string, error) {
			time.Sleep(time.Second) // so that no lane is left for the goroutine that fans out
			if n%d != 0 {
				runtime.Goexit()
			}
			return "x", nil
		})
	}
	t.Run("one level", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p := stone.Seq("s", numbers(3), stone.Map("m", list, number, exit(3)), last)
			result, err := stone.Run(t.Context(), p, stone.Config{})
			if err != nil {
				t.Fatal(err)
			}
			lost, _ := dag.Lost(result.DAG)
			if len(lost) != 2 || lost[0].Failure.Get("kind", nil) != string(kind.Panic) {
				t.Errorf("%q, want lanes 1 and 2 to be lost", show(result.DAG))
			}
		})
	})
	t.Run("within a lane", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			inner := stone.Seq("inner", numbers(3), stone.Map("m", list, number, exit(1000)), last)
			p := stone.Seq("s", numbers(3), stone.Map("m", list, number, inner), last)
			// Lane 0 of everything runs where its fan-out was called, and is 0.
			if _, err := stone.Run(t.Context(), p, stone.Config{}); err != nil {
				t.Fatal(err)
			}
		})
	})
	t.Run("run on a goroutine that ends", func(t *testing.T) {
		var g gauge
		done := make(chan struct{})
		go func() {
			defer close(done)
			p := stone.Seq("s", numbers(4), stone.Map("m", list, number, stone.Func("f", number, word, func(_ context.Context, n int) (string, error) {
				g.enter()
				defer g.leave()
				if n == 0 {
					runtime.Goexit()
				}
				time.Sleep(10 * time.Millisecond)
				return "x", nil
			})), last)
			_, _ = stone.Run(context.Background(), p, stone.Config{})
			t.Error("Run returned, want its goroutine to end")
		}()
		<-done
		if g.now.Load() != 0 {
			t.Errorf("%d lanes are still in flight", g.now.Load())
		}
	})
}

func TestManyLanesFail(t *testing.T) {
	const n = 10_000
	p := stone.Seq("s", numbers(n), stone.Map("m", list, number, boom("b"), stone.Lanes(n)), last)
	result, err := stone.Run(t.Context(), p, stone.Config{})
	wantKind(t, err, kind.LanesFailed)
	lost, err := dag.Lost(result.DAG)
	if err != nil || len(lost) != n {
		t.Errorf("%d lanes are lost, %v; want %d", len(lost), err, n)
	}
}

// A lane does not see the others, and reads after the fan-out continue before it.
func TestLanesApart(t *testing.T) {
	p := stone.Seq("s", say("base", "base"), numbers(3),
		stone.Map("m", list, number, stone.Seq("lane", count("one"), stone.New("read", word, func(_ context.Context, d dag.DAG) (string, error) {
			w, err := word.From(d)
			return w + "+", err
		}, stone.Queries(word)))),
		stone.Reduce(stone.New("after", word, func(_ context.Context, d dag.DAG) (string, error) {
			all, err := dag.All(word).From(d)
			nearest, err2 := word.From(d)
			return fmt.Sprint(len(all), " ", nearest), errors.Join(err, err2)
		}, stone.Queries(dag.History(word), word))))
	result, err := stone.Run(t.Context(), p, stone.Config{})
	if err != nil || result.Node.JSON() != `"4 base"` {
		t.Errorf("%v, %v; want four words and the nearest one before the lanes", result.Node.JSON(), err)
	}
	for n := range result.DAG.Nodes() {
		if n.Type() == "word" && n.JSON() == `"base++"` {
			t.Error("a lane read the word of another")
		}
	}
}
