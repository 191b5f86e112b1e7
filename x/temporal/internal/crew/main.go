// Command crew is a process in the tests of package servertest: a worker, or a program that starts runs and prints the
// sum of their results. It links no server, so it uses as much memory as a program of a user with Stone
// and Temporal's SDK.
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

// setting returns a number of the environment.
func setting(name string, usual int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return usual
}

var (
	list   = dag.NewType[[]int]("list")
	entry  = dag.NewType[int]("entry")
	result = dag.NewType[int]("result")
	total  = dag.NewType[int]("total")
)

// pipeline does the items of its input, a list. Each takes STONE_LEAF_MS milliseconds, and writes its start and end
// to the ledger, in place of a call to a service. Items of 0 ms write nothing.
func pipeline() stone.Ashlar {
	duration := time.Duration(setting("STONE_LEAF_MS", 500)) * time.Millisecond
	call := func(ctx context.Context, i int) (int, error) {
		visit := visits.Add(1)
		if err := ledger("start", i, visit); err != nil {
			return 0, err
		}
		select {
		case <-time.After(duration):
		case <-ctx.Done():
			return 0, errors.Join(context.Cause(ctx), ledger("stop", i, visit))
		}
		return i, ledger("end", i, visit)
	}
	if duration == 0 {
		call = func(_ context.Context, i int) (int, error) { return i, nil }
	}
	return stone.Seq("killed",
		stone.Map("each", list, entry, stone.Func("call", entry, result, call), stone.Lanes(setting("STONE_LANES", 8))),
		stone.Reduce(stone.Func("sum", dag.All(result), total, add)))
}

func add(_ context.Context, all []int) (sum int, err error) {
	for _, i := range all {
		sum += i
	}
	return sum, nil
}

// start starts STONE_LEAVES/STONE_CHUNK runs and waits for all.
func start(ctx context.Context, c client.Client, db journal.Journal) error {
	n, chunk := setting("STONE_LEAVES", 300), setting("STONE_CHUNK", 25)
	var items []int
	for i := range n {
		items = append(items, i)
	}
	var runs []string
	for some := range slices.Chunk(items, chunk) {
		run := temporal.Run{ID: fmt.Sprint("killed-", len(runs)), Pipeline: pipeline(), Input: dag.Of(list.With(some)), Pool: "killed"}
		if err := temporal.Start(ctx, c, db, run); err != nil {
			return err
		}
		runs = append(runs, run.ID)
	}
	var sums []int
	for _, run := range runs {
		if state, err := temporal.Wait(ctx, c, run); err != nil || state != journal.Done {
			return fmt.Errorf("run %s is %s: %w", run, state, err)
		}
		d, err := db.DAG(ctx, run)
		if err != nil {
			return err
		}
		sum, err := total.From(d)
		if err != nil {
			return err
		}
		sums = append(sums, sum)
	}
	sum, err := add(ctx, sums)
	fmt.Println(sum)
	return err
}

var visits atomic.Int64 // of leaves in this process

func ledger(what string, i int, visit int64) error {
	f, err := os.OpenFile(os.Getenv("STONE_LEDGER"), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s %d %d %d %d\n", what, i, visit, os.Getpid(), time.Now().UnixMilli())
	return errors.Join(err, f.Close())
}

// play plays a role. STONE_PROFILE is the prefix of the files for its profiles, if any.
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
	if role == "start" {
		return start(ctx, c, db)
	}
	return temporal.Worker{Client: c, Journal: db, Pool: "killed", Pipelines: []stone.Ashlar{pipeline()}, Slots: setting("STONE_SLOTS", 4), Log: slog.New(slog.DiscardHandler)}.Run(ctx)
}

// profile starts a CPU profile. The function it returns writes it, and a heap profile.
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
