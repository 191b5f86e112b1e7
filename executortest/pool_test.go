package executortest_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/executortest"
	"github.com/stonelayer/stone/step"
)

// worker is set in the environment of worker processes.
const worker = "STONE_EXECUTORTEST_WORKER"

func TestMain(m *testing.M) {
	if os.Getenv(worker) != "" {
		work()
		return
	}
	os.Exit(m.Run())
}

// A request is an order to a worker, and an answer is its result.
type request struct {
	Seed  uint64
	Order step.Order
}

type answer struct {
	Record step.Record
	Local  bool
	Error  string
}

// work performs orders until the input ends.
func work() {
	in, out := json.NewDecoder(bufio.NewReader(os.Stdin)), json.NewEncoder(os.Stdout)
	var seed uint64
	var p stone.Ashlar
	for {
		var r request
		if err := in.Decode(&r); err != nil {
			if !errors.Is(err, io.EOF) {
				fmt.Fprintln(os.Stderr, err)
			}
			return
		}
		if p.IsZero() || r.Seed != seed {
			seed, p = r.Seed, executortest.Tree(r.Seed)
		}
		var a answer
		rec, err := stone.Perform(context.Background(), p, r.Order, stone.Config{})
		if a.Record, a.Local = rec, errors.Is(err, step.ErrLocal); err != nil && !a.Local {
			a.Error = err.Error()
		}
		if err := out.Encode(a); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
	}
}

// crew has the worker processes.
type crew struct {
	idle      chan *process
	performed atomic.Int64
	local     atomic.Int64
}

type process struct {
	in  *json.Encoder
	out *json.Decoder
}

func hire(t *testing.T, n int) *crew {
	c := &crew{idle: make(chan *process, n)}
	for range n {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), worker+"=1")
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			in.Close()
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
		c.idle <- &process{json.NewEncoder(in), json.NewDecoder(out)}
	}
	return c
}

// perform sends an order to an idle process.
func (c *crew) perform(seed uint64) func(context.Context, step.Order) (step.Record, error) {
	return func(_ context.Context, o step.Order) (step.Record, error) {
		p := <-c.idle
		defer func() { c.idle <- p }()
		if err := p.in.Encode(request{seed, o}); err != nil {
			return step.Record{}, err
		}
		var a answer
		if err := p.out.Decode(&a); err != nil {
			return step.Record{}, err
		}
		switch {
		case a.Local:
			c.local.Add(1)
			return step.Record{}, step.ErrLocal
		case a.Error != "":
			return step.Record{}, errors.New(a.Error)
		}
		c.performed.Add(1)
		return a.Record, nil
	}
}

// pool is an executor that runs leaves in other processes, and lanes on a few
// goroutines.
type pool struct {
	perform func(context.Context, step.Order) (step.Record, error)
}

func (p pool) Leaf(t step.Task, d dag.DAG) dag.DAG        { return t.DoBy(d, p.perform) }
func (p pool) Decide(t step.Task, d dag.DAG) (any, error) { return t.Decide(d) }

func (p pool) Fan(t step.Task, n int, lane func(context.Context, int)) {
	var next atomic.Int64
	var wait sync.WaitGroup
	for range min(n, t.Lanes(), 4) {
		wait.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && t.Err() == nil; i = next.Add(1) - 1 {
				lane(t.Context(), int(i))
			}
		})
	}
	wait.Wait()
}

func TestPool(t *testing.T) {
	c := hire(t, 2)
	trees := uint64(1000)
	if testing.Short() || raceEnabled {
		trees = 50
	}
	executortest.Test(t, trees, func(_ *testing.T, seed uint64) step.Executor { return pool{c.perform(seed)} })
	t.Logf("%d leaves were performed in other processes, %d in this process", c.performed.Load(), c.local.Load())
	if c.performed.Load() < 10*int64(trees) || c.local.Load() == 0 {
		t.Error("want both often")
	}
}

// TestSelf tests a pool that calls Perform in this process.
func TestSelf(t *testing.T) {
	executortest.Test(t, 100, func(_ *testing.T, seed uint64) step.Executor {
		p := executortest.Tree(seed)
		return pool{func(ctx context.Context, o step.Order) (step.Record, error) {
			return stone.Perform(ctx, p, o, stone.Config{})
		}}
	})
}
