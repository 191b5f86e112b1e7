package remote_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/remote"
	"github.com/stonelayer/stone/limit"
)

// Two runs share a window of one order. The run with the higher priority goes first, with every fourth order of the
// other one, and each worker ranks the requests of a leaf as its run does.
func TestRank(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal.Memory
		var mu sync.Mutex
		var got []string
		gate := make(chan struct{})
		var lanes []stone.Ashlar
		for i := range 4 {
			lanes = append(lanes, stone.Func0(fmt.Sprint("lane-", i), number, func(ctx context.Context) (int, error) {
				mu.Lock()
				got = append(got, fmt.Sprint(stone.In(ctx).RunID(), limit.RankOf(ctx)))
				mu.Unlock()
				<-gate
				return i, nil
			}))
		}
		p := stone.Flow("all", lanes...)
		w := &remote.Worker{Journal: &j, Pipelines: []stone.Ashlar{p}}
		carrier := fixed(func(work remote.Work) {
			if err := w.Do(t.Context(), work); err != nil {
				t.Error(err)
			}
		})
		e := remote.New(remote.Config{Journal: &j, Carrier: carrier, Routes: []remote.Route{{Pool: "p"}}, Window: 1})
		var all sync.WaitGroup
		start := func(run string, r limit.Rank) {
			all.Go(func() {
				if _, err := stone.Run(limit.Ranked(t.Context(), r), p, stone.Config{RunID: run, Recorder: journal.Keep(&j, journal.Options{}), Executor: e}); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		start("low", limit.Rank{Tenant: "a", Priority: -1})
		start("high", limit.Rank{Tenant: "b", Priority: 2})
		close(gate)
		all.Wait()
		low, high := "low{false a -1}", "high{false b 2}"
		if want := []string{low, high, high, high, low, high, low, low}; !slices.Equal(got, want) {
			t.Errorf("the leaves went in the order %v, want %v", got, want)
		}
	})
}
