package servertest

import (
	"os"
	"strconv"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/executortest"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
	"github.com/stonelayer/stone/x/temporal"
)

// trees is the number of random pipelines: STONE_TREES, or a number for the given time.
func trees(t *testing.T, usual uint64) uint64 {
	if s := os.Getenv("STONE_TREES"); s != "" {
		n, err := strconv.ParseUint(s, 10, 32)
		if err != nil {
			t.Fatal("STONE_TREES:", err)
		}
		return n
	}
	return usual
}

// A run whose leaves went through Temporal, was cancelled and resumed, has the nodes of a run
// in one process.
func TestLeaves(t *testing.T) {
	for name, batch := range map[string]int{"single": 1, "batches": 50} {
		t.Run(name, func(t *testing.T) {
			n := trees(t, 60)
			var known []stone.Ashlar
			for seed := range n {
				known = append(known, executortest.Tree(seed))
			}
			c, j := server().client(t), new(journal.Memory)
			work(t, temporal.Worker{Client: c, Journal: j, Pool: t.Name(), Pipelines: known})
			work(t, temporal.Worker{Client: c, Journal: j, Pool: t.Name(), Pipelines: known})
			e := executor(c, j, t.Name(), batch)
			executortest.TestKept(t, n, func(*testing.T, uint64) (journal.Journal, step.Executor) { return j, e })
		})
	}
}
