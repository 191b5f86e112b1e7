package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stonelayer/stone/dag"
)

// run is a run that this DB has the lease of.
type run struct {
	id  string
	row int64

	held atomic.Bool // signs of life are given

	// What the writer knows, under its lock.
	next  int64
	nodes map[dag.ID]bool

	mu    sync.Mutex
	ready bool
	known map[dag.ID]*known
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
		r = &run{id: id}
		db.runs[id] = r
	}
	db.mu.Unlock()

	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ready {
		return r, nil
	}
	if err := db.acquire(ctx, r); err != nil {
		return nil, db.explain(err)
	}
	r.held.Store(true)
	if err := db.load(ctx, r); err != nil {
		return nil, db.explain(err)
	}
	r.ready = true
	return r, nil
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
		case err != nil:
			return err
		case now.owner == "":
			seen = now
		case now != seen:
			return &HeldError{File: db.file, Run: r.id, Owner: now.owner}
		}
	}
}

// enter finds the run, or writes it down.
func (db *DB) enter(ctx context.Context, r *run) (lease, error) {
	found, err := db.lease(ctx, r)
	if !errors.Is(err, sql.ErrNoRows) {
		return found, err
	}
	db.out.using.Lock()
	_, err = db.out.conn.ExecContext(ctx, "INSERT INTO runs (id, owner, beat, lease) VALUES (?, '', 0, 0) ON CONFLICT DO NOTHING", r.id)
	db.out.using.Unlock()
	if err != nil {
		return lease{}, err
	}
	return db.lease(ctx, r)
}

func (db *DB) lease(ctx context.Context, r *run) (l lease, err error) {
	err = db.sql.QueryRowContext(ctx, "SELECT run, owner, beat, lease FROM runs WHERE id = ?", r.id).Scan(&r.row, &l.owner, &l.beat, &l.time)
	return l, err
}

// take takes the lease, unless it is not any more as it was seen.
func (db *DB) take(ctx context.Context, r *run, seen lease) (bool, error) {
	db.out.using.Lock()
	defer db.out.using.Unlock()
	result, err := db.out.conn.ExecContext(ctx, "UPDATE runs SET owner = ?, beat = beat + 1, lease = ? WHERE run = ? AND owner = ? AND beat = ?",
		db.owner, db.opts.Lease.Milliseconds(), r.row, seen.owner, seen.beat)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n == 1, err
}

// signs returns a sign of life for every run that is held.
func (db *DB) signs() []*write {
	db.mu.Lock()
	defer db.mu.Unlock()
	var signs []*write
	for _, r := range db.runs {
		if r.held.Load() {
			signs = append(signs, &write{run: r})
		}
	}
	return signs
}

func (w *writer) release(r *run) error {
	w.using.Lock()
	defer w.using.Unlock()
	_, err := w.conn.ExecContext(context.Background(), "UPDATE runs SET owner = '' WHERE run = ? AND owner = ?", r.row, w.db.owner)
	return w.db.explain(err)
}
