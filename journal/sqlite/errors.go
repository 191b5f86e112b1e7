package sqlite

import (
	"errors"
	"fmt"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"
)

// HeldError reports that a run belongs to another DB, in this process or another.
type HeldError struct {
	File, Run string
	Owner     string // host/pid/nonce
}

// Error names the owner.
func (e *HeldError) Error() string {
	return fmt.Sprintf("run %q in %s is held by %s: wait until that process ends", e.Run, e.File, e.Owner)
}

// DamageError reports a record that does not read as it was written.
type DamageError struct {
	File, Run string
	Path      string // of the step, empty for a node that no step made
	Node      string // id of the node, empty if the record has none
	Reason    string
}

// Error names the place and what to do.
func (e *DamageError) Error() string {
	what := "its record"
	if e.Path != "" {
		what = "the record of " + e.Path
	}
	if e.Node != "" {
		what += fmt.Sprintf(" (node %.12s)", e.Node)
	}
	return fmt.Sprintf("run %q in %s: %s %s: restore a copy of the file, or begin a new run", e.Run, e.File, what, e.Reason)
}

// explain makes one line of an error of SQLite: the file, what is wrong, what to do.
func (db *DB) explain(err error) error {
	var e *driver.Error
	if !errors.As(err, &e) {
		return err
	}
	what := "failed"
	switch e.Code() & 0xff { // the rest of the bits are details
	case codes.SQLITE_BUSY, codes.SQLITE_LOCKED:
		what = "is locked: end the program that holds it, or try again later"
	case codes.SQLITE_READONLY:
		what = "cannot be written: check the permissions of the file and of its directory"
	case codes.SQLITE_FULL:
		what = "has no space left: make room on its disk"
	case codes.SQLITE_IOERR:
		what = "cannot be read or written: check its disk"
	case codes.SQLITE_CANTOPEN:
		what = "cannot be opened: check that its directory exists and may be written"
	case codes.SQLITE_NOTADB:
		what = "is no SQLite database: name another file"
	case codes.SQLITE_CORRUPT:
		what = "is damaged: restore a copy, or move it away to begin anew"
	}
	return fmt.Errorf("database %s %s: %w", db.file, what, err)
}
