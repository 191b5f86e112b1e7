// Package executortest holds an executor to that of stone itself: whatever it does
// and wherever, a run must leave the same nodes.
//
//	func TestPool(t *testing.T) {
//		executortest.Test(t, func(t *testing.T, seed uint64) step.Executor { return newPool(t, seed) })
//	}
//
// An executor that works in other processes makes the pipeline of a seed there with
// [Tree], and calls stone.Perform with it.
package executortest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// Trees is how many pipelines Test runs, and ShortTrees under go test -short.
const (
	Trees      = 1000
	ShortTrees = 50
)

// Test runs random pipelines with the executors that make returns for them, and
// compares what they leave with what the executor of stone leaves: once without a
// recorder, then with one, and then again with the same one, which must not work.
func Test(t *testing.T, make func(t *testing.T, seed uint64) step.Executor) {
	t.Helper()
	trees := uint64(Trees)
	if testing.Short() {
		trees = ShortTrees
	}
	TestSome(t, trees, make)
}

// TestSome is Test with the given number of pipelines.
func TestSome(t *testing.T, trees uint64, make func(t *testing.T, seed uint64) step.Executor) {
	t.Helper()
	for seed := range trees {
		p := Tree(seed)
		want := outcome(t, p, stone.Config{})
		var memory journal.Memory
		executor := make(t, seed)
		for how, cfg := range []stone.Config{{Executor: executor}, {Executor: executor, Recorder: &memory}, {Executor: executor, Recorder: &memory}} {
			if got := outcome(t, p, cfg); got != want {
				t.Fatalf("tree %d, %s: the executor left\n%s\nwant\n%s", seed, [...]string{"without a recorder", "with a recorder", "replayed"}[how], got, want)
			}
		}
		if !testing.Short() && seed%100 == 99 {
			t.Logf("%d trees", seed+1)
		}
	}
}

// outcome is everything that a run leaves but times.
func outcome(t *testing.T, p stone.Ashlar, cfg stone.Config) string {
	t.Helper()
	cfg.RunID = "run"
	result, err := stone.Run(t.Context(), p, cfg)
	var b strings.Builder
	for n := range result.DAG.Nodes() {
		fmt.Fprintf(&b, "%s %s %s\n", n.ID(), n.Type(), n.JSON())
	}
	fmt.Fprintln(&b, err)
	return b.String()
}

// types are what a Tree reads and writes.
var types = func() []dag.Type[int] {
	out := make([]dag.Type[int], 4)
	for i := range out {
		out[i] = dag.NewType[int](fmt.Sprint("type", i))
	}
	return out
}()
