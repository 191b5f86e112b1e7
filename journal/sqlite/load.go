package sqlite

import (
	"context"
	"iter"

	"github.com/stonelayer/stone/dag"
)

// sealed is a row with the seal that the file has of it.
type sealed struct {
	*row
	seal []byte
}

// rows reads the records of a run in the order in which they were written.
func (db *DB) rows(ctx context.Context, run string) iter.Seq2[sealed, error] {
	return func(yield func(sealed, error) bool) {
		rows, err := db.sql.QueryContext(ctx, "SELECT "+columns+` FROM records
			WHERE seq BETWEEN (SELECT run << 32 FROM runs WHERE id = ?1) AND (SELECT (run + 1 << 32) - 1 FROM runs WHERE id = ?1)
			ORDER BY seq`, run)
		if err != nil {
			yield(sealed{}, db.explain(err))
			return
		}
		defer rows.Close()
		for rows.Next() {
			r, err := scan(rows)
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

// load reads what is recorded of a run into memory: a run that goes on asks for
// nearly all of it, and row by row that costs several times as much.
func (db *DB) load(ctx context.Context, r *run) error {
	steps, nodes := map[dag.ID]*known{}, map[dag.ID]bool{}
	for row, err := range db.rows(ctx, r.id) {
		if err != nil {
			return err
		}
		if row.node != nil {
			nodes[id(row.node)] = true
		}
		if row.digest != nil {
			steps[id(row.digest)] = &known{row: row}
		}
	}
	var last int64
	const query = "SELECT max((SELECT ifnull(max(seq), 0) FROM records WHERE seq < ?1), (SELECT ifnull(max(seq), 0) FROM intents WHERE seq < ?1))"
	if err := db.sql.QueryRowContext(ctx, query, (r.row+1)<<32).Scan(&last); err != nil {
		return err
	}
	db.out.using.Lock()
	defer db.out.using.Unlock()
	r.known, r.nodes, r.next = steps, nodes, max(last-r.row<<32, 0)
	return nil
}
