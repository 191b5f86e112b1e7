package sqlite

import (
	"database/sql"

	"github.com/stonelayer/stone/journal/internal/log"
)

// tx is a [log.Tx] on the connection for writes.
type tx struct{ reader }

func (t tx) do(statement string, args ...any) (sql.Result, error) {
	stmt, err := t.sql.of(background, statement)
	switch {
	case err != nil:
		return nil, err
	case stmt == nil:
		return t.sql.on.ExecContext(background, statement, args...)
	}
	return stmt.ExecContext(background, args...)
}

// Lock implements [log.Tx]. It does nothing, because SQLite allows only one writing transaction at a time.
func (t tx) Lock(_, _ []string) error { return nil }

// Insert implements [log.Tx].
func (t tx) Insert(r *log.Run) error {
	made, err := all(background, t.reader, func(rows *sql.Rows) (n int64, err error) { return n, rows.Scan(&n) }, inserting, r.Arguments(r.ID, log.All)...)
	if err == nil {
		r.Row = made[0]
	}
	return err
}

var (
	inserting = inSQLite(log.Inserting(""))
	putting   = [...]string{log.Holding: inSQLite(log.Putting("", log.Holding)), log.Ending: inSQLite(log.Putting("", log.Ending)), log.All: inSQLite(log.Putting("", log.All))}
)

// Put implements [log.Tx].
func (t tx) Put(r *log.Run, which log.Fields) error {
	_, err := t.do(putting[which], r.Arguments(r.Row, which)...)
	return err
}

// Label implements [log.Tx].
func (t tx) Label(run int64, labels map[string]string) error {
	if _, err := t.do("DELETE FROM labels WHERE run = ?", run); err != nil {
		return err
	}
	for name, value := range labels {
		if _, err := t.do("INSERT OR IGNORE INTO labels (name, value, run) VALUES (?, ?, ?)", log.Column(name), log.Column(value), run); err != nil {
			return err
		}
	}
	return nil
}

// Advance implements [log.Tx].
func (t tx) Advance(beats []*log.Beat) error {
	for _, b := range beats {
		now, err := all(background, t.reader, func(rows *sql.Rows) (now int64, err error) { return now, rows.Scan(&now) },
			"UPDATE runs SET beat = beat + 1, rows = iif(?3 < 0, rows, ?3) WHERE run = ?1 AND owner = ?2 RETURNING beat", b.Run, b.Owner, b.Rows)
		if err != nil {
			return err
		}
		if len(now) > 0 {
			b.Now = now[0]
		}
	}
	return nil
}

// Count implements [log.Tx].
func (t tx) Count(beats []*log.Beat) error {
	for _, b := range beats {
		if _, err := t.do("UPDATE runs SET rows = ? WHERE run = ?", b.Rows, b.Run); err != nil {
			return err
		}
	}
	return nil
}

// Append implements [log.Tx].
func (t tx) Append(rows []*log.Row) error {
	for _, r := range rows {
		path := any(nil)
		if r.Digest != nil {
			path = r.Path
		}
		if _, err := t.do("INSERT INTO records VALUES (?,?,?,?,?,?,?,?,?)", r.Run<<32|r.Seq, blob(r.Digest), blob(r.Reuse), blob(r.Node), blob(r.Parents),
			path, string(r.Head), r.Seal, blob(r.Content)); err != nil {
			return err
		}
	}
	return nil
}

// Delete implements [log.Tx].
func (t tx) Delete(run, first, last int64) (int64, error) {
	result, err := t.do("DELETE FROM records WHERE seq BETWEEN ? AND ?", run<<32|first, run<<32|last)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Remove implements [log.Tx].
func (t tx) Remove(run int64) error {
	_, err := t.Delete(run, 0, 2*log.Aside-1)
	for _, table := range []string{"questions", "batches", "receivers", "outbox"} {
		if err == nil {
			_, err = t.do("DELETE FROM "+table+" WHERE run = ?", run)
		}
	}
	if err == nil {
		err = t.RemoveBlocks(run)
	}
	if err == nil {
		err = t.Label(run, nil)
	}
	if err == nil {
		_, err = t.do("DELETE FROM runs WHERE run = ?", run)
	}
	return err
}

// PutBlocks implements [log.Tx].
func (t tx) PutBlocks(run int64, blocks []*log.Block) error {
	for _, b := range blocks {
		if _, err := t.do("INSERT OR REPLACE INTO blocks (run, parent, slot, counts, seal, data) VALUES (?, ?, ?, ?, ?, ?)", run, b.Parent, b.Slot, b.Counts, b.Seal, b.Data); err != nil {
			return err
		}
	}
	return nil
}

// RemoveBlocks implements [log.Tx].
func (t tx) RemoveBlocks(run int64) error {
	_, err := t.do("DELETE FROM blocks WHERE run = ?", run)
	return err
}

// PutQuestion implements [log.Tx].
func (t tx) PutQuestion(q *log.Question) error {
	_, err := t.do(`INSERT INTO questions (run, path, open, question, seal) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET open = excluded.open, question = excluded.question, seal = excluded.seal`,
		q.Run, q.Path, q.Open, string(q.Text), q.Seal)
	return err
}

// blob returns b as an argument; nil is stored as NULL.
func blob(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}
