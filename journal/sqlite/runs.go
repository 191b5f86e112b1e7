package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
)

// Begin implements [journal.Holder].
func (db *DB) Begin(ctx context.Context, info journal.RunInfo) error {
	r := db.holding(info.ID)
	if r == nil {
		return db.notHeld(info.ID)
	}
	before, err := db.known(ctx, r)
	if err != nil {
		return err
	}
	shape, err := json.Marshal(info.Shape)
	if err != nil {
		return fmt.Errorf("shape of run %q: %w", info.ID, err)
	}
	info.Shape, info.Owner, info.Outcome = nil, "", journal.Outcome{State: journal.Running}
	head, err := json.Marshal(info)
	if err != nil {
		return fmt.Errorf("what is known of run %q: %w", info.ID, err)
	}
	outcome, err := json.Marshal(info.Outcome)
	if err != nil {
		return err
	}
	r.stopLoading()
	err = db.change(func(t *transaction) error {
		if _, err := t.do("DELETE FROM records WHERE seq BETWEEN (SELECT tail FROM runs WHERE run = ?1) AND (SELECT tip FROM runs WHERE run = ?1)", r.row.Load()); err != nil {
			return err
		}
		if before.State == journal.Failed {
			if err := t.forget(r, before.Retry); err != nil {
				return err
			}
		}
		changed, err := t.do("UPDATE runs SET info = ?, shape = ?, outcome = ?, tail = NULL, tip = NULL WHERE run = ? AND owner = ?",
			string(head), string(shape), string(outcome), r.row.Load(), db.owner)
		if err == nil && changed == 0 {
			err = t.holder(r)
		}
		return err
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ready = false // what is in memory may be forgotten
	return err
}

// forget takes the failures of the steps with the paths away from the steps. Their
// rows stay, for what the attempts have cost.
func (t *transaction) forget(r *run, paths []string) error {
	list, err := json.Marshal(paths)
	if err != nil {
		return err
	}
	rows, err := t.all("SELECT "+columns+` FROM records WHERE seq BETWEEN ?1 << 32 AND (?1 + 1 << 32) - 1 AND digest IS NOT NULL AND instr(head, '"failure"')
		AND head->'record'->'failure' IS NOT NULL AND head->>'path' IN (SELECT value FROM json_each(?2))`, r.row.Load(), string(list))
	if err != nil {
		return err
	}
	for _, row := range rows {
		h, err := row.open()
		if err != nil {
			return t.db.damage(r.id, row, h, err)
		}
		failed, err := recordRow(head{Path: h.Path, Kind: h.Kind, Name: h.Name, At: h.At, Step: id(row.digest).String()}, *h.Record)
		if err != nil {
			return err
		}
		failed.content = nil // a failure has none
		args := failed.args(row.seq)
		if _, err := t.do("UPDATE records SET digest = ?2, reuse = ?3, node = ?4, parents = ?5, head = ?6, seal = ?7, content = ?8 WHERE seq = ?1", args...); err != nil {
			return err
		}
	}
	return nil
}

// holding returns a run that this DB has, otherwise nil.
func (db *DB) holding(id string) *run {
	db.mu.Lock()
	defer db.mu.Unlock()
	if r := db.runs[id]; r != nil && r.held.Load() {
		return r
	}
	return nil
}

func (db *DB) notHeld(id string) error {
	return fmt.Errorf("run %q in %s is not held by this journal: acquire it first", id, db.file)
}

// End implements [journal.Holder].
func (db *DB) End(ctx context.Context, id string, o journal.Outcome) error {
	if db.holding(id) == nil {
		return db.notHeld(id)
	}
	r, err := db.open(ctx, id)
	if err == nil {
		err = r.loaded()
	}
	if err != nil {
		return err
	}
	nodes := o.DAG
	o.Heads, o.DAG = journal.HeadsOf(nodes), dag.DAG{}
	text, err := json.Marshal(o)
	if err != nil {
		return fmt.Errorf("outcome of run %q: %w", id, err)
	}
	return db.change(func(t *transaction) error {
		p, err := t.part(r)
		if err != nil {
			return err
		}
		if p.taken {
			return t.holder(r)
		}
		tail := p.next + 1
		for n := range nodes.Nodes() {
			if !r.nodes[n.ID()] {
				if err := t.node(p, n); err != nil {
					return err
				}
			}
		}
		_, err = t.do("UPDATE runs SET outcome = ?1, tail = ?2 << 32 | ?3, tip = ?2 << 32 | ?4 WHERE run = ?2", string(text), r.row.Load(), tail, p.next)
		return err
	})
}

// there is the condition for a row of runs of which anything is known.
const there = `(info IS NOT NULL OR EXISTS (SELECT 1 FROM records WHERE seq BETWEEN runs.run << 32 AND (runs.run + 1 << 32) - 1)
	OR EXISTS (SELECT 1 FROM questions WHERE questions.run = runs.run))`

// Find implements [journal.Archive].
func (db *DB) Find(ctx context.Context, prefix string) (journal.RunInfo, error) {
	rows, err := db.sql.QueryContext(ctx, "SELECT run, id, owner FROM runs WHERE ?1 <> '' AND substr(id, 1, length(?1)) = ?1 AND "+there+" ORDER BY id = ?1 DESC, id LIMIT 6", prefix)
	if err != nil {
		return journal.RunInfo{}, db.explain(err)
	}
	defer rows.Close()
	var found []*run
	var ids, owners []string
	for rows.Next() {
		r, owner, row := newRun(""), "", int64(0)
		if err := rows.Scan(&row, &r.id, &owner); err != nil {
			return journal.RunInfo{}, db.explain(err)
		}
		r.row.Store(row)
		found, ids, owners = append(found, r), append(ids, r.id), append(owners, owner)
	}
	switch err := rows.Err(); {
	case err != nil:
		return journal.RunInfo{}, db.explain(err)
	case len(found) == 0:
		return journal.RunInfo{}, fmt.Errorf("run %q: %w", prefix, journal.ErrNoRun)
	case len(found) > 1 && ids[0] != prefix:
		return journal.RunInfo{}, &journal.AmbiguousError{Prefix: prefix, Runs: ids}
	}
	info, err := db.known(ctx, found[0])
	return seen(info, ids[0], owners[0]), err
}

// seen completes what is known of a run with how it stands with its owner.
func seen(info journal.RunInfo, id, owner string) journal.RunInfo {
	info.ID = id
	switch info.State = cmp.Or(info.State, journal.Running); {
	case lives(owner):
		info.Owner = owner
	case info.State == journal.Running:
		info.State = journal.Interrupted
	}
	return info
}

// Runs implements [journal.Archive].
func (db *DB) Runs(ctx context.Context, q journal.Query) ([]journal.RunInfo, error) {
	before := int64(1) << 62
	if q.Before != "" {
		err := db.sql.QueryRowContext(ctx, "SELECT run FROM runs WHERE id = ?", q.Before).Scan(&before)
		if errors.Is(err, sql.ErrNoRows) {
			return nil, fmt.Errorf("run %q: %w", q.Before, journal.ErrNoRun)
		}
		if err != nil {
			return nil, db.explain(err)
		}
	}
	rows, err := db.sql.QueryContext(ctx, "SELECT id, owner, info, outcome FROM runs WHERE run < ? AND "+there+" ORDER BY run DESC", before)
	if err != nil {
		return nil, db.explain(err)
	}
	defer rows.Close()
	var page []journal.RunInfo
	for limit := cmp.Or(q.Limit, journal.DefaultLimit); len(page) < limit && rows.Next(); {
		var info journal.RunInfo
		var id, owner string
		var stored, outcome sql.NullString
		if err := rows.Scan(&id, &owner, &stored, &outcome); err != nil {
			return nil, db.explain(err)
		}
		if stored.Valid {
			if err := errors.Join(json.Unmarshal([]byte(stored.String), &info), json.Unmarshal([]byte(outcome.String), &info.Outcome)); err != nil {
				return nil, &journal.DamageError{Where: db.file, Run: id, Reason: "cannot be read: " + err.Error()}
			}
		}
		if info = seen(info, id, owner); len(q.States) == 0 || slices.Contains(q.States, info.State) {
			page = append(page, info)
		}
	}
	return page, db.explain(rows.Err())
}

// Remove implements [journal.Archive]. The space is used for what comes next; the
// file does not become smaller.
func (db *DB) Remove(ctx context.Context, id string) error {
	r := newRun(id)
	if _, err := db.lease(ctx, r); errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("run %q: %w", id, journal.ErrNoRun)
	}
	if db.holding(id) != nil {
		return &journal.HeldError{Where: db.file, Run: id, Owner: db.owner}
	}
	if err := db.acquire(ctx, r); err != nil {
		return db.explain(err)
	}
	return db.change(func(t *transaction) error {
		p, err := t.part(r)
		if err != nil {
			return err
		}
		if p.taken {
			return t.holder(r)
		}
		for _, statement := range []string{
			"DELETE FROM records WHERE seq BETWEEN ?1 << 32 AND (?1 + 1 << 32) - 1",
			"DELETE FROM questions WHERE run = ?1",
			"DELETE FROM runs WHERE run = ?1",
		} {
			if _, err := t.do(statement, r.row.Load()); err != nil {
				return err
			}
		}
		return nil
	})
}
