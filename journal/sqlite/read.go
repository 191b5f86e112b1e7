package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/stonelayer/stone/dag"
)

// Step is what the file knows of a step.
type Step struct {
	Path, Kind, Name string // as in stone.Key
	// Attempts is how often its work was begun. If it is not Recorded, the last
	// one is under way, or was when its process ended or gave up.
	Attempts int
	Recorded bool
	Time     time.Time // of the result
	Node     dag.ID    // that it made, zero if it made none
	Failure  string    // kind of the failure with which it ended, empty if it did not
}

// PossiblyPaid is how many attempts have left no result, though their work may
// have cost something.
func (s Step) PossiblyPaid() int {
	if s.Recorded {
		return max(s.Attempts-1, 0)
	}
	return s.Attempts
}

// Steps returns the steps of a run in the order in which they were begun first,
// those not among them whose result came from another run. It takes no lease;
// the run may be under way, here or elsewhere. A run that the file does not have
// has no steps.
func (db *DB) Steps(ctx context.Context, run string) ([]Step, error) {
	rows, err := db.sql.QueryContext(ctx, `SELECT s.value->>'digest', s.value->>'path', s.value->>'kind', s.value->>'name'
		FROM runs r JOIN intents i ON i.seq BETWEEN r.run << 32 AND (r.run + 1 << 32) - 1, json_each(i.steps) s
		WHERE r.id = ? ORDER BY i.seq, s.key`, run)
	if err != nil {
		return nil, db.explain(err)
	}
	defer rows.Close()
	var steps []Step
	index := map[dag.ID]int{}
	for rows.Next() {
		var s Step
		var text string
		if err := rows.Scan(&text, &s.Path, &s.Kind, &s.Name); err != nil {
			return nil, db.explain(err)
		}
		digest, err := dag.ParseID(text)
		if err != nil {
			return nil, &DamageError{File: db.file, Run: run, Path: s.Path, Reason: "has an intent without a digest"}
		}
		i, old := index[digest]
		if !old {
			i = len(steps)
			index[digest], steps = i, append(steps, s)
		}
		steps[i].Attempts++
	}
	if err := rows.Err(); err != nil {
		return nil, db.explain(err)
	}
	for r, err := range db.rows(ctx, run) {
		if err != nil {
			return nil, err
		}
		if i, ok := index[id(r.digest)]; ok && r.digest != nil {
			if err := steps[i].result(r); err != nil {
				return nil, db.damage(run, r.row, err)
			}
		}
	}
	return steps, nil
}

func (s *Step) result(r sealed) error {
	rec, err := r.record()
	if err != nil {
		return err
	}
	s.Recorded, s.Time, s.Node = true, rec.Time, id(r.node)
	if rec.Failure != nil {
		s.Failure = rec.Failure.Kind
	}
	return nil
}

// DAG returns the nodes that are recorded of a run: those that its leaves made,
// and all from which they were made. It checks the id of every node; one that was
// changed is refused with a [*DamageError]. Like Steps it takes no lease.
func (db *DB) DAG(ctx context.Context, run string) (dag.DAG, error) {
	in, out := io.Pipe()
	last := make(chan *row, 1) // that was read
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
		return dag.DAG{}, db.damage(run, at, errors.New("is refused: "+bad.Reason))
	}
	if err != nil {
		return dag.DAG{}, db.explain(errors.Unwrap(err))
	}
	return d, nil
}

// writeNodes writes nodes as dag.Read wants them. It returns the row at which it
// ended: a pipe has no buffer, so that is the one that the reader refused.
func (db *DB) writeNodes(ctx context.Context, w io.Writer, run string) (at *row, err error) {
	for r, err := range db.rows(ctx, run) {
		if err != nil {
			return at, err
		}
		if r.node == nil {
			continue
		}
		at = r.row
		rec, err := r.record()
		if err != nil {
			return at, db.damage(run, at, err)
		}
		parents := []dag.ID{}
		for rest := r.parents; len(rest) >= len(dag.ID{}); rest = rest[len(dag.ID{}):] {
			parents = append(parents, dag.ID(rest[:len(dag.ID{})]))
		}
		line, err := json.Marshal(struct {
			ID      dag.ID            `json:"id"`
			Type    string            `json:"type"`
			Parents []dag.ID          `json:"parents"`
			Content json.RawMessage   `json:"content"`
			Meta    map[string]string `json:"meta,omitempty"`
			Time    time.Time         `json:"time,omitzero"`
		}{id(r.node), rec.Type, parents, rec.Content, rec.Meta, rec.Time})
		if err != nil {
			return at, db.damage(run, at, fmt.Errorf("cannot be read: %w", err))
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return at, err
		}
	}
	return at, nil
}

// id is the id in a column, zero if there is none.
func id(column []byte) (id dag.ID) {
	copy(id[:], column)
	return id
}
