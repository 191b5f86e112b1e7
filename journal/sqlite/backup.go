package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Backup writes a copy of the database to a new file, and returns its size in bytes. The copy is a consistent snapshot. Other
// processes can read and write without delay while it is written. The copy has no free pages, so it may be smaller than the
// original. When Backup returns, the copy is complete on disk. Only the file's owner can read it. Backup never replaces an
// existing file.
func (db *DB) Backup(ctx context.Context, name string) (size int64, err error) {
	if _, err := os.Lstat(name); err == nil {
		return 0, fmt.Errorf("backup %s: the file exists: name a new one", name)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("backup: %w", err)
	}
	dir, err := filepath.Abs(filepath.Dir(name)) // SQLite would interpret a name such as file:x as a URI
	if err != nil {
		return 0, fmt.Errorf("backup %s: %w", name, err)
	}
	part, err := os.CreateTemp(dir, ".stone-backup-*")
	if err != nil {
		return 0, fmt.Errorf("backup %s: %w", name, err)
	}
	defer func() {
		part.Close()
		os.Remove(part.Name())
	}()
	// VACUUM INTO reads everything in one transaction. SQLite's backup API would also copy free pages, and would start again
	// whenever another process has written.
	if _, err := db.file.pool.ExecContext(ctx, "VACUUM INTO ?", part.Name()); err != nil {
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return 0, fmt.Errorf("backup %s: %w", name, db.file.Explain(err))
	}
	info, err := part.Stat()
	if err = errors.Join(err, part.Sync()); err != nil {
		return 0, fmt.Errorf("backup %s: %w", name, err)
	}
	if err = os.Link(part.Name(), name); err != nil && !errors.Is(err, fs.ErrExist) { // the file system has no hard links
		err = os.Rename(part.Name(), name)
	}
	if err != nil {
		return 0, fmt.Errorf("backup: %w", err)
	}
	return info.Size(), syncFolder(dir)
}

// syncFolder makes the name of a new file durable. It does nothing on systems that cannot sync folders.
func syncFolder(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	_ = dir.Sync() // Windows cannot sync folders
	return dir.Close()
}

// Verify implements [log.Verifier].
func (f *file) Verify(ctx context.Context, found func(string)) error {
	faults, err := all(ctx, f.reader, scanText, "PRAGMA integrity_check")
	if err != nil {
		return err
	}
	for _, fault := range faults {
		if fault != "ok" {
			found("is damaged: " + strings.Join(strings.Fields(fault), " "))
		}
	}
	if err := f.tables(ctx, found); err != nil {
		return err
	}
	for _, table := range []string{"records", "questions", "blocks", "labels", "batches", "receivers", "outbox"} {
		run := "run"
		if table == "records" {
			run = "seq >> 32"
		}
		var n int
		err := f.pool.QueryRowContext(ctx, "SELECT count(*) FROM "+table+" WHERE "+run+" NOT IN (SELECT run FROM runs)").Scan(&n)
		if err != nil {
			return err
		}
		if n > 0 {
			found(fmt.Sprintf("has %d rows in the table %s of runs that it does not have", n, table))
		}
	}
	return nil
}

// tables compares the file's tables and indexes with a new database's.
func (f *file) tables(ctx context.Context, found func(string)) error {
	fresh, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return err
	}
	defer fresh.Close()
	fresh.SetMaxOpenConns(1) // each connection has its own database
	if _, err := fresh.ExecContext(ctx, schema); err != nil {
		return err
	}
	const query = "SELECT type || ' ' || name || char(0) || coalesce(sql, '') FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY name"
	statements := &statements{on: fresh}
	defer statements.close()
	want, err := all(ctx, reader{statements}, scanText, query)
	if err != nil {
		return err
	}
	got, err := all(ctx, f.reader, scanText, query)
	if err != nil {
		return err
	}
	for _, each := range want {
		if !slices.Contains(got, each) {
			name, _, _ := strings.Cut(each, "\x00")
			found("lacks the " + name + ", or has another one")
		}
	}
	return nil
}

func scanText(rows *sql.Rows) (s string, err error) { return s, rows.Scan(&s) }
