package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
)

// Steps implements [journal.Reader].
func (db *DB) Steps(ctx context.Context, run string) ([]journal.Step, error) {
	var steps []journal.Step
	index := map[dag.ID]int{}
	step := func(digest dag.ID, path, kind, name string) *journal.Step {
		i, old := index[digest]
		if !old {
			i = len(steps)
			index[digest], steps = i, append(steps, journal.Step{Path: path, Kind: kind, Name: name})
		}
		return &steps[i]
	}
	for r, err := range db.rows(ctx, run, "(digest IS NOT NULL OR node IS NULL)") {
		if err != nil {
			return nil, err
		}
		h, err := r.open()
		if err != nil {
			return nil, db.damage(run, r, h, err)
		}
		at := time.UnixMilli(h.At)
		for _, i := range h.Begun {
			s := step(i.digest, i.Path, i.Kind, i.Name)
			if s.Attempts, s.Begun = s.Attempts+1, at; i.Declared != nil {
				s.Declared = *i.Declared
			}
		}
		if h.Step != "" {
			digest, err := dag.ParseID(h.Step)
			if err != nil {
				return nil, db.damage(run, r, h, err)
			}
			s := step(digest, h.Path, h.Kind, h.Name)
			s.Failures, s.Usage = s.Failures+1, s.Usage.Add(used(s, h.Record))
		}
		if r.digest == nil {
			continue
		}
		s, rec := step(id(r.digest), h.Path, h.Kind, h.Name), h.Record
		s.Recorded, s.From, s.Time, s.Ended, s.Type, s.Node, s.Sum = true, h.From, rec.Time, at, rec.Type, id(r.node), rec.Sum
		if rec.Failure != nil {
			s.Failure, s.Reason = rec.Failure.Kind, rec.Failure.Reason
		}
		if s.Usage = s.Usage.Add(used(s, rec)); h.From != "" {
			s.Begun = at
		}
	}
	return steps, nil
}

// used returns what a step has used up as its record says.
func used(s *journal.Step, rec *stone.Record) journal.Usage {
	if s.Declared == (budget.Amount{}) {
		return journal.Usage{}
	}
	return journal.UsageOf(*rec)
}

// Record implements [journal.Reader].
func (db *DB) Record(ctx context.Context, run, path, kind string) (stone.Record, error) {
	r, err := newScanner().scan(db.sql.QueryRowContext(ctx, "SELECT "+columns+` FROM records
		WHERE seq BETWEEN (SELECT run << 32 FROM runs WHERE id = ?1) AND (SELECT (run + 1 << 32) - 1 FROM runs WHERE id = ?1)
		AND digest IS NOT NULL AND head->>'path' = ?2 AND head->>'kind' = ?3 ORDER BY seq DESC LIMIT 1`, run, path, kind))
	if errors.Is(err, sql.ErrNoRows) {
		return stone.Record{}, fmt.Errorf("run %q, %s %s: %w", run, kind, path, journal.ErrNoStep)
	}
	if err != nil {
		return stone.Record{}, db.explain(err)
	}
	return db.replay(run, r)
}

// DAG implements [journal.Reader].
func (db *DB) DAG(ctx context.Context, run string) (dag.DAG, error) {
	in, out := io.Pipe()
	last := make(chan sealed, 1) // that was read
	go func() {
		at, err := db.writeNodes(ctx, out, run)
		last <- at
		out.CloseWithError(err)
	}()
	d, err := dag.Read(in)
	in.Close()
	at := <-last
	var bad *dag.FormatError
	if errors.As(err, &bad) {
		h, _ := at.open() // for its path; what is wrong is known
		return dag.DAG{}, db.damage(run, at, h, errors.New("is refused: "+bad.Reason))
	}
	if err != nil {
		return dag.DAG{}, db.explain(errors.Unwrap(err))
	}
	return db.reached(ctx, run, d)
}

// reached returns, of all nodes of a run, those of the DAG with which it has ended.
func (db *DB) reached(ctx context.Context, run string, d dag.DAG) (dag.DAG, error) {
	var outcome sql.NullString
	err := db.sql.QueryRowContext(ctx, "SELECT outcome FROM runs WHERE id = ?", run).Scan(&outcome)
	if errors.Is(err, sql.ErrNoRows) || err == nil && !outcome.Valid {
		return d, nil
	}
	var o journal.Outcome
	if err == nil {
		err = json.Unmarshal([]byte(outcome.String), &o)
	}
	if err != nil {
		return dag.DAG{}, db.explain(err)
	}
	if len(o.Heads) == 0 {
		return d, nil
	}
	places := make(map[dag.ID]int, len(o.Heads))
	for i, id := range o.Heads {
		places[id] = i
	}
	heads := make([]*dag.Node, len(o.Heads))
	for n := range d.Nodes() {
		if i, ok := places[n.ID()]; ok {
			heads[i] = n
		}
	}
	if i := slices.Index(heads, nil); i >= 0 {
		return dag.DAG{}, &journal.DamageError{Where: db.file, Run: run, Node: o.Heads[i].String(), Reason: "is lost"}
	}
	return journal.Reached(heads)
}

// writeNodes writes nodes as dag.Read wants them. It returns the row at which it
// ended: a pipe has no buffer, so that is the one that the reader refused.
func (db *DB) writeNodes(ctx context.Context, w io.Writer, run string) (at sealed, err error) {
	for r, err := range db.rows(ctx, run, "node IS NOT NULL") {
		if err != nil {
			return at, err
		}
		at = r
		h, err := r.open()
		if err != nil {
			return at, db.damage(run, at, h, err)
		}
		parents := slices.AppendSeq([]dag.ID{}, ids(r.parents))
		line, err := json.Marshal(struct {
			ID      dag.ID            `json:"id"`
			Type    string            `json:"type"`
			Parents []dag.ID          `json:"parents"`
			Content json.RawMessage   `json:"content"`
			Meta    map[string]string `json:"meta,omitempty"`
			Time    time.Time         `json:"time,omitzero"`
		}{id(r.node), h.Record.Type, parents, h.Record.Content, h.Record.Meta, h.Record.Time})
		if err != nil {
			return at, db.damage(run, at, h, fmt.Errorf("cannot be read: %w", err))
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return at, err
		}
	}
	return at, nil
}
