package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/stonelayer/stone/journal/internal/log"
)

//go:embed schema.sql
var schema string

const (
	version     = 1          // version of the schema
	application = 0x73746e65 // "stne", marks the file as a journal
)

// file is the [log.Database] of a DB.
type file struct {
	name, path string
	temporary  string // folder that Close removes; empty if there is none
	retry      time.Duration
	readOnly   bool
	opened     os.FileInfo // nil if the file is not in the operating system's file system

	reader
	pool  *sql.DB // for reads
	write *sql.DB // for writes; has one connection
	conn  *sql.Conn
	tx    tx
	queue queue
}

// Name implements [log.Database].
func (f *file) Name() string { return "database " + f.name }

// patience is how long a transaction waits for its turn, and then again for locks of other processes. The total is half of the
// time that a caller waits, so that the caller receives SQLite's error.
func (f *file) patience() time.Duration { return f.retry / 4 }

// source returns the data source name for connections, with their options. The page size is 8 KB because such a page holds five
// steps with 1 KB of content each, while a page of 4 KB holds only two. The log is copied into the file when it reaches 32 MB.
// With synchronous=NORMAL, acknowledged steps would be lost in a power failure (see internal/test/powerloss).
func (f *file) source(more ...string) string {
	synchronous := "synchronous(FULL)"
	if f.temporary != "" {
		synchronous = "synchronous(OFF)"
	}
	query := url.Values{"_pragma": {
		fmt.Sprintf("busy_timeout(%d)", f.patience().Milliseconds()),
		"page_size(8192)", synchronous, "cache_size(-8192)", "wal_autocheckpoint(4096)",
	}}
	for _, name := range more {
		query.Set(name, "1")
	}
	path := filepath.ToSlash(f.path)
	if path[0] != '/' { // the path begins with a Windows drive
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}).String()
}

// walMode sets WAL mode, which is then stored in the file. It is not one of the pragmas in source, because the driver executes
// those in alphabetical order, and this one creates the first page.
const walMode = "PRAGMA journal_mode = WAL"

// open opens the file for reading, and creates it first if it is new.
func (f *file) open() error {
	if !f.readOnly {
		f.claim()
	} else if _, err := os.Stat(f.path); err != nil { // SQLite would create the file
		return fmt.Errorf("database %s: %w", f.name, err)
	}
	tables, err := f.look(f.source())
	if err != nil && f.unwritable() {
		// A file without a log has no writer. If neither the file nor its directory can be written, the file can be read only in
		// this mode.
		tables, err = f.look(f.source("immutable"))
	}
	if err == nil && tables == 0 && f.readOnly {
		err = fmt.Errorf("database %s has no tables", f.name)
	}
	if err == nil && tables == 0 {
		if err = f.make(); err == nil {
			_, err = f.look(f.source())
		}
	}
	if err == nil {
		if f.opened, err = os.Stat(f.path); errors.Is(err, os.ErrNotExist) {
			f.opened, err = nil, nil
		}
	}
	return err
}

// claim creates a new file that only its owner can read, because it will contain prompts. SQLite creates its logs with the same
// permissions. If claim fails, SQLite will report the error.
func (f *file) claim() {
	if made, err := os.OpenFile(f.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil {
		made.Close()
	}
}

// unwritable reports whether the file has no log, and none can be created in its directory.
func (f *file) unwritable() bool {
	if _, err := os.Stat(f.path + "-wal"); err == nil {
		return false
	}
	beside, err := os.CreateTemp(filepath.Dir(f.path), ".stone-*")
	if err == nil {
		beside.Close()
		os.Remove(beside.Name())
	}
	return errors.Is(err, os.ErrPermission)
}

// look opens the connections for reads, and checks that the file is a journal. It returns the number of tables.
func (f *file) look(source string) (tables int, err error) {
	if f.pool != nil {
		f.reader.sql.close()
		f.pool.Close()
	}
	if f.pool, err = sql.Open("sqlite", source); err != nil {
		return 0, err
	}
	f.pool.SetMaxOpenConns(readers)
	f.reader = reader{&statements{on: f.pool}}
	var app, made int
	err = f.pool.QueryRow(`SELECT (SELECT user_version FROM pragma_user_version),
		(SELECT application_id FROM pragma_application_id), (SELECT count(*) FROM sqlite_schema)`).Scan(&made, &app, &tables)
	switch {
	case err != nil || tables == 0:
		return tables, err
	case app != application:
		return tables, fmt.Errorf("database %s belongs to another program: name another file", f.name)
	case made != version:
		return tables, fmt.Errorf("database %s has schema %d, this program knows %d: use the version that made it, or a newer one", f.name, made, version)
	}
	// Reading from each table detects a truncated file.
	_, err = f.pool.Exec("SELECT max(seq) FROM records UNION SELECT max(seq) FROM questions UNION SELECT max(run) FROM runs")
	return tables, err
}

// patiently repeats an operation after temporary errors.
func (f *file) patiently(do func() error) error {
	err := do()
	for started := time.Now(); err != nil && f.Passing(err) && time.Since(started) < f.retry; {
		time.Sleep(10 * time.Millisecond)
		err = do()
	}
	return err
}

// make creates the tables in a new file. Several processes may call it at the same time.
func (f *file) make() error {
	if err := f.patiently(f.connect); err != nil {
		return err
	}
	return f.transact(func() error {
		var tables int
		if err := f.conn.QueryRowContext(background, "SELECT count(*) FROM sqlite_schema").Scan(&tables); err != nil || tables > 0 {
			return err
		}
		_, err := f.conn.ExecContext(background, fmt.Sprintf("%s; PRAGMA user_version = %d; PRAGMA application_id = %d", schema, version, application))
		return err
	})
}

var background = context.Background()

// connect opens the connection for writes. It is called before the first write.
func (f *file) connect() (err error) {
	switch {
	case f.readOnly:
		return fmt.Errorf("database %s was opened only to be read", f.name)
	case f.conn != nil:
		return nil
	}
	if f.write == nil {
		if f.write, err = sql.Open("sqlite", f.source()); err != nil {
			return err
		}
		f.write.SetMaxOpenConns(1)
	}
	conn, err := f.write.Conn(background)
	if err != nil {
		return err
	}
	if _, err = conn.ExecContext(background, walMode); err != nil {
		return errors.Join(err, conn.Close())
	}
	f.conn, f.tx = conn, tx{reader{&statements{on: conn}}}
	return nil
}

// Update implements [log.Database].
func (f *file) Update(do func(log.Tx) error) error {
	if err := f.connect(); err != nil {
		return err
	}
	return f.transact(func() error { return do(f.tx) })
}

func (f *file) transact(do func() error) error {
	if f.queue.enter(f.path+"-wal", f.patience()) {
		defer f.queue.leave()
	}
	if _, err := f.tx.do("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	err := do()
	if err == nil {
		_, err = f.tx.do("COMMIT")
	}
	if err != nil {
		// If the rollback fails, SQLite has already rolled back, for example because the disk is full.
		_, _ = f.tx.do("ROLLBACK")
	}
	return err
}

// Listen implements [log.Database]. SQLite has no notifications, so followers poll.
func (f *file) Listen(func()) {}

// Idle implements [log.Database]. It copies the log into the file, so less data is lost if the log is lost.
func (f *file) Idle() error {
	if f.conn == nil {
		return nil
	}
	_, err := f.conn.ExecContext(background, "PRAGMA wal_checkpoint(PASSIVE)")
	return err
}

// Close implements [log.Database]. It closes all statements, because an open statement would prevent SQLite from closing the file
// and removing the log.
func (f *file) Close() error {
	errs := []error{f.queue.close()}
	if f.conn != nil {
		errs = append(errs, f.tx.sql.close(), f.conn.Close())
	}
	if f.pool != nil {
		errs = append(errs, f.reader.sql.close(), f.pool.Close())
	}
	if f.write != nil { // closed last, because this connection can remove the log
		errs = append(errs, f.write.Close())
	}
	if f.temporary != "" {
		errs = append(errs, os.RemoveAll(f.temporary))
	}
	return errors.Join(errs...)
}
