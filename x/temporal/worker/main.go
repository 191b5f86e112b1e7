// Package worker provides the main program of a Temporal worker; see package temporal:
//
//	func main() { worker.Main(pipeline) }
package worker

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/postgres"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/x/otlp"
	"github.com/stonelayer/stone/x/temporal"
)

// Main is the main function of a worker for pipelines. It parses the command line and executes runs until the process receives
// SIGTERM or SIGINT. --help lists the flags. If the address of the database contains a password, pass it in STONE_DB, because
// other users can see command lines.
func Main(pipelines ...stone.Ashlar) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := mainOf(ctx, os.Args[1:], os.Stderr, pipelines)
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, filepath.Base(os.Args[0])+":", err)
		os.Exit(1)
	}
}

func mainOf(ctx context.Context, args []string, out io.Writer, pipelines []stone.Ashlar) (err error) {
	flags := flag.NewFlagSet("worker", flag.ContinueOnError)
	flags.SetOutput(out)
	address := flags.String("temporal", "localhost:7233", "`address` of the Temporal server")
	namespace := flags.String("namespace", "default", "`namespace` on the server")
	pool := flags.String("pool", "stone", "`name` of the pool: a task queue")
	store := flags.String("db", "", "`database` of the runs: a file, or postgres://USER@HOST/NAME; STONE_DB, or else .stone/stone.db, if empty")
	slots := flags.Int("slots", 100, "runs held at once")
	grace := flags.Duration("grace", 30*time.Second, "how long running steps may take after SIGTERM")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if *slots < 1 || *grace <= 0 {
		return fmt.Errorf("--slots %d and --grace %v must be positive", *slots, *grace)
	}
	db, err := open(ctx, cmp.Or(*store, os.Getenv("STONE_DB"), ".stone/stone.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	c, err := client.NewLazyClient(client.Options{HostPort: *address, Namespace: *namespace, Logger: log.NewStructuredLogger(slog.Default())})
	if err != nil {
		return err
	}
	defer c.Close()
	w := temporal.Worker{Client: c, Journal: db, Pool: *pool, Pipelines: pipelines, Slots: *slots, Grace: *grace}
	export, err := otlp.FromEnv(os.Getenv)
	if err == nil && export.URL != "" {
		var live *otlp.Live
		if live, err = otlp.NewLive(export, func(line string) { slog.Warn(line) }); err == nil {
			defer live.Close()
			w.Prepare = func(ctx context.Context, _ string, cfg *stone.Config) context.Context {
				cfg.Watch = live
				return ctx
			}
		}
	}
	if err != nil {
		slog.Warn("telemetry: nothing is sent", "error", err)
	}
	return w.Run(ctx)
}

type store interface {
	journal.Journal
	Close() error
}

// open opens the database at an address, or the file with a name.
func open(ctx context.Context, name string) (store, error) {
	if strings.HasPrefix(name, "postgres://") || strings.HasPrefix(name, "postgresql://") {
		return postgres.Open(ctx, name, postgres.Options{})
	}
	return sqlite.Open(name, sqlite.Options{})
}
