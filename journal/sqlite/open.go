package sqlite

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver
)

// Options of a DB. The zero value is what most programs want.
type Options struct {
	// Lease is how long a run stays with this DB after its last sign of life;
	// a process that resumes a run after a crash waits as long. 5 s if zero.
	Lease time.Duration
	// Retry is how long a step waits for a write that fails, as it does on a
	// full disk or a locked file, before it reports the error. 5 s if zero.
	// A result that is not written by then is still written when that becomes
	// possible, as long as the DB is open.
	Retry time.Duration
}

// DB is a [journal.Journal] over a SQLite file. It may serve several runs and
// goroutines at once.
type DB struct {
	file  string
	owner string // host/pid/nonce
	opts  Options
	sql   *sql.DB
	out   *writer
	now   func() time.Time // what rows are stamped with

	mu     sync.Mutex
	runs   map[string]*run
	closed bool
}

//go:embed schema.sql
var schema string

const (
	version     = 2          // of the schema
	application = 0x73746e65 // "stne" marks the file as ours
)

// ErrClosed is returned for what is wanted of a DB after Close.
var ErrClosed = errors.New("the journal is closed: open it again")

// Open opens the file, and makes it if there is none; its directory must exist.
// It refuses files of other programs and of newer versions of this one. Close
// the DB when its runs have returned.
func Open(file string, opts Options) (*DB, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", file, err)
	}
	var nonce [4]byte
	rand.Read(nonce[:]) // never fails
	db := &DB{
		file: file, owner: fmt.Sprintf("%s/%d/%s", hostname(), os.Getpid(), hex.EncodeToString(nonce[:])),
		opts: Options{Lease: cmp.Or(opts.Lease, 5*time.Second), Retry: cmp.Or(opts.Retry, 5*time.Second)},
		runs: map[string]*run{}, now: time.Now,
	}
	if opts.Lease < 0 || opts.Retry < 0 {
		return nil, fmt.Errorf("database %s: Lease %v and Retry %v must not be negative", file, opts.Lease, opts.Retry)
	}
	if db.sql, err = sql.Open("sqlite", db.source(abs)); err != nil {
		return nil, db.explain(err)
	}
	if err = db.prepare(); err == nil {
		db.out, err = db.startWriter()
	}
	if err != nil {
		return nil, errors.Join(db.explain(err), db.sql.Close())
	}
	return db, nil
}

// source says how connections are opened. SQLite waits for locks of other
// processes for half of the time that a caller does, so that it is the one who
// says what is wrong. A page of 8 KB holds five steps with 1 KB of content each,
// where one of 4 KB holds two and is empty for a third. The log is copied into the
// file when it has 32 MB.
func (db *DB) source(abs string) string {
	pragmas := url.Values{"_pragma": {
		fmt.Sprintf("busy_timeout(%d)", db.opts.Retry.Milliseconds()/2),
		"page_size(8192)", "synchronous(FULL)", "cache_size(-8192)", "wal_autocheckpoint(4096)",
	}}
	path := filepath.ToSlash(abs)
	if path[0] != '/' { // a drive of Windows
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: pragmas.Encode()}).String()
}

// walMode is remembered by the file. It is not among the pragmas of source: it makes
// the first page, and the driver does those in the order of the alphabet.
const walMode = "PRAGMA journal_mode = WAL"

// prepare makes the tables of a new file, and checks whose an old one is.
func (db *DB) prepare() error {
	ctx := context.Background()
	conn, err := db.sql.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err = conn.ExecContext(ctx, walMode); err != nil {
		return err
	}
	// A lock is taken although nothing may have to be written: a file that
	// cannot be written is refused here and not after the first paid call.
	if _, err = conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	if err = db.migrate(ctx, conn); err != nil {
		_, rollback := conn.ExecContext(ctx, "ROLLBACK")
		return errors.Join(err, rollback)
	}
	_, err = conn.ExecContext(ctx, "COMMIT")
	return err
}

func (db *DB) migrate(ctx context.Context, conn *sql.Conn) error {
	var made, app, tables int
	err := conn.QueryRowContext(ctx, `SELECT (SELECT user_version FROM pragma_user_version),
		(SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_schema)`).Scan(&made, &app, &tables)
	switch {
	case err != nil:
		return err
	case tables == 0:
		_, err = conn.ExecContext(ctx, fmt.Sprintf("%s; PRAGMA user_version = %d; PRAGMA application_id = %d", schema, version, application))
		return err
	case app != application:
		return fmt.Errorf("database %s belongs to another program: name another file", db.file)
	case made != version:
		return fmt.Errorf("database %s has schema %d, this program knows %d: use the version that made it, or a newer one", db.file, made, version)
	}
	// A file that was cut off shows when each table is touched.
	if _, err = conn.ExecContext(ctx, "SELECT max(seq) FROM records UNION SELECT max(seq) FROM questions UNION SELECT max(run) FROM runs"); err != nil {
		return err
	}
	// On a file that may only be read a write transaction is one that reads.
	_, err = conn.ExecContext(ctx, "DELETE FROM runs WHERE 0")
	return err
}

// Close writes what is not written yet, gives up all leases and closes the file.
// The error says how many results, if any, are lost. Call it when the runs have
// returned: steps under way fail with ErrClosed.
func (db *DB) Close() error {
	db.mu.Lock()
	if db.closed {
		db.mu.Unlock()
		return nil
	}
	db.closed = true
	runs := slices.Collect(maps.Values(db.runs))
	db.mu.Unlock()
	for _, r := range runs {
		r.stopLoading()
	}
	err := db.out.close()
	return errors.Join(err, db.sql.Close())
}
