package remote_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/remote"
)

// deaf is a carrier that loses all work, and ends the run with the first one.
type deaf struct{ cancel context.CancelFunc }

func (d deaf) Send(context.Context, string, remote.Work) error {
	d.cancel()
	return nil
}

func (deaf) Cancel(context.Context, remote.Work) error { return nil }

// Orders of an earlier holder stay in their batch when the next holder sends them together
// with new ones, in larger batches: no two workers do one.
func TestBatchOfEarlierHolder(t *testing.T) {
	var j journal.Memory
	var calls atomic.Int64
	lanes := dag.ReaderFunc(func(dag.DAG) ([]int, error) { return []int{0, 1, 2, 3}, nil })
	p := stone.Seq("p", stone.Map("fan", lanes, number, stone.Func("lane", number, text, func(context.Context, int) (string, error) {
		calls.Add(1)
		time.Sleep(50 * time.Millisecond) // the other worker opens its batch meanwhile
		return "done", nil
	})), stone.Reduce(stone.Func("join", dag.All(text), dag.NewType[int]("count"), func(_ context.Context, all []string) (int, error) { return len(all), nil })))
	hold := func(ctx context.Context, c remote.Carrier, batch, window int) error {
		e := remote.New(remote.Config{Journal: &j, Carrier: c, Routes: []remote.Route{{Leaf: "lane", Pool: "p", Batch: batch}}, Window: window})
		_, err := stone.Run(ctx, p, stone.Config{RunID: "run", Recorder: journal.Keep(&j, journal.Options{}), Executor: e})
		return err
	}
	dying, die := context.WithCancel(t.Context())
	if hold(dying, deaf{die}, 2, 1) == nil {
		t.Fatal("the first holder finished the run")
	}
	worker := &remote.Worker{Journal: &j, Pipelines: []stone.Ashlar{p}}
	if err := hold(t.Context(), newPool(t, worker, worker), 4, 64); err != nil {
		t.Fatal(err)
	}
	if got := calls.Load(); got != 4 {
		t.Errorf("the 4 lanes were called %d times", got)
	}
}

// counting counts lookups and posted items of a journal.
type counting struct {
	journal.Journal
	looks, items atomic.Int64
	alone        bool // it refuses results that come together
}

func (c *counting) Posted(ctx context.Context, run string, keys ...string) (map[string]journal.Item, error) {
	c.looks.Add(1)
	return c.Journal.Posted(ctx, run, keys...)
}

func (c *counting) PostedUnder(ctx context.Context, run, prefix string) ([]journal.Item, error) {
	c.looks.Add(1)
	return c.Journal.PostedUnder(ctx, run, prefix)
}

func (c *counting) Post(ctx context.Context, run string, items ...journal.Item) ([]journal.Item, error) {
	if c.alone && len(items) > 1 {
		return nil, errors.New("too large")
	}
	c.items.Add(int64(len(items)))
	return c.Journal.Post(ctx, run, items...)
}

// A batch costs its worker two lookups and one note, however many leaves it has. Results that cannot be posted
// together are posted alone.
func TestBatchIsCheap(t *testing.T) {
	for _, alone := range []bool{false, true} {
		testBatch(t, &counting{Journal: new(journal.Memory), alone: alone})
	}
}

func testBatch(t *testing.T, shared *counting) {
	const lanes = 50
	j := shared.Journal
	var attempts atomic.Int64
	all := dag.ReaderFunc(func(dag.DAG) ([]int, error) { return make([]int, lanes), nil })
	p := stone.Seq("p", stone.Map("fan", all, number, stone.Func("lane", number, text, func(ctx context.Context, _ int) (string, error) {
		attempts.Add(int64(journal.Attempt(ctx)))
		return "done", nil
	})), stone.Reduce(stone.Func("join", dag.All(text), item, func(_ context.Context, all []string) (int, error) { return len(all), nil })))
	e := remote.New(remote.Config{Journal: j, Carrier: newPool(t, &remote.Worker{Journal: shared, Pipelines: []stone.Ashlar{p}}),
		Routes: []remote.Route{{Leaf: "lane", Pool: "p", Batch: lanes}}, Window: 1})
	if _, err := stone.Run(t.Context(), p, stone.Config{RunID: "run", Recorder: journal.Keep(j, journal.Options{}), Executor: e}); err != nil {
		t.Fatal(err)
	}
	batches := shared.items.Load() - lanes // each has one note
	if looks := shared.looks.Load(); batches < 1 || batches > lanes/2 || looks > 2*batches {
		t.Errorf("a worker looked %d times and wrote %d items for %d leaves", looks, shared.items.Load(), lanes)
	}
	if attempts.Load() != lanes {
		t.Errorf("the attempts of %d leaves add up to %d", lanes, attempts.Load())
	}
}
