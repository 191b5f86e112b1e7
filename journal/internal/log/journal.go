package log

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stonelayer/stone/internal/fleet"
	"github.com/stonelayer/stone/journal"
)

// Options are the options of a Journal. All fields must be set.
type Options struct {
	Lease        time.Duration    // validity of a lease after a renewal
	Retry        time.Duration    // how long a failed write is retried
	RetryResults time.Duration    // how long a failed write of a step's result is retried
	Poll         time.Duration    // interval at which Follow looks for rows of other processes
	Now          func() time.Time // clock for the times in rows
	Schema       int              // version of the tables
	// Reached is called at the points where tests kill the process.
	Reached func(point string)
}

// Journal is a [journal.Journal] on top of a Database.
type Journal struct {
	owner string // host/pid/nonce
	opts  Options
	data  Database
	out   *writer
	now   func() time.Time

	listening sync.Once
	fleet     fleet.Budgets // budgets shared by several runs
	day       int64         // day on which the writer last removed old spending

	mu     sync.Mutex
	runs   map[string]*run
	closed bool

	sightings map[string]sighting // Abandoned's sightings of leases, by ID of the run
	losses    map[string]int      // how many times in a row this process has lost a run, by ID
}

// New returns a Journal on top of a database. Closing the Journal also closes the database.
func New(data Database, opts Options) *Journal {
	var nonce [4]byte
	rand.Read(nonce[:]) // never fails
	j := &Journal{
		owner: fmt.Sprintf("%s/%d/%s", hostname(), os.Getpid(), hex.EncodeToString(nonce[:])),
		opts:  opts, data: data, runs: map[string]*run{}, losses: map[string]int{}, now: opts.Now,
	}
	j.out = startWriter(j)
	return j
}

// Close writes the queued results, gives up all leases and closes the database. If results are lost, the error states how many.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil
	}
	j.closed = true
	runs := slices.Collect(maps.Values(j.runs))
	j.mu.Unlock()
	for _, r := range runs {
		r.endTenure(journal.ErrClosed)
		r.stopLoading()
	}
	err := j.out.close(runs)
	closing := j.data.Close()
	if err != nil { // any other error has the same cause
		return err
	}
	return j.data.Explain(closing)
}

func (j *Journal) held(run, owner string) error {
	return &journal.HeldError{Where: j.data.Name(), Run: run, Owner: owner}
}

// lives reports whether an owner may still be alive. Only a process on this host can be known to be gone. The result is shown to
// people and lets Follow end, but never justifies taking over a lease, because two hosts may have the same name.
func lives(owner string) bool {
	parts := strings.Split(owner, "/")
	if len(parts) != 3 || parts[0] != hostname() {
		return owner != ""
	}
	pid, err := strconv.Atoi(parts[1])
	if err != nil {
		return true
	}
	process, err := os.FindProcess(pid)
	return err == nil && !errors.Is(process.Signal(syscall.Signal(0)), os.ErrProcessDone)
}

func hostname() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host" // the host name is only shown to people
	}
	return strings.ReplaceAll(host, "/", "_")
}

// Points calls a function that a test has set, at certain points of a step and a commit. The test may change the function while
// the journal's goroutines call it.
type Points struct {
	call atomic.Pointer[func(point string)]
}

// Call sets the function; nil removes it.
func (p *Points) Call(f func(point string)) {
	if f == nil {
		p.call.Store(nil)
		return
	}
	p.call.Store(&f)
}

// Reached calls the function. Use it as the field Reached of [Options].
func (p *Points) Reached(point string) {
	if f := p.call.Load(); f != nil {
		(*f)(point)
	}
}
