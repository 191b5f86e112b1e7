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

// Options configure a DB. The zero value suits most programs.
type Options struct {
	// Lease is the time for which a run belongs to this DB after the last renewal of its lease. A process that resumes a run after
	// a crash must wait for the same time. Zero means 5 seconds.
	Lease time.Duration
	// Retry is the time for which a failed write is retried before its error is returned, for example if the disk is full or the
	// file is locked. Zero means 5 seconds.
	Retry time.Duration
	// RetryResults is like Retry, but for the results of steps, which may have cost money. Zero means 2 minutes. If it is less than
	// Retry, Retry applies. A result that has not been written by then is still written as soon as possible while the DB is open.
	// If writes fail for longer than Retry, this is logged once, with slog.Default.
	RetryResults time.Duration
	// ReadOnly means that an existing file is opened only for reading. Every write then fails.
	ReadOnly bool
}

// DB is a [journal.Journal] that stores runs in an SQLite file. Its methods are described there, and are safe for concurrent use by
// any number of runs. Close writes the queued results, gives up all leases and closes the file; its error states how many results
// are lost, if any. Close the DB only after its runs have returned, because running steps fail with journal.ErrClosed.
type DB struct {
	*shared
	file *file
}

type shared = log.Journal

// Tests change these variables: the function called at the points where they kill the process, the clock, the poll interval of
// Follow, and the number of connections for reads.
var (
	reached log.Points
	now     = time.Now
	poll    = 200 * time.Millisecond
	readers = 8
)

// Memory, passed to Open as the name, means a temporary file that is removed when the DB is closed. It is meant for tests, and for
// runs that are resumed only within the same program. Writes to this file never wait for the disk.
const Memory = ":memory:"

// Open opens the file, and creates it if it does not exist; its directory must exist. It returns an error if the file belongs to a
// different program or has a different schema version. Reading requires neither the write lock nor write permission.
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

// Check implements [log.Database]. It checks that the file's name still belongs to the file that was opened.
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
