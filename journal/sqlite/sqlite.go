package sqlite

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/stonelayer/stone/journal/internal/log"
)

// Options of a DB. The zero value is what most programs want.
type Options struct {
	// Lease is how long a run stays with this DB after its last sign of life;
	// a process that resumes a run after a crash waits as long. 5 s if zero.
	Lease time.Duration
	// Retry is how long a write that fails is tried again before its error is
	// reported, as on a full disk or a locked file. 5 s if zero.
	Retry time.Duration
	// RetryResults is the same for the result of a step, which may have cost
	// something. 2 minutes if zero, and at least Retry. A result that is not
	// written by then is still written when that becomes possible, as long as
	// the DB is open.
	RetryResults time.Duration
}

// DB is a [journal.Journal] over a SQLite file. It may serve several runs and
// goroutines at once. See that interface for its methods; Close writes what is not
// written yet, gives up all leases and closes the file. The error of Close says how
// many results, if any, are lost. Close the DB when its runs have returned: steps
// under way fail with ErrClosed.
type DB struct {
	*shared
	file *file
}

type shared = log.Journal

// ErrClosed is returned for what is wanted of a DB after Close.
var ErrClosed = log.ErrClosed

// What tests change: what is called at the points at which they kill the process,
// the clock, and how often Follow looks for what other processes did.
var (
	reached = func(string) {}
	now     = time.Now
	poll    = 200 * time.Millisecond
)

// Open opens the file, and makes it if there is none; its directory must exist.
// It refuses files of other programs and of newer versions of this one. Reading
// needs neither the lock of writers nor the right to write.
func Open(name string, opts Options) (*DB, error) {
	abs, err := filepath.Abs(name)
	if err != nil {
		return nil, fmt.Errorf("database %s: %w", name, err)
	}
	if opts.Lease < 0 || opts.Retry < 0 || opts.RetryResults < 0 {
		return nil, fmt.Errorf("database %s: Lease %v, Retry %v and RetryResults %v must not be negative", name, opts.Lease, opts.Retry, opts.RetryResults)
	}
	opts.Lease, opts.Retry = cmp.Or(opts.Lease, 5*time.Second), cmp.Or(opts.Retry, 5*time.Second)
	opts.RetryResults = max(opts.Retry, cmp.Or(opts.RetryResults, 2*time.Minute))
	f := &file{name: name, path: abs, retry: opts.Retry}
	if err := f.open(); err != nil {
		return nil, errors.Join(f.Explain(err), f.Close())
	}
	return &DB{log.New(f, log.Options{
		Lease: opts.Lease, Retry: opts.Retry, RetryResults: opts.RetryResults, Poll: poll,
		Now: func() time.Time { return now() }, Reached: func(point string) { reached(point) },
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
		return fmt.Errorf("database %s was removed while it was open: what runs have done since is lost with it; put it back or begin new runs", f.name)
	case err == nil && !os.SameFile(f.opened, now):
		return fmt.Errorf("database %s was replaced while it was open: what runs have done since is not in the new file; put the old one back or begin new runs", f.name)
	}
	return nil // an error that matters comes back with the next commit
}
