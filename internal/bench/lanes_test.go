package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/test/pgtest"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/postgres"
	"github.com/stonelayer/stone/journal/remote"
)

// laneWorker is an environment variable with the address of a database. If it is set, the process is a worker.
const laneWorker = "STONE_LANE_WORKER"

func TestMain(m *testing.M) {
	if address := os.Getenv(laneWorker); address != "" {
		if err := work(address); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// work does the work that comes on standard input, a line of JSON each.
func work(address string) error {
	db, err := postgres.Open(context.Background(), address, postgres.Options{})
	if err != nil {
		return err
	}
	worker := &remote.Worker{Journal: db, Pipelines: []stone.Ashlar{stoneFan(lanes())}}
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	for {
		var w remote.Work
		if err := in.Decode(&w); err == io.EOF {
			return db.Close()
		} else if err != nil {
			return err
		}
		go func() {
			if err := worker.Do(context.Background(), w); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
		}()
	}
}

// lanes is how many lanes a fan-out of BenchmarkLanes has: STONE_LANES, or 5,000.
func lanes() int {
	n, err := strconv.Atoi(os.Getenv("STONE_LANES"))
	if err != nil {
		return 5_000
	}
	return n
}

// pipes is a carrier over the standard inputs of worker processes. It carries what a queue would: ids.
type pipes struct {
	all  []*json.Encoder
	turn atomic.Int64
	lock chan struct{}
}

func (p *pipes) Send(_ context.Context, _ string, w remote.Work) error {
	p.lock <- struct{}{}
	defer func() { <-p.lock }()
	return p.all[int(p.turn.Add(1))%len(p.all)].Encode(w)
}

func (*pipes) Cancel(context.Context, remote.Work) error { return nil }

// BenchmarkLanes is a small lane that another process does, over PostgreSQL alone: its order and its result are
// items on the board of the run, and its record is in the journal. Batches have 50 lanes, and 1, 2 or 4 worker
// processes do them.
func BenchmarkLanes(b *testing.B) {
	server := pgtest.New(b)
	for _, workers := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("%d/stone", workers), func(b *testing.B) { benchLanes(b, server, workers) })
	}
}

func benchLanes(b *testing.B, server *pgtest.Server, workers int) {
	address := server.Database(b)
	db, err := postgres.Open(b.Context(), address, postgres.Options{})
	if err != nil {
		b.Fatal(err)
	}
	carrier, end := hire(b, address, workers)
	executor := remote.New(remote.Config{Journal: db, Carrier: carrier, Routes: []remote.Route{{Leaf: "work", Pool: "workers", Batch: 50}}})
	number := 0
	run := func() error {
		number++
		res, err := stone.Run(context.Background(), stoneFan(lanes()), stone.Config{RunID: fmt.Sprint("run-", number), Recorder: journal.Keep(db, journal.Options{}), Executor: executor})
		if err != nil {
			return err
		}
		sum, err := aTotal.Of(res.Node)
		if err == nil && sum.Lanes != lanes() {
			err = fmt.Errorf("%d of %d lanes have a result", sum.Lanes, lanes())
		}
		return err
	}
	debug.FreeOSMemory()
	served := watch(b, server, address)
	b.ResetTimer()
	before := cpuTime(b)
	for b.Loop() {
		if err := run(); err != nil {
			b.Fatal(err)
		}
	}
	n := number * lanes()
	b.ReportMetric(float64(cpuTime(b)-before)/float64(n), "cpu-ns/lane")
	b.ReportMetric(0, "ns/op")
	served.report(b, "lane", n)
	b.ReportMetric(float64(end())/float64(n), "worker-cpu-ns/lane")
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
}

// hire starts worker processes. End ends them, and returns their CPU time.
func hire(b *testing.B, address string, n int) (carrier *pipes, end func() time.Duration) {
	b.Helper()
	carrier = &pipes{lock: make(chan struct{}, 1)}
	var all []*exec.Cmd
	var inputs []io.Closer
	for range n {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), laneWorker+"="+address, "STONE_LANES="+strconv.Itoa(lanes()))
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { in.Close(); cmd.Wait() })
		all, inputs, carrier.all = append(all, cmd), append(inputs, in), append(carrier.all, json.NewEncoder(in))
	}
	return carrier, func() (used time.Duration) {
		for i, cmd := range all {
			inputs[i].Close()
			if err := cmd.Wait(); err != nil {
				b.Error(err)
			}
			u := cmd.ProcessState.SysUsage().(*syscall.Rusage)
			used += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
		return used
	}
}
