package sqlite

import (
	"context"
	"iter"
	"maps"

	"github.com/stonelayer/stone/dag"
)

// rows reads the records of a run in the order in which they were written, those
// for which the condition holds.
func (db *DB) rows(ctx context.Context, run, condition string) iter.Seq2[sealed, error] {
	return func(yield func(sealed, error) bool) {
		rows, err := db.sql.QueryContext(ctx, "SELECT "+columns+` FROM records
			WHERE seq BETWEEN (SELECT run << 32 FROM runs WHERE id = ?1) AND (SELECT (run + 1 << 32) - 1 FROM runs WHERE id = ?1)
			AND `+condition+" ORDER BY seq", run)
		if err != nil {
			yield(sealed{}, db.explain(err))
			return
		}
		defer rows.Close()
		for s := newScanner(); rows.Next(); {
			r, err := s.scan(rows)
			if err != nil {
				yield(sealed{}, db.explain(err))
				return
			}
			if !yield(r, nil) {
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(sealed{}, db.explain(err))
		}
	}
}

// loading is what is read of a run while it goes on already: it asks for nearly
// all of it, in about the same order, and row by row that costs several times as
// much. Whoever asks for a step waits until it is found, or all is read.
type loading struct {
	stop  context.CancelFunc
	nodes map[dag.ID]bool
	over  bool // and err says how; under the lock of the run
	err   error
}

// batch is how many rows are read before those who wait are told.
const batch = 64

// startLoading is called with the lock of the run.
func (db *DB) startLoading(r *run) {
	ctx, stop := context.WithCancel(context.Background())
	l := &loading{stop: stop, nodes: map[dag.ID]bool{}}
	r.loading = l
	clear(r.attempts)
	maps.DeleteFunc(r.known, func(_ dag.ID, k *known) bool { return k.pending == nil })
	go func() {
		defer stop()
		err := db.load(ctx, r, l)
		r.mu.Lock()
		defer r.mu.Unlock()
		l.over, l.err = true, err
		if err != nil && r.loading == l {
			r.ready = false // whoever comes next tries again
		}
		r.news.Broadcast()
	}()
}

// stopLoading returns when nothing is read any more.
func (r *run) stopLoading() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.loading == nil {
		return
	}
	r.loading.stop()
	for !r.loading.over {
		r.news.Wait()
	}
}

// met takes a row in.
func (r *run) met(row sealed) {
	switch digest := id(row.digest); {
	case row.digest != nil && r.known[digest] == nil:
		r.known[digest] = &known{seq: row.seq, row: row}
		delete(r.attempts, digest)
	case row.digest == nil && row.node == nil:
		for digest := range ids(row.content) {
			r.attempts[digest]++
		}
	}
}

func (db *DB) load(ctx context.Context, r *run, l *loading) error {
	var found []sealed
	tell := func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, row := range found {
			r.met(row)
		}
		found = found[:0]
		r.news.Broadcast()
	}
	for row, err := range db.rows(ctx, r.id, "true") {
		if err != nil {
			return err
		}
		if row.node != nil {
			l.nodes[id(row.node)] = true
		}
		if found = append(found, row); len(found) == batch {
			tell()
		}
	}
	tell()
	var next int64
	err := db.sql.QueryRowContext(ctx, "SELECT max(ifnull(max(seq), 0) - ?1, 0) FROM records WHERE seq < ?2", r.row.Load()<<32, (r.row.Load()+1)<<32).Scan(&next)
	if err != nil {
		return db.explain(err)
	}
	db.out.using.Lock()
	defer db.out.using.Unlock()
	// A result that could not be written before may have been meanwhile.
	r.nodes, r.next = l.nodes, max(r.next, next)
	return nil
}
