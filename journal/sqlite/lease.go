package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
)

// run is a run that this DB has the lease of, or wants.
type run struct {
	id  string
	row atomic.Int64 // in the table of runs

	acquired bool        // by Acquire; under the lock of the DB, as the next one
	left     bool        // by Release, which waits for results that are not on the disk
	held     atomic.Bool // signs of life are given

	unwritten atomic.Int64 // results that are queued

	// taking is held while the lease is wanted, which waits for the writer. The
	// writer locks mu to tell of its commits, so mu is never held that long.
	taking sync.Mutex

	// What the writer knows, under its lock.
	next  int64
	nodes map[dag.ID]bool

	mu      sync.Mutex
	news    sync.Cond // about known and loading
	ready   bool      // loading has begun
	reuse   string    // from which run, as in journal.RunInfo
	known   map[dag.ID]*known
	loading *loading

	attempts map[dag.ID]int // of steps without a result
}

func newRun(id string) *run {
	r := &run{id: id, nodes: map[dag.ID]bool{}, known: map[dag.ID]*known{}, attempts: map[dag.ID]int{}}
	r.news.L = &r.mu
	return r
}

// open returns the run, with the lease on it and what is recorded of it.
func (db *DB) open(ctx context.Context, id string) (*run, error) {
	db.mu.Lock()
	if db.closed {
		db.mu.Unlock()
		return nil, ErrClosed
	}
	r := db.runs[id]
	if r == nil {
		r = newRun(id)
		db.runs[id] = r
	}
	db.mu.Unlock()

	if r.isReady() {
		return r, nil
	}
	r.taking.Lock()
	defer r.taking.Unlock()
	if r.isReady() {
		return r, nil
	}
	if !r.held.Load() {
		if err := db.acquire(ctx, r); err != nil {
			return nil, db.explain(err)
		}
		r.held.Store(true)
	}
	info, err := db.known(ctx, r)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reuse = info.Reuse; info.ID == "" {
		r.reuse = journal.AnyRun
	}
	db.startLoading(r)
	r.ready = true
	return r, nil
}

func (r *run) isReady() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ready
}

// loaded waits until all is read of the run.
func (r *run) loaded() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.loading.over {
		r.news.Wait()
	}
	return r.loading.err
}

// known returns what is written of a run, with an empty id if it was not begun.
func (db *DB) known(ctx context.Context, r *run) (info journal.RunInfo, err error) {
	var stored, shape, outcome sql.NullString
	err = db.sql.QueryRowContext(ctx, "SELECT info, shape, outcome FROM runs WHERE run = ?", r.row.Load()).Scan(&stored, &shape, &outcome)
	if err != nil || !stored.Valid {
		return info, db.explain(err)
	}
	err = errors.Join(json.Unmarshal([]byte(stored.String), &info), json.Unmarshal([]byte(outcome.String), &info.Outcome))
	if shape.Valid {
		err = errors.Join(err, json.Unmarshal([]byte(shape.String), &info.Shape))
	}
	if err != nil {
		err = &journal.DamageError{Where: db.file, Run: r.id, Reason: "cannot be read: " + err.Error()}
	}
	return info, err
}

// Acquire implements [journal.Holder].
func (db *DB) Acquire(ctx context.Context, id string) (journal.RunInfo, error) {
	db.mu.Lock()
	r := db.runs[id]
	switch {
	case db.closed:
		db.mu.Unlock()
		return journal.RunInfo{}, ErrClosed
	case r != nil && (r.acquired || r.held.Load() && !r.left):
		db.mu.Unlock()
		return journal.RunInfo{}, &journal.HeldError{Where: db.file, Run: id, Owner: db.owner}
	case r == nil:
		r = newRun(id)
		db.runs[id] = r
	}
	r.acquired, r.left = true, false
	db.mu.Unlock()

	info, err := db.taken(ctx, r)
	if err == nil {
		return info, nil
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if r.acquired, r.left = false, r.held.Load(); !r.left {
		delete(db.runs, id)
	}
	return journal.RunInfo{}, db.explain(err)
}

// taken returns what is known of a run when it is ours.
func (db *DB) taken(ctx context.Context, r *run) (journal.RunInfo, error) {
	r.taking.Lock()
	defer r.taking.Unlock()
	if !r.held.Load() { // or it was left with results that are not on the disk
		if err := db.acquire(ctx, r); err != nil {
			return journal.RunInfo{}, err
		}
		r.held.Store(true)
	}
	return db.known(ctx, r)
}

// lease is the state of a lease in the file.
type lease struct {
	owner string
	beat  int64
	time  int64 // milliseconds
}

// acquire takes the lease of a run: at once if nobody has it, otherwise when its
// owner has been silent for as long as it said it would not be.
func (db *DB) acquire(ctx context.Context, r *run) error {
	seen, err := db.enter(ctx, r)
	if err != nil {
		return err
	}
	since := time.Now()
	for {
		patience := time.Duration(seen.time) * time.Millisecond
		if seen.owner == "" || seen.owner == db.owner || time.Since(since) > patience {
			taken, err := db.take(ctx, r, seen)
			if taken || err != nil {
				return err
			}
		} else {
			select {
			case <-time.After(patience/8 + time.Millisecond):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		now, err := db.lease(ctx, r)
		switch {
		case errors.Is(err, sql.ErrNoRows): // it was empty, and removed
			if now, err = db.enter(ctx, r); err != nil {
				return err
			}
			seen = now
		case err != nil:
			return err
		case now.owner == "":
			seen = now
		case now != seen:
			return &journal.HeldError{Where: db.file, Run: r.id, Owner: now.owner}
		}
	}
}

// enter finds the run, or writes it down.
func (db *DB) enter(ctx context.Context, r *run) (lease, error) {
	found, err := db.lease(ctx, r)
	if !errors.Is(err, sql.ErrNoRows) {
		return found, err
	}
	if _, err := db.out.now(ctx, "INSERT INTO runs (id, owner, beat, lease) VALUES (?, '', 0, 0) ON CONFLICT DO NOTHING", r.id); err != nil {
		return lease{}, err
	}
	return db.lease(ctx, r)
}

func (db *DB) lease(ctx context.Context, r *run) (l lease, err error) {
	var row int64
	err = db.sql.QueryRowContext(ctx, "SELECT run, owner, beat, lease FROM runs WHERE id = ?", r.id).Scan(&row, &l.owner, &l.beat, &l.time)
	if err == nil {
		r.row.Store(row)
	}
	return l, err
}

// take takes the lease, unless it is not any more as it was seen.
func (db *DB) take(ctx context.Context, r *run, seen lease) (bool, error) {
	n, err := db.out.now(ctx, "UPDATE runs SET owner = ?, beat = beat + 1, lease = ? WHERE run = ? AND owner = ? AND beat = ?",
		db.owner, db.opts.Lease.Milliseconds(), r.row.Load(), seen.owner, seen.beat)
	return n == 1, err
}

// signs returns a sign of life for every run that is held, and those that were
// left and can be let go now.
func (db *DB) signs() (signs []*write, left []*run) {
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, r := range db.runs {
		switch {
		case r.left && r.unwritten.Load() == 0:
			r.acquired, r.left = true, false // nobody has it until it is let go
			left = append(left, r)
		case r.held.Load():
			signs = append(signs, &write{run: r})
		}
	}
	return signs, left
}

// Release implements [journal.Holder]: it gives up the lease, so that another
// process can have the run, and forgets what is in memory of it. As long as there
// are results that could not be written, it keeps both.
func (db *DB) Release(id string) error {
	db.mu.Lock()
	r := db.runs[id]
	if r == nil {
		db.mu.Unlock()
		return nil
	}
	r.left = r.held.Load() && r.unwritten.Load() > 0
	r.acquired = !r.left // nobody has it until it is let go
	left := r.left
	db.mu.Unlock()
	if left {
		return nil
	}
	return db.letGo(r)
}

func (db *DB) letGo(r *run) error {
	r.stopLoading()
	defer func() {
		db.mu.Lock()
		defer db.mu.Unlock()
		delete(db.runs, r.id)
	}()
	if !r.held.Swap(false) {
		return nil
	}
	return db.change(func(t *transaction) error {
		_, err := t.do("UPDATE runs SET owner = '' WHERE run = ? AND owner = ?", r.row.Load(), db.owner)
		if err == nil {
			_, err = t.do(`DELETE FROM runs WHERE run = ?1 AND owner = '' AND info IS NULL
				AND NOT EXISTS (SELECT 1 FROM records WHERE seq BETWEEN ?1 << 32 AND (?1 + 1 << 32) - 1)
				AND NOT EXISTS (SELECT 1 FROM questions WHERE run = ?1)`, r.row.Load())
		}
		return err
	})
}

// lives reports whether an owner may still live: only of a process of this host
// can be told that it does not. It is for people; a lease is never taken over for
// it, since hosts with one name need not be one.
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
		host = "unknown-host" // the owner is for people to read
	}
	return strings.ReplaceAll(host, "/", "_")
}
