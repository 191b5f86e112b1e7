// Package executortest tests an executor: a run with it must produce the same nodes as
// a run with the executor of stone.
//
//	func TestPool(t *testing.T) {
//		executortest.Test(t, 0, func(t *testing.T, seed uint64) step.Executor { return newPool(t, seed) })
//	}
//
// If an executor works in other processes, these make the pipeline of a seed with
// [Tree] and call stone.Perform with it.
package executortest

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// Test runs random pipelines with the executors that make returns for them. Trees is the number of pipelines; 0 means
// 1,000, or 50 with -short. It compares
// the nodes and the error of each run with the local executor's: without a
// recorder, with a recorder, and replayed from that recorder.
func Test(t *testing.T, trees uint64, make func(t *testing.T, seed uint64) step.Executor) {
	t.Helper()
	if trees == 0 {
		if trees = 1000; testing.Short() {
			trees = 50
		}
	}
	for seed := range trees {
		p := Tree(seed)
		want := outcome(t, p, stone.Config{})
		var memory journal.Memory
		executor := make(t, seed)
		for how, cfg := range []stone.Config{{Executor: executor}, {Executor: executor, Recorder: &memory}, {Executor: executor, Recorder: &memory}} {
			if got := outcome(t, p, cfg); got != want {
				t.Fatalf("tree %d, %s: the run produced\n%s\nwant\n%s", seed, [...]string{"without a recorder", "with a recorder", "replayed"}[how], got, want)
			}
		}
		if !testing.Short() && seed%100 == 99 {
			t.Logf("%d trees", seed+1)
		}
	}
}

// TestKept runs random pipelines durably with the journal and the executor that make returns
// for them, and compares the nodes and the error of each run with a run in this
// process. It cancels each run at a random moment and resumes it.
func TestKept(t *testing.T, trees uint64, make func(t *testing.T, seed uint64) (journal.Journal, step.Executor)) {
	t.Helper()
	canceled := 0
	for seed := range trees {
		p := Tree(seed)
		want := outcome(t, p, stone.Config{})
		j, executor := make(t, seed)
		cfg := stone.Config{RunID: fmt.Sprint("run", seed), Executor: executor, Recorder: journal.Keep(j, journal.Options{})}
		ctx, cancel := context.WithCancel(t.Context())
		steps := rand.New(rand.NewPCG(seed, 0)).IntN(400)
		watched := cfg
		watched.Watch = event.Func(slog.LevelDebug, func(event.Event) {
			if steps--; steps == 0 {
				cancel()
			}
		})
		got, err := stone.Run(ctx, p, watched)
		if ctx.Err() != nil {
			canceled++
			got, err = stone.Run(t.Context(), p, cfg)
		}
		cancel()
		if got := describe(got, err); got != want {
			t.Fatalf("tree %d: the run produced\n%s\nwant\n%s", seed, got, want)
		}
	}
	t.Logf("%d trees, %d of them canceled and resumed", trees, canceled)
}

// outcome runs p and returns its nodes, without times, and its error.
func outcome(t *testing.T, p stone.Ashlar, cfg stone.Config) string {
	t.Helper()
	cfg.RunID = "run"
	return describe(stone.Run(t.Context(), p, cfg))
}

func describe(result stone.Result, err error) string {
	var b strings.Builder
	for n := range result.DAG.Nodes() {
		fmt.Fprintf(&b, "%s %s %s\n", n.ID(), n.Type(), n.JSON())
	}
	fmt.Fprintln(&b, err)
	return b.String()
}

// types are the types that a Tree reads and writes.
var types = func() []dag.Type[int] {
	out := make([]dag.Type[int], 4)
	for i := range out {
		out[i] = dag.NewType[int](fmt.Sprint("type", i))
	}
	return out
}()
