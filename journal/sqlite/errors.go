package sqlite

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/stonelayer/stone/journal/internal/log"
)

const noSpace = "has no space left: free some space on its disk"

// Passing implements [log.Database].
func (f *file) Passing(err error) bool {
	var e *driver.Error
	if !errors.As(err, &e) {
		return false
	}
	switch e.Code() & 0xff {
	case codes.SQLITE_BUSY, codes.SQLITE_LOCKED, codes.SQLITE_FULL, codes.SQLITE_IOERR:
		return true
	}
	return false
}

// Explain implements [log.Database]. The error names the file, the problem and the remedy.
func (f *file) Explain(err error) error {
	var e *driver.Error
	if errors.As(err, new(*log.Trouble)) || !errors.As(err, &e) {
		return err
	}
	what, passing := "failed", f.Passing(err)
	switch e.Code() & 0xff { // the other bits contain details
	case codes.SQLITE_BUSY, codes.SQLITE_LOCKED:
		what = "is locked: end the program that holds it, or try again later"
	case codes.SQLITE_READONLY:
		what = "cannot be written: check the permissions of the file and of its directory"
	case codes.SQLITE_FULL:
		what = noSpace
	case codes.SQLITE_IOERR:
		what = "cannot be read or written: check its disk"
		if int(e.Code()) == 10|19<<8 { // SQLITE_IOERR_SHMSIZE; all other writes report a full disk as SQLITE_FULL
			what = noSpace
		}
	case codes.SQLITE_CANTOPEN:
		what = "cannot be opened: check that its directory exists and may be written"
		// SQLite does not report that the process has too many open files.
		probe, err := os.Open(f.path)
		if err == nil {
			probe.Close()
		} else if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			what = "cannot be opened: too many files are open: raise the limit, for example with ulimit -n, or run fewer steps at once"
			passing = true
		}
	case codes.SQLITE_NOTADB:
		what = "is no SQLite database: name another file"
	case codes.SQLITE_CORRUPT:
		what = "is damaged: restore a copy, or move it away to start again"
	}
	return &log.Trouble{What: fmt.Sprintf("database %s %s", f.name, what), Err: err, Passing: passing}
}
