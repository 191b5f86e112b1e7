package sqlite

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/internal/log"
)

// Options of a DB. The zero value suits most programs.
type Options struct {
	// Lease is how long a run stays with this DB after its last renewal; a process that resumes a run after a crash waits just as
	// long. 5 s if zero.
	Lease time.Duration
	// Retry is how long a failed write is retried before its error is reported, for
	// example on a full disk or a locked file. 5 s if zero.
	Retry time.Duration
	// RetryResults is the same for results of steps, which may have cost money. 2 minutes if zero, and at least Retry. A result
	// not written by then is still written as soon as possible while the DB is open. Trouble that lasts longer than Retry is
	// logged once, with slog.Default.
	RetryResults time.Duration
	// ReadOnly opens an existing file only for reading: every write fails.
	ReadOnly bool
}

// DB is a [journal.Journal] over a SQLite file. It may serve several runs and goroutines
// at once. See that interface for its methods. Close writes the queued results, gives up
// all leases and closes the file. The error of Close contains the number of lost results,
// if any. Close the DB when its runs have returned: running steps fail with journal.ErrClosed.
type DB struct {
	*shared
	file *file
}

type shared = log.Journal

// Changed by tests: the function called at the points at which they kill the process, the clock, the poll interval of Follow, and
// the number of reading connections.
var (
	reached log.Points
	now     = time.Now
	poll    = 200 * time.Millisecond
	readers = 8
)

// Memory names a temporary file that lives as long as its DB, for tests and for runs repeated within one program. It never waits
// for the disk.
const Memory = ":memory:"

// Open opens the file, and creates it if it does not exist; its directory must exist. It refuses other programs' files and files
// with another schema. Reading needs neither the write lock nor write permission.
func Open(name string, opts Options) (*DB, error) {
	temporary := ""
	if name == Memory {
		var err error
		if temporary, err = os.MkdirTemp("", "stone-"); err != nil {
			return nil, fmt.Errorf("database %s: %w", name, err)
		}
		name = filepath.Join(temporary, "stone.db")
	}
	abs, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", name, err)
	}
	if opts.Lease < 0 || opts.Retry < 0 || opts.RetryResults < 0 {
		return nil, fmt.Errorf("database %s: Lease %v, Retry %v and RetryResults %v must not be negative", name, opts.Lease, opts.Retry, opts.RetryResults)
	}
	opts.Lease, opts.Retry = cmp.Or(opts.Lease, 5*time.Second), cmp.Or(opts.Retry, 5*time.Second)
	opts.RetryResults = max(opts.Retry, cmp.Or(opts.RetryResults, 2*time.Minute))
	f := &file{name: name, path: abs, temporary: temporary, retry: opts.Retry, readOnly: opts.ReadOnly}
	if err := f.open(); err != nil {
		return nil, errors.Join(f.Explain(err), f.Close())
	}
	return &DB{log.New(f, log.Options{
		Lease: opts.Lease, Retry: opts.Retry, RetryResults: opts.RetryResults, Poll: poll, Schema: version,
		Now: func() time.Time { return now() }, Reached: reached.Reached,
	}), f}, nil
}

// Check implements [log.Database]: the file must be the one that was opened.
func (f *file) Check() error {
	if f.opened == nil {
		return nil
	}
	now, err := os.Stat(f.path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return gone(f.name, "was removed while it was open: later results are lost with it; put it back or start new runs")
	case err == nil && !os.SameFile(f.opened, now):
		return gone(f.name, "was replaced while it was open: later results are not in the new file; put the old one back or start new runs")
	}
	return nil // the next commit reports errors that matter
}

func gone(name, what string) error {
	return &log.Trouble{What: fmt.Sprintf("database %s %s", name, what), Err: journal.ErrGone}
}
