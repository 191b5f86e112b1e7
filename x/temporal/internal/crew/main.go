// Command crew is a process in the tests of package servertest: a worker, or a program that starts a run and prints its result.
// It links no server, so it uses as much memory as a user's program with Stone and Temporal's SDK.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/postgres"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/x/temporal"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: crew worker | start")
		os.Exit(2)
	}
	if err := play(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, os.Args[1]+":", err)
		os.Exit(1)
	}
}

// setting returns the number in an environment variable.
func setting(name string, usual int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return usual
}

var (
	lists   = dag.NewType[[][]int]("lists")
	list    = dag.NewType[[]int]("list")
	entry   = dag.NewType[int]("entry")
	result  = dag.NewType[int]("result")
	partial = dag.NewType[int]("partial")
	total   = dag.NewType[int]("total")
)

// reply is the result of a call. A call costs a dollar.
type reply struct {
	N     int          `json:"n"`
	Usage budget.Usage `json:"usage"`
}

// call stands for a call to a service. It takes STONE_LEAF_MS milliseconds, and writes its start and end to the ledger. A call of
// 0 ms writes nothing and costs nothing.
func call(ctx context.Context, i int) (int, error) {
	duration := time.Duration(setting("STONE_LEAF_MS", 500)) * time.Millisecond
	if duration == 0 {
		return i, nil
	}
	draw, err := budget.From(ctx).Draw(ctx, stone.In(ctx), "call", budget.Fixed(budget.Amount{Roundtrips: 1, USD: 1}))
	if err != nil {
		return 0, err
	}
	defer draw.Close()
	r, err := stone.Step(draw.Context(ctx), "call", i, func(ctx context.Context, i int) (r reply, err error) {
		visit := visits.Add(1)
		if err := errors.Join(draw.Begin(), ledger("start", i, visit)); err != nil {
			return r, err
		}
		select {
		case <-time.After(duration):
		case <-ctx.Done():
			return r, errors.Join(context.Cause(ctx), ledger("stop", i, visit))
		}
		return reply{i, budget.Usage{USD: 1}}, ledger("end", i, visit)
	})
	if err != nil {
		return 0, err
	}
	draw.End(r.Usage)
	return r.N, nil
}

// pipelines returns two pipelines: all, which runs over the chunks of its input, and chunk, a child that processes one chunk and
// may spend twice the cost of its items.
func pipelines(children journal.Starter) (all, chunk stone.Ashlar) {
	chunk = stone.Seq("chunk",
		stone.Map("each", list, entry, stone.Func("call", entry, result, call), stone.Lanes(setting("STONE_LANES", 8)), stone.AllLanes()),
		stone.Reduce(stone.Func("sum", dag.All(result), partial, add)))
	limits := budget.Limits{USD: new(2 * float64(setting("STONE_CHUNK", 25)))}
	return stone.Seq("all",
		stone.Map("chunks", lists, list, journal.Elsewhere("chunk", chunk, limits, children), stone.AllLanes()),
		stone.Reduce(stone.Func("total", dag.All(partial), total, add))), chunk
}

func add(_ context.Context, all []int) (sum int, err error) {
	for _, i := range all {
		sum += i
	}
	return sum, nil
}

// start starts the run "killed", waits until it ends, and prints its total.
func start(ctx context.Context, c client.Client, db journal.Journal, p stone.Ashlar) error {
	items := make([]int, setting("STONE_LEAVES", 300))
	for i := range items {
		items[i] = i
	}
	input := dag.Of(lists.With(slices.Collect(slices.Chunk(items, setting("STONE_CHUNK", 25)))))
	began := time.Now()
	if err := temporal.Start(ctx, c, db, temporal.Run{ID: "killed", Pipeline: p, Input: input, Pool: "killed"}); err != nil {
		return err
	}
	state, err := temporal.Wait(ctx, c, "killed")
	if err != nil || state != journal.Done {
		info, _ := db.Find(ctx, "killed")
		return fmt.Errorf("the run is %s: %v, %+v", state, err, info.Failure)
	}
	fmt.Fprintf(os.Stderr, "%d items in %v\n", len(items), time.Since(began).Round(time.Millisecond))
	d, err := db.DAG(ctx, "killed")
	if err != nil {
		return err
	}
	sum, err := total.From(d)
	fmt.Println(sum)
	return err
}

var visits atomic.Int64 // number of visits of leaves in this process

func ledger(what string, i int, visit int64) error {
	f, err := os.OpenFile(os.Getenv("STONE_LEDGER"), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s %d %d %d %d\n", what, i, visit, os.Getpid(), time.Now().UnixMilli())
	return errors.Join(err, f.Close())
}

// play executes a role. STONE_PROFILE is the profile files' name prefix, if profiles are to be written.
func play(role string) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if name := os.Getenv("STONE_PROFILE"); name != "" {
		end, wrong := profile(fmt.Sprintf("%s.%s.%d", name, role, os.Getpid()))
		if wrong != nil {
			return wrong
		}
		defer func() { err = errors.Join(err, end()) }()
	}
	c, err := client.NewLazyClient(client.Options{
		HostPort: os.Getenv("STONE_SERVER"), Namespace: os.Getenv("STONE_NAMESPACE"),
		Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		return err
	}
	defer c.Close()
	db, err := openStore(ctx, os.Getenv("STONE_STORE"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	all, chunk := pipelines(temporal.Children(c, db, "killed"))
	if role == "start" {
		return start(ctx, c, db, all)
	}
	return temporal.Worker{Client: c, Journal: db, Pool: "killed", Pipelines: []stone.Ashlar{all, chunk}, Slots: setting("STONE_SLOTS", 4), Log: slog.New(slog.DiscardHandler),
		Prepare: func(ctx context.Context, run string, _ *stone.Config) context.Context {
			if run == "killed" && setting("STONE_BUDGET", 0) > 0 {
				ctx = budget.With(ctx, budget.New(budget.Limits{USD: new(float64(setting("STONE_BUDGET", 0)))}))
			}
			return ctx
		}}.Run(ctx)
}

// profile starts a CPU profile. The returned function writes this profile and a heap profile.
func profile(name string) (end func() error, err error) {
	cpu, err := os.Create(name + ".cpu")
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		memory, err := os.Create(name + ".mem")
		if err != nil {
			return errors.Join(err, cpu.Close())
		}
		return errors.Join(cpu.Close(), pprof.WriteHeapProfile(memory), memory.Close())
	}, nil
}

type store interface {
	journal.Journal
	Close() error
}

// openStore opens a PostgreSQL database if name is a URL, otherwise a SQLite file.
func openStore(ctx context.Context, name string) (store, error) {
	if strings.Contains(name, "://") {
		return postgres.Open(ctx, name, postgres.Options{Lease: 2 * time.Second})
	}
	return sqlite.Open(name, sqlite.Options{Lease: 2 * time.Second})
}
