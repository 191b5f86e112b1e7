package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/stonelayer/stone/internal/stores"
	"github.com/stonelayer/stone/journal/internal/log"
)

// Options configure a DB. The zero value suits most programs.
type Options struct {
	// Lease is the time for which a run belongs to this DB after the last renewal of its lease. Another process must wait for the
	// same time before it takes over a run whose process has died. Zero means 5 seconds.
	Lease time.Duration
	// Retry is the time for which a failed read or write is retried before its error is returned, for example while the server
	// restarts. Zero means 5 seconds.
	Retry time.Duration
	// RetryResults is like Retry, but for the results of steps, which may have cost money. Zero means 2 minutes. If it is less than
	// Retry, Retry applies. A result that has not been written by then is still written as soon as possible while the DB is open.
	// If writes fail for longer than Retry, this is logged once, with slog.Default.
	RetryResults time.Duration
	// Listen is the address of the server itself. It is needed for notifications if the address passed to Open belongs to a pooler
	// such as PgBouncer, because notifications require a session. Without notifications, followers of runs poll.
	Listen string
}

// DB is a [journal.Journal] that stores runs in a PostgreSQL database. Its methods are described there, and are safe for concurrent
// use by any number of runs. Close writes the queued results, gives up all leases and closes the connections; its error states how
// many results are lost, if any. Close the DB only after its runs have returned, because running steps fail with journal.ErrClosed.
type DB struct {
	*shared
	database *database
}

type shared = log.Journal

// Tests change these variables: the function called at the points where they kill the process, the clock, the poll interval of
// Follow, and the maximum size of a row's content.
var (
	reached     log.Points
	now         = time.Now
	poll        = time.Second
	mostContent = 256 << 20
)

// readers is the maximum number of connections that read at the same time.
const readers = 8

// database is the [log.Database] of a DB.
type database struct {
	name      string
	config    *pgconn.Config
	listening *pgconn.Config
	retry     time.Duration
	patience  time.Duration // time to wait for a response from the server
	idle      time.Duration // time after which the server ends a transaction if this process sends nothing

	reader
	pool *pool
	news *news
	id   atomic.Int64 // number of this process; 0 before its first commit

	// Used only by the goroutine that writes.
	writer  *pgconn.PgConn
	commits int64 // number of the last attempted commit
	lost    int   // number of transactions lost since the last commit
}

// Open connects to the database with the given address, such as "postgres://user:password@host/name" or "host=… user=… dbname=…".
// Missing parts of the address, including TLS settings, are taken from the environment (PGHOST, PGPASSWORD, PGSSLMODE, …), as in
// PostgreSQL's own programs. Open creates missing tables, and refuses a schema with a different version.
func Open(ctx context.Context, address string, opts Options) (*DB, error) {
	d, err := connect(ctx, address, &opts)
	if err != nil {
		return nil, err
	}
	if err := d.current(ctx); err != nil {
		return nil, errors.Join(d.Explain(err), d.Close())
	}
	return &DB{log.New(d, log.Options{
		Lease: opts.Lease, Retry: opts.Retry, RetryResults: opts.RetryResults, Poll: poll, Schema: version,
		Now: func() time.Time { return now() }, Reached: reached.Reached,
	}), d}, nil
}

func parse(address string) (*pgconn.Config, error) {
	config, err := pgconn.ParseConfig(address)
	if err != nil { // the text of the error may contain the password
		return nil, errors.New("the address of the database cannot be read: want one like postgres://user:password@host:5432/name?sslmode=verify-full")
	}
	return config, nil
}

func nameOf(c *pgconn.Config) string {
	at := c.Host
	if !strings.HasPrefix(at, "/") {
		at = net.JoinHostPort(c.Host, fmt.Sprint(c.Port))
	}
	return fmt.Sprintf("postgres://%s@%s/%s", c.User, at, cmp.Or(c.Database, c.User))
}

// connect connects to a database without checking the schema, and sets missing options to their defaults.
func connect(ctx context.Context, address string, opts *Options) (*database, error) {
	config, err := parse(address)
	if err != nil {
		return nil, err
	}
	d := &database{name: "database " + nameOf(config), config: config, listening: config}
	if opts.Listen != "" {
		if d.listening, err = parse(opts.Listen); err != nil {
			return nil, fmt.Errorf("Listen: %w", err)
		}
	}
	if opts.Lease < 0 || opts.Retry < 0 || opts.RetryResults < 0 {
		return nil, fmt.Errorf("%s: Lease %v, Retry %v and RetryResults %v must not be negative", d.name, opts.Lease, opts.Retry, opts.RetryResults)
	}
	opts.Lease, opts.Retry = cmp.Or(opts.Lease, 5*time.Second), cmp.Or(opts.Retry, 5*time.Second)
	opts.RetryResults = max(opts.Retry, cmp.Or(opts.RetryResults, 2*time.Minute))
	d.retry, d.patience, d.idle = opts.Retry, max(opts.Retry, opts.Lease), max(opts.Lease/4, 250*time.Millisecond)
	for _, c := range []*pgconn.Config{d.config, d.listening} {
		if c.RuntimeParams["application_name"] == "" {
			c.RuntimeParams["application_name"] = "stone"
		}
	}
	d.reader, d.pool, d.news = reader{d}, &pool{config: config, places: make(chan struct{}, readers), idle: make(chan *pgconn.PgConn, readers)}, newNews(d)
	if err := d.suits(ctx); err != nil {
		return nil, errors.Join(d.Explain(err), d.Close())
	}
	return d, nil
}

// suits checks the server settings that the guarantees depend on.
func (d *database) suits(ctx context.Context) error {
	found, err := rows(ctx, d.reader, func(v [][]byte) [2]string { return [2]string{string(v[0]), string(v[1])} },
		"SELECT current_setting('synchronous_commit'), current_setting('server_encoding')")
	switch {
	case err != nil:
		return err
	case found[0][0] == "off":
		return fmt.Errorf("%s has synchronous_commit off, which loses acknowledged steps: set it on for this user", d.name)
	case found[0][1] != "UTF8":
		return fmt.Errorf("%s has the encoding %s: create the database with the encoding UTF8", d.name, found[0][1])
	}
	return nil
}

// within returns a context that limits the time for a response from the server. It adds a second for each megabyte sent, because
// otherwise a large commit might never succeed on a busy server.
func (d *database) within(ctx context.Context, bytes int) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d.patience+time.Duration(bytes>>20)*time.Second, errSlow)
}

// Name implements [log.Database].
func (d *database) Name() string { return d.name }

// Check implements [log.Database]. It does nothing, because the next commit fails if the database was removed.
func (d *database) Check() error { return nil }

// Idle implements [log.Database]. It closes unused connections for reads.
func (d *database) Idle() error {
	d.pool.shrink()
	return nil
}

// Close implements [log.Database].
func (d *database) Close() error {
	n := d.news
	n.mu.Lock()
	n.stop()
	n.mu.Unlock()
	n.running.Wait()
	if d.writer != nil {
		ctx, cancel := d.within(background, 0)
		defer cancel()
		// If this fails, another process will eventually remove the row.
		_ = exchange(ctx, d.writer, statement{text: "DELETE FROM stone.writers WHERE writer = $1", args: []any{d.id.Load()}})
		drop(d.writer)
	}
	d.pool.close()
	return nil
}

// Part lets a program store runs in PostgreSQL; see cli.Part.
var Part = stores.Server{
	Open: func(ctx context.Context, address, listen string) (stores.Store, error) {
		db, err := Open(ctx, address, Options{Listen: listen})
		if err != nil {
			return nil, err
		}
		return db, nil
	},
	Secret: func(address string) string {
		config, err := parse(address)
		if err != nil {
			return "" // Open will return the error
		}
		return config.Password
	},
}
