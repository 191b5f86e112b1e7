package remote_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/record"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/remote"
)

// paid is a leaf that pays n times.
func paid(n int, calls *atomic.Int64) stone.Ashlar {
	return stone.Func0("paid", number, func(ctx context.Context) (int, error) { return n, pay(ctx, n, calls) })
}

// pay makes n draws of one dollar each, in steps. Before each it calls the functions with the
// number of the draw.
func pay(ctx context.Context, n int, calls *atomic.Int64, before ...func(int)) error {
	type reply struct {
		Usage budget.Usage `json:"usage"`
	}
	for i := range n {
		for _, f := range before {
			f(i)
		}
		name := fmt.Sprint("call", i)
		draw, err := budget.From(ctx).Draw(ctx, stone.In(ctx), name, budget.Fixed(budget.Amount{Roundtrips: 1, USD: 1}))
		if err != nil {
			return err
		}
		r, err := stone.Step(draw.Context(ctx), name, i, func(context.Context, int) (reply, error) {
			calls.Add(1)
			return reply{budget.Usage{USD: 1}}, draw.Begin()
		})
		if err == nil {
			draw.End(r.Usage)
		}
		if draw.Close(); err != nil {
			return err
		}
	}
	return nil
}

// A leaf gets slices of the account. Nothing is paid twice, and the account, the steps of the
// run and a resumed run agree on what was spent.
func TestBudget(t *testing.T) {
	for name, c := range map[string]struct {
		limit  float64
		failed bool
	}{"enough": {100, false}, "just enough": {10, false}, "too little": {9, true}, "no limit": {0, false}} {
		t.Run(name, func(t *testing.T) {
			var j journal.Memory
			var calls atomic.Int64
			p := stone.Seq("p", paid(10, &calls))
			account := budget.New(budget.Limits{USD: c.limit})
			_, _, err := run(t, budget.With(t.Context(), account), &j, p, stone.Config{}, p)
			if (err != nil) != c.failed {
				t.Fatalf("the run ended with %v", err)
			}
			if c.failed && !record.Refused(err) && !strings.Contains(err.Error(), "max-usd") {
				t.Errorf("the run ended with %v", err)
			}
			want := min(10, cmpOr(c.limit, 10))
			if got := account.Spent().USD; got != want {
				t.Errorf("the account has spent %v, want %v", got, want)
			}
			if got := calls.Load(); float64(got) != want {
				t.Errorf("there were %d calls, want %v", got, want)
			}
			steps, err := j.Steps(t.Context(), "run")
			if err != nil {
				t.Fatal(err)
			}
			sum := 0.0
			for _, s := range steps {
				sum += s.Spent().USD
			}
			if sum != want {
				t.Errorf("the steps have spent %v, want %v: %+v", sum, want, steps)
			}
		})
	}
}

func cmpOr(a, b float64) float64 {
	if a == 0 {
		return b
	}
	return a
}

// The lanes of eight workers share the budget of their run: 512 leaves that are out at once
// want 1,536 dollars and spend the limit of 400.
func TestSharedBudget(t *testing.T) {
	const limit, callers = 400, 512
	var j journal.Memory
	var calls atomic.Int64
	p := stone.Seq("p",
		stone.Map("each", dag.Derive(number, func(n int) []int { return make([]int, n) }), item, paid(3, &calls), stone.Lanes(callers), stone.AllLanes()),
		stone.Reduce(stone.Func("count", dag.All(number), text, func(_ context.Context, all []int) (string, error) { return fmt.Sprint(len(all)), nil })))
	workers := make([]*remote.Worker, 8)
	for i := range workers {
		workers[i] = &remote.Worker{Journal: &j, Pipelines: []stone.Ashlar{p}}
	}
	account := budget.New(budget.Limits{USD: limit})
	_, err := stone.Run(budget.With(t.Context(), account), p, stone.Config{RunID: "run", Input: dag.Of(number.With(callers)), Recorder: journal.Keep(&j, journal.Options{}),
		Executor: remote.New(remote.Config{Journal: &j, Carrier: newPool(t, workers...), Routes: []remote.Route{{Leaf: "paid", Pool: "p"}}, Again: 50 * time.Millisecond, Window: callers})})
	if err == nil {
		t.Fatal("the run has a result, though its budget does not suffice")
	}
	if n := calls.Load(); n > limit || n < limit/2 {
		t.Errorf("%d calls of a dollar were made, want at most %d, and most of them", n, limit)
	}
	if got := account.Spent().USD; got > limit+1e-6 { // sums of shares are rounded
		t.Errorf("the account has spent %v, want at most %d", got, limit)
	}
}

// A leaf that comes back when the account is empty does not pay for its steps again.
func TestPaidSteps(t *testing.T) {
	var j journal.Memory
	var calls atomic.Int64
	account := budget.New(budget.Limits{Roundtrips: 256})
	empty := sync.OnceFunc(func() { account.Charge(budget.Amount{Roundtrips: 256}) }) // by others
	inner := stone.Func0("inner", text, func(context.Context) (string, error) { return "", nil })
	p := stone.Seq("p", stone.New("paid", number, func(ctx context.Context, d dag.DAG) (int, error) {
		if err := pay(ctx, 2, &calls); err != nil {
			return 0, err
		}
		empty()
		if out := stone.In(ctx).RunDynamic(inner, d, nil); out.InFlight() { // comes back
			return 0, out.Cause()
		}
		return 1, nil
	}))
	if _, _, err := run(t, budget.With(t.Context(), account), &j, p, stone.Config{}, p); err != nil {
		t.Fatal(err)
	}
	if got := account.Spent(); calls.Load() != 2 || got.Roundtrips != 258 {
		t.Errorf("%d calls, spent %+v", calls.Load(), got)
	}
}

// unstoppable is a carrier that cannot stop the work of its worker.
type unstoppable struct {
	*remote.Worker
	t    *testing.T
	wait *sync.WaitGroup
	mute atomic.Bool // it loses what is sent
}

func (d *unstoppable) Send(_ context.Context, _ string, w remote.Work) error {
	if d.mute.Load() {
		return nil
	}
	d.wait.Go(func() {
		if err := d.Do(d.t.Context(), w); err != nil {
			d.t.Error(err)
		}
	})
	return nil
}

func (*unstoppable) Cancel(context.Context, remote.Work) error { return nil }

// start runs p with the account, all leaves on the carrier.
func (d *unstoppable) start(ctx context.Context, p stone.Ashlar, account *budget.Account) error {
	_, err := stone.Run(budget.With(ctx, account), p, stone.Config{RunID: "run", Recorder: journal.Keep(d.Journal, journal.Options{}),
		Executor: remote.New(remote.Config{Journal: d.Journal, Carrier: d, Routes: []remote.Route{{Pool: "p"}}})})
	return err
}

// A cancelled leaf pays for no further step, even if it cannot be stopped. The account is charged
// with its cost, and the rest of its reservation is released.
func TestRevoke(t *testing.T) {
	var wait sync.WaitGroup
	var calls atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	p := stone.Seq("p", stone.Func0("paid", number, func(ctx context.Context) (int, error) {
		return 0, pay(ctx, 3, &calls, func(i int) {
			if i == 1 {
				cancel()
				<-ended
			}
		})
	}))
	d := &unstoppable{Worker: &remote.Worker{Journal: new(journal.Memory), Pipelines: []stone.Ashlar{p}}, t: t, wait: &wait}
	account := budget.New(budget.Limits{USD: 1000})
	if err := d.start(ctx, p, account); err == nil {
		t.Fatal("the run was not cancelled")
	}
	spent := account.Spent()
	close(ended)
	wait.Wait()
	if want := (budget.Amount{Roundtrips: 1, USD: 1}); calls.Load() != 1 || spent != want {
		t.Errorf("%d calls, spent %+v, want %+v", calls.Load(), spent, want)
	}
}

// A resumed run keeps to its new budget, although its leaves were sent with a larger one.
func TestLowerBudget(t *testing.T) {
	var wait sync.WaitGroup
	var calls atomic.Int64
	p := stone.Seq("p", paid(10, &calls))
	d := &unstoppable{Worker: &remote.Worker{Journal: new(journal.Memory), Pipelines: []stone.Ashlar{p}}, t: t, wait: &wait}
	d.mute.Store(true)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := d.start(ctx, p, budget.New(budget.Limits{USD: 100_000})); err == nil {
		t.Fatal("a leaf that was lost has a result")
	}
	d.mute.Store(false)
	account := budget.New(budget.Limits{USD: 5})
	if err := d.start(t.Context(), p, account); !record.Refused(err) && !strings.Contains(fmt.Sprint(err), "max-usd") {
		t.Errorf("the run ended with %v", err)
	}
	if wait.Wait(); calls.Load() != 5 || account.Spent().USD != 5 {
		t.Errorf("%d calls, spent %v, want 5", calls.Load(), account.Spent().USD)
	}
}

// A call that a dead worker had started counts as paid, also within its leaf: a budget that has room for
// no other pays for no other.
func TestPossiblyPaid(t *testing.T) {
	for usd, calls := range map[float64]int64{1000: 2, 1: 1} {
		j := new(journal.Memory)
		t.Run(fmt.Sprint(usd), func(t *testing.T) { possiblyPaid(t, j, j, usd, calls) })
		former := &former{Memory: new(journal.Memory)}
		t.Run(fmt.Sprint("former-", usd), func(t *testing.T) { possiblyPaid(t, former.Memory, former, usd, calls) })
	}
}

// former is the journal of a worker whose first attempt is noted as by the version that had no slices in notes.
type former struct {
	*journal.Memory
	once sync.Once
}

func (j *former) Post(ctx context.Context, run string, items ...journal.Item) ([]journal.Item, error) {
	if strings.HasPrefix(items[0].Key, "try/") && strings.Count(items[0].Key, "/") == 3 {
		j.once.Do(func() {
			data := regexp.MustCompile(`,"(holder|slice|counted)":\d+`).ReplaceAll(items[0].Data, nil)
			items = []journal.Item{{Key: items[0].Key, Data: data}}
		})
	}
	return j.Memory.Post(ctx, run, items...)
}

func possiblyPaid(t *testing.T, j, worker journal.Journal, usd float64, want int64) {
	var wait sync.WaitGroup
	var calls atomic.Int64
	dying, die := context.WithCancel(t.Context())
	p := stone.Seq("p", stone.Func0("paid", number, func(ctx context.Context) (int, error) {
		draw, err := budget.From(ctx).Draw(ctx, stone.In(ctx), "call", budget.Fixed(budget.Amount{Roundtrips: 1, USD: 1}))
		if err != nil {
			return 0, err
		}
		defer draw.Close()
		_, err = stone.Step(draw.Context(ctx), "call", 0, func(ctx context.Context, _ int) (int, error) {
			if calls.Add(1) == 1 {
				die()
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return 1, draw.Begin()
		})
		if err == nil {
			draw.End(budget.Usage{USD: 1})
		}
		return 1, err
	}))
	w := &remote.Worker{Journal: worker, Pipelines: []stone.Ashlar{p}}
	carrier := fixed(func(work remote.Work) {
		wait.Go(func() {
			if err := w.Do(dying, work); err == nil {
				return // its slice was too small to begin; the next order may have called already
			} else if !errors.Is(err, context.Canceled) {
				t.Errorf("the worker ended with %v", err)
			}
			if err := w.Do(t.Context(), work); err != nil {
				t.Error(err)
			}
		})
	})
	account := budget.New(budget.Limits{USD: usd})
	_, err := stone.Run(budget.With(t.Context(), account), p, stone.Config{RunID: "run", Recorder: journal.Keep(j, journal.Options{}),
		Executor: remote.New(remote.Config{Journal: j, Carrier: carrier, Routes: []remote.Route{{Pool: "p"}}})})
	if wait.Wait(); (err == nil) != (want > 1) {
		t.Fatalf("the run ended with %v after %d calls", err, calls.Load())
	}
	if got := account.Spent(); calls.Load() != want || got.USD != float64(want) {
		t.Errorf("%d calls, spent %+v, want %d", calls.Load(), got, want)
	}
}

// After another process takes a run over, the slices of the former holder pay for nothing more, and its
// later writes are ignored.
func TestFormerHolder(t *testing.T) {
	var wait sync.WaitGroup
	var calls atomic.Int64
	j := new(journal.Memory)
	write := func(key, data string) {
		if _, err := j.Post(context.Background(), "run", journal.Item{Key: key, Data: []byte(data)}); err != nil {
			t.Error(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	p := stone.Seq("p", stone.Func0("paid", number, func(ctx context.Context) (int, error) {
		return 1, pay(ctx, 3, &calls, func(i int) {
			if i == 1 && calls.Load() == 1 {
				write("holder/2", `{"post":"another process"}`)
			}
		})
	}))
	w := &remote.Worker{Journal: j, Pipelines: []stone.Ashlar{p}}
	start := func(ctx context.Context, account *budget.Account, send func(remote.Work)) error {
		_, err := stone.Run(budget.With(ctx, account), p, stone.Config{RunID: "run", Recorder: journal.Keep(j, journal.Options{}),
			Executor: remote.New(remote.Config{Journal: j, Carrier: fixed(send), Routes: []remote.Route{{Pool: "p"}}})})
		return err
	}
	do := func(work remote.Work) {
		if err := w.Do(t.Context(), work); err != nil {
			t.Error(err)
		}
	}
	if err := start(ctx, budget.New(budget.Limits{USD: 1000}), func(work remote.Work) {
		wait.Go(func() { do(work); cancel() })
	}); err == nil {
		t.Error("the leaf ended, though another process had taken the run over")
	}
	if wait.Wait(); calls.Load() != 1 {
		t.Fatalf("%d calls were made, want none after the first", calls.Load())
	}
	account := budget.New(budget.Limits{USD: 1000})
	if err := start(t.Context(), account, func(work remote.Work) {
		for n := range 5 {
			write(fmt.Sprintf("slice/%s/%d", work.ID, n+1), `{"holder":1,"post":"late","closed":true}`)
		}
		wait.Go(func() { do(work) })
	}); err != nil {
		t.Error(err)
	}
	if wait.Wait(); calls.Load() != 3 || account.Spent().USD != 3 {
		t.Errorf("%d calls were made, and %v USD spent, want 3", calls.Load(), account.Spent().USD)
	}
}

// losable is a journal that can lose a run to another process.
type losable struct {
	*journal.Memory
	held context.Context
}

func (l losable) Held(string) context.Context { return l.held }

// A process that loses its run waits for no leaf any more, even if it has the run again: it closes no
// slice, and leaves the run to the next process.
func TestLostRun(t *testing.T) {
	held, lose := context.WithCancelCause(context.Background())
	j := losable{new(journal.Memory), held}
	p := stone.Seq("p", stone.Func0("leaf", number, func(context.Context) (int, error) { return 1, nil }))
	_, err := stone.Run(budget.With(t.Context(), budget.New(budget.Limits{USD: 1})), p, stone.Config{RunID: "run", Recorder: journal.Keep(j, journal.Options{}),
		Executor: remote.New(remote.Config{Journal: j, Routes: []remote.Route{{Pool: "p"}}, Carrier: fixed(func(remote.Work) {
			lose(&journal.HeldError{Where: "memory", Run: "run", Owner: "another process"})
		})})})
	if !errors.As(err, new(*journal.HeldError)) {
		t.Errorf("the run ended with %v", err)
	}
	info, err := j.Find(t.Context(), "run")
	if err != nil || info.State != journal.Interrupted {
		t.Errorf("the run is %s, %v; want that the next process continues it", info.State, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for item := range j.Watch(ctx, "run", "slice/", 0) {
		if item.Key != "" {
			t.Errorf("a slice was written: %s", item.Key)
		}
	}
}

// A budget that suffices suffices, to the last dollar and wherever the leaves run: slices are given
// back, so whoever needs them waits.
func TestSufficientBudget(t *testing.T) {
	for _, c := range []struct {
		lanes, calls, runs int
		elsewhere          bool
	}{{16, 1, 20, true}, {16, 3, 10, true}, {64, 1, 5, true}, {200, 1, 2, true}, {200, 1, 2, false}} {
		t.Run(fmt.Sprintf("%d lanes of %d USD with workers %v", c.lanes, c.calls, c.elsewhere), func(t *testing.T) {
			for range c.runs {
				var j journal.Memory
				var calls atomic.Int64
				p := stone.Seq("p",
					stone.Map("each", dag.Derive(number, func(n int) []int { return make([]int, n) }), item, paid(c.calls, &calls), stone.Lanes(c.lanes), stone.AllLanes()),
					stone.Reduce(stone.Func("count", dag.All(number), text, func(_ context.Context, all []int) (string, error) { return fmt.Sprint(len(all)), nil })))
				limit := float64(c.lanes * c.calls)
				account := budget.New(budget.Limits{USD: limit, Roundtrips: int(limit)})
				cfg := stone.Config{RunID: "run", Input: dag.Of(number.With(c.lanes)), Recorder: journal.Keep(&j, journal.Options{})}
				if c.elsewhere {
					workers := make([]*remote.Worker, 4)
					for i := range workers {
						workers[i] = &remote.Worker{Journal: &j, Pipelines: []stone.Ashlar{p}}
					}
					cfg.Executor = remote.New(remote.Config{Journal: &j, Carrier: newPool(t, workers...), Routes: []remote.Route{{Leaf: "paid", Pool: "p"}}, Again: 50 * time.Millisecond, Window: c.lanes})
				}
				if _, err := stone.Run(budget.With(t.Context(), account), p, cfg); err != nil {
					t.Fatalf("after %d calls, with %v spent: %v", calls.Load(), account.Spent(), err)
				}
				if got := account.Spent(); calls.Load() != int64(limit) || got.USD < limit-1e-6 || got.USD > limit+1e-6 || got.Roundtrips != int(limit) {
					t.Errorf("%d calls, spent %+v, want %v", calls.Load(), got, limit)
				}
			}
		})
	}
}
