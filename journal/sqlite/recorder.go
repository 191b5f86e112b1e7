package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
)

// known is a step that has a result.
type known struct {
	row     sealed // until it is replayed for the first time, then it is read from the file
	pending *write // not on the disk yet
}

// Do implements [stone.Recorder]. Its first call for a run takes the lease, and
// fails with a [*HeldError] if somebody else has it.
func (db *DB) Do(ctx context.Context, key stone.Key, work func(context.Context) (stone.Record, error)) (stone.Record, error) {
	r, err := db.open(ctx, key.Run)
	if err != nil {
		return stone.Record{}, err
	}
	if rec, err := db.find(ctx, r, key); err != nil || rec.Replayed {
		return rec, err
	}
	reached("before intent")
	begun := &write{run: r, intent: &intent{key.Digest, key.Path, key.Kind, key.Name}}
	if err := db.write(begun); err != nil {
		return stone.Record{}, err
	}
	reached("after intent")
	rec, err := work(ctx)
	if err != nil {
		return stone.Record{}, err
	}
	reached("after work")
	row, err := newRow(key, rec)
	if err != nil {
		return stone.Record{}, err
	}
	result := &write{run: r, row: row}
	first, err := r.keep(key.Digest, result, db.out)
	if err != nil {
		return stone.Record{}, err
	}
	if first {
		err = db.out.wait(result)
		reached("after acknowledge")
	}
	if err != nil {
		return stone.Record{}, err
	}
	if !first || result.second {
		return db.find(ctx, r, key)
	}
	return rec, nil
}

func (db *DB) write(x *write) error {
	if err := db.out.put(x); err != nil {
		return err
	}
	return db.out.wait(x)
}

// find returns what is recorded under the key, with Replayed set, if anything is.
func (db *DB) find(ctx context.Context, r *run, key stone.Key) (stone.Record, error) {
	r.mu.Lock()
	k := r.known[key.Digest]
	var row sealed
	var pending *write
	if k != nil {
		row, pending = k.row, k.pending
		k.row = sealed{}
	}
	r.mu.Unlock()
	switch {
	case k == nil && key.Reuse == (dag.ID{}):
		return stone.Record{}, nil
	case k == nil:
		return db.read(ctx, r.id, "reuse = ? AND reuse IS NOT NULL AND failure IS NULL ORDER BY seq LIMIT 1", key.Reuse[:])
	case pending != nil: // of a caller that gave up waiting
		if err := db.out.wait(pending); err != nil {
			return stone.Record{}, err
		}
	case row.row != nil:
		return db.replay(r.id, row)
	}
	return db.read(ctx, r.id, "run = ? AND digest = ?", r.row, key.Digest[:])
}

// read replays a record from the file; there may be none.
func (db *DB) read(ctx context.Context, run, where string, args ...any) (stone.Record, error) {
	row, err := scan(db.sql.QueryRowContext(ctx, "SELECT "+columns+" FROM records WHERE "+where, args...))
	if errors.Is(err, sql.ErrNoRows) {
		return stone.Record{}, nil
	}
	if err != nil {
		return stone.Record{}, db.explain(err)
	}
	return db.replay(run, row)
}

func (db *DB) replay(run string, row sealed) (stone.Record, error) {
	rec, err := row.record()
	if err != nil {
		return stone.Record{}, db.damage(run, row.row, err)
	}
	return rec, nil
}

func (db *DB) damage(run string, row *row, why error) error {
	e := &DamageError{File: db.file, Run: run, Path: row.path.String, Reason: why.Error()}
	if row.node != nil {
		e.Node = id(row.node).String()
	}
	return e
}

// keep queues a result, unless the step has one already.
func (r *run) keep(digest dag.ID, x *write, out *writer) (first bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[digest] != nil {
		return false, nil
	}
	if err := out.put(x); err != nil {
		return false, err
	}
	r.known[digest] = &known{pending: x}
	return true, nil
}

// written notes that a result is on the disk.
func (r *run) written(x *write) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[dag.ID(x.row.digest)] = &known{}
}

// drop forgets a result that cannot be written, since the run is another's. The
// next step asks for the lease again.
func (r *run) drop(x *write) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ready = false
	r.held.Store(false)
	if x.row != nil {
		delete(r.known, dag.ID(x.row.digest))
	}
}
