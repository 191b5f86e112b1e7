package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
)

// known is a step that has a result.
type known struct {
	seq     int64
	row     sealed // until it is replayed for the first time, then it is read from the file
	pending *write // not on the disk yet
}

// Do implements [stone.Recorder]. Its first call for a run takes the lease if
// nobody has acquired the run, and fails with a [*journal.HeldError] if somebody
// else has it.
func (db *DB) Do(ctx context.Context, key stone.Key, work func(context.Context) (stone.Record, error)) (stone.Record, error) {
	r, err := db.open(ctx, key.Run)
	if err != nil {
		return stone.Record{}, err
	}
	if rec, err := db.find(ctx, r, key); err != nil || rec.Replayed {
		return rec, err
	}
	if rec, err := db.reuse(ctx, r, key); err != nil || rec.Replayed {
		return rec, err
	}
	reached("before intent")
	if err := db.write(&write{run: r, intent: beginning(ctx, key)}); err != nil {
		return stone.Record{}, err
	}
	reached("after intent")
	rec, err := work(journal.WithAttempt(ctx, r.begin(key.Digest)))
	if err != nil {
		return stone.Record{}, err
	}
	reached("after work")
	row, err := resultRow(key, rec, "", db.now())
	if err != nil {
		return stone.Record{}, err
	}
	return db.keep(ctx, r, key, row, rec)
}

// keep writes a result, unless the step has one already, which it returns then.
func (db *DB) keep(ctx context.Context, r *run, key stone.Key, row *row, rec stone.Record) (stone.Record, error) {
	result := &write{run: r, row: row}
	first, err := r.put(key.Digest, result, db.out)
	if err != nil {
		return stone.Record{}, err
	}
	if !first {
		return db.find(ctx, r, key)
	}
	if err := db.out.wait(result); err != nil {
		return stone.Record{}, err
	}
	reached("after acknowledge")
	return rec, nil
}

// put queues a result, unless the step has one already.
func (r *run) put(digest dag.ID, x *write, out *writer) (first bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[digest] != nil {
		return false, nil
	}
	if err := out.put(x); err != nil {
		return false, err
	}
	r.known[digest] = &known{pending: x}
	r.unwritten.Add(1)
	return true, nil
}

// begin counts an attempt of a step.
func (r *run) begin(digest dag.ID) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempts[digest]++
	return r.attempts[digest]
}

func (db *DB) write(x *write) error {
	if err := db.out.put(x); err != nil {
		return err
	}
	return db.out.wait(x)
}

// find returns what is recorded in the run, with Replayed set, if anything is.
func (db *DB) find(ctx context.Context, r *run, key stone.Key) (stone.Record, error) {
	k, err := r.look(key.Digest)
	switch {
	case err != nil || k == nil:
		return stone.Record{}, err
	case k.pending != nil: // of a caller that gave up waiting
		if err := db.out.wait(k.pending); err != nil {
			return stone.Record{}, err
		}
		k.seq = k.pending.row.seq
	case k.row.row != nil:
		return db.replay(r.id, k.row)
	}
	row, err := newScanner().scan(db.sql.QueryRowContext(context.WithoutCancel(ctx), "SELECT "+columns+" FROM records WHERE seq = ?", k.seq))
	if err != nil {
		return stone.Record{}, db.explain(err)
	}
	return db.replay(r.id, row)
}

// look returns what is known of a step, nil if it has no result. As long as the
// run is loaded it waits for the step.
func (r *run) look(digest dag.ID) (*known, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		if k := r.known[digest]; k != nil {
			found := *k
			k.row = sealed{}
			return &found, nil
		}
		if r.loading.over {
			return nil, r.loading.err
		}
		r.news.Wait()
	}
}

// reuse returns what another run has recorded under the same Reuse, if this run
// may have it. It is recorded here too: the other run may be removed.
func (db *DB) reuse(ctx context.Context, r *run, key stone.Key) (stone.Record, error) {
	r.mu.Lock()
	from := r.reuse
	r.mu.Unlock()
	if key.Reuse == (dag.ID{}) || from == "" {
		return stone.Record{}, nil
	}
	var origin string
	row, err := newScanner().scan(db.sql.QueryRowContext(context.WithoutCancel(ctx), "SELECT "+columns+`, (SELECT id FROM runs WHERE run = seq >> 32) AS origin
		FROM records WHERE reuse = ?1 AND origin <> ?4 AND (?2 = ?3 OR origin = ?2) ORDER BY seq LIMIT 1`, key.Reuse[:], from, journal.AnyRun, r.id), &origin)
	if errors.Is(err, sql.ErrNoRows) {
		return stone.Record{}, nil
	}
	if err != nil {
		return stone.Record{}, db.explain(err)
	}
	rec, err := db.replay(origin, row)
	if err != nil {
		return rec, err
	}
	own, err := resultRow(key, rec, origin, db.now())
	if err != nil {
		return stone.Record{}, err
	}
	return db.keep(ctx, r, key, own, rec)
}

func (db *DB) replay(run string, row sealed) (stone.Record, error) {
	h, err := row.open()
	if err != nil {
		return stone.Record{}, db.damage(run, row, h, err)
	}
	return *h.Record, nil
}

func (db *DB) damage(run string, row sealed, h head, why error) error {
	e := &journal.DamageError{Where: db.file, Run: run, Path: h.Path, Reason: why.Error()}
	if row.node != nil {
		e.Node = id(row.node).String()
	}
	return e
}

// written notes that a result is on the disk.
func (r *run) written(x *write) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[dag.ID(x.row.digest)] = &known{seq: x.row.seq}
	delete(r.attempts, dag.ID(x.row.digest))
	r.unwritten.Add(-1)
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
		r.unwritten.Add(-1)
	}
}
