package remote_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/remote"
)

// tenure is a journal that loses its run after a number of posts.
type tenure struct {
	*journal.Memory
	left atomic.Int64
	held context.Context
	lose context.CancelCauseFunc
}

func newTenure(j *journal.Memory, posts int64) *tenure {
	held, lose := context.WithCancelCause(context.Background())
	t := &tenure{Memory: j, held: held, lose: lose}
	t.left.Store(posts)
	return t
}

func (j *tenure) Held(string) context.Context { return j.held }

func (j *tenure) Post(ctx context.Context, run string, items ...journal.Item) ([]journal.Item, error) {
	if j.left.Add(-1) == 0 {
		j.lose(&journal.HeldError{Where: "memory", Run: run, Owner: "another process"})
	}
	return j.Memory.Post(ctx, run, items...)
}

// A run that is taken away from each holder after a few posts gets on: the slice that a step needs is
// granted at once, what a leaf was granted counts for the next holder, and every holder has calls
// made. The budget is just enough, and no call is repeated.
func TestTeamGetsOn(t *testing.T) {
	// A holder posts twice about what was spent, and an order and a grant for each leaf: what it posts
	// beyond these 82 follows the result of a call. The first holder needs another order for each leaf,
	// which comes back with what it needs.
	const lanes, each, first, later = 40, 16, 125, 90
	var j journal.Memory
	var calls atomic.Int64
	p := stone.Seq("p",
		stone.Map("each", dag.Derive(number, func(n int) []int { return make([]int, n) }), item, paid(each, &calls), stone.Lanes(lanes), stone.AllLanes()),
		stone.Reduce(stone.Func("count", dag.All(number), text, func(_ context.Context, all []int) (string, error) { return fmt.Sprint(len(all)), nil })))
	workers := make([]*remote.Worker, 4)
	for i := range workers {
		workers[i] = &remote.Worker{Journal: &j, Pipelines: []stone.Ashlar{p}}
	}
	carrier := newPool(t, workers...)
	holders := 0
	for err := error(new(journal.HeldError)); err != nil; holders++ {
		posts := int64(first)
		if holders > 0 {
			posts = later
		}
		before, mine := calls.Load(), newTenure(&j, posts)
		account := budget.New(budget.Limits{USD: lanes * each, Roundtrips: lanes * each})
		_, err = stone.Run(budget.With(t.Context(), account), p, stone.Config{RunID: "run", Input: dag.Of(number.With(lanes)), Recorder: journal.Keep(mine, journal.Options{}),
			Executor: remote.New(remote.Config{Journal: mine, Carrier: carrier, Routes: []remote.Route{{Leaf: "paid", Pool: "p"}}, Again: 50 * time.Millisecond})})
		if err != nil && !errors.As(err, new(*journal.HeldError)) {
			t.Fatalf("holder %d: %v; %d calls, spent %+v", holders, err, calls.Load(), account.Spent())
		}
		if err != nil && calls.Load() == before && before < lanes*each {
			t.Errorf("holder %d had no call made, after %d", holders, before)
		}
		if err == nil && (account.Spent().Roundtrips != lanes*each || math.Abs(account.Spent().USD-lanes*each) > 1e-6) {
			t.Errorf("the account has spent %+v, want %d", account.Spent(), lanes*each)
		}
		if holders > 100 {
			t.Fatalf("%d holders made %d calls", holders, calls.Load())
		}
	}
	steps, err := j.Steps(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	var spent budget.Amount
	for _, s := range steps {
		spent = spent.Add(s.Spent())
	}
	if holders < 3 || calls.Load() != lanes*each {
		t.Errorf("%d holders made %d calls, want %d by several", holders, calls.Load(), lanes*each)
	}
	// A worker that has noted a call finds that the holder has changed, and makes the call later.
	if most := float64(lanes * (each + holders - 1)); spent.USD < lanes*each || spent.USD > most {
		t.Errorf("%v USD are recorded, want %d, and at most one more for each leaf and change of holder", spent.USD, lanes*each)
	}
}

// slow is the journal of a worker that is stopped before it notes a call, and again after that.
type slow struct {
	*journal.Memory
	noting, note, noted, over chan struct{}
	stopped                   atomic.Bool
}

func (j *slow) Post(ctx context.Context, run string, items ...journal.Item) ([]journal.Item, error) {
	j.wait()
	if strings.HasPrefix(items[0].Key, "try/") && strings.Count(items[0].Key, "/") == 3 {
		close(j.noting)
		<-j.note
		defer close(j.noted)
		defer j.stopped.Store(true)
	}
	return j.Memory.Post(ctx, run, items...)
}

func (j *slow) Posted(ctx context.Context, run string, keys ...string) (map[string]journal.Item, error) {
	j.wait()
	return j.Memory.Posted(ctx, run, keys...)
}

func (j *slow) wait() {
	if j.stopped.Load() {
		<-j.over
	}
}

// taking is the journal of a holder, which stops once the board has its number.
type taking struct {
	*journal.Memory
	taken func()
}

func (j *taking) PostHeld(ctx context.Context, run string, items ...journal.Item) ([]journal.Item, error) {
	kept, err := j.Memory.PostHeld(ctx, run, items...)
	if err == nil && strings.HasPrefix(items[0].Key, journal.Holders) && string(kept[0].Data) == string(items[0].Data) {
		j.taken()
	}
	return kept, err
}

// A worker notes a call after another process has taken the run over, and is stopped before it finds that out. The call is
// not made, so the new holder does not pay for it: a budget for one call is enough.
func TestNotedTooLate(t *testing.T) {
	j := new(journal.Memory)
	var calls atomic.Int64
	p := stone.Seq("p", paid(1, &calls))
	w := &slow{Memory: j, noting: make(chan struct{}), note: make(chan struct{}), noted: make(chan struct{}), over: make(chan struct{})}
	var wait sync.WaitGroup
	defer wait.Wait()
	defer close(w.over)
	start := func(holder, worker journal.Journal) error {
		do := &remote.Worker{Journal: worker, Pipelines: []stone.Ashlar{p}}
		send := fixed(func(work remote.Work) {
			wait.Go(func() {
				if err := do.Do(t.Context(), work); err != nil && !errors.Is(err, journal.ErrNoBoard) { // the run ends before the slow one
					t.Error(err)
				}
			})
		})
		account := budget.New(budget.Limits{USD: 1, Roundtrips: 1})
		_, err := stone.Run(budget.With(t.Context(), account), p, stone.Config{RunID: "run", Recorder: journal.Keep(holder, journal.Options{}),
			Executor: remote.New(remote.Config{Journal: holder, Carrier: send, Routes: []remote.Route{{Pool: "p"}}})})
		return err
	}
	first := newTenure(j, math.MaxInt64)
	go func() {
		<-w.noting
		first.lose(&journal.HeldError{Where: "memory", Run: "run", Owner: "another process"})
	}()
	if err := start(first, w); !errors.As(err, new(*journal.HeldError)) {
		t.Fatal(err)
	}
	if err := start(&taking{j, func() { close(w.note); <-w.noted }}, j); err != nil || calls.Load() != 1 {
		t.Errorf("%d calls, %v", calls.Load(), err)
	}
}
