package sqlite

import (
	"context"
	"database/sql"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
)

// transaction is one commit. What it knows is told to the runs when it stands.
type transaction struct {
	*writer
	parts []*part
}

// part is what a transaction holds of one run.
type part struct {
	run     *run
	next    int64 // sequence number
	taken   bool  // by another owner
	intents []*intent
	nodes   []dag.ID // that are new in the file
}

// part returns the part of a run. The first time it checks the lease. There are
// few runs in one commit, most often one.
func (t *transaction) part(r *run) (*part, error) {
	for _, p := range t.parts {
		if p.run == r {
			return p, nil
		}
	}
	var ours int
	if err := t.stmt.ours.QueryRowContext(context.Background(), r.row.Load(), t.db.owner).Scan(&ours); err != nil {
		return nil, err
	}
	p := &part{run: r, next: r.next, taken: ours == 0}
	t.parts = append(t.parts, p)
	return p, nil
}

// apply writes a group of intents, results and signs of life.
func (t *transaction) apply(group []*write) error {
	for _, x := range group {
		p, err := t.part(x.run)
		if err != nil {
			return err
		}
		switch {
		case p.taken:
		case x.intent != nil && !x.abandoned.Load():
			p.intents = append(p.intents, x.intent)
		case x.row != nil:
			err = t.record(p, x.row)
		case x.intent == nil:
			err = t.exec(t.stmt.beat, x.run.row.Load(), t.db.owner)
		}
		if err != nil {
			return err
		}
	}
	for _, p := range t.parts {
		if len(p.intents) == 0 {
			continue
		}
		begun, err := intentRow(p.intents, t.db.now())
		if err != nil {
			return err
		}
		if err := t.insert(p, begun); err != nil {
			return err
		}
	}
	return nil
}

// record writes a result, and before it the nodes from which its node was made.
func (t *transaction) record(p *part, r *row) error {
	if r.made != nil {
		for _, n := range journal.Missing(r.made, p.run.nodes) {
			if err := t.node(p, n); err != nil {
				return err
			}
		}
	}
	return t.insert(p, r)
}

// node writes a node that no step made.
func (t *transaction) node(p *part, n *dag.Node) error {
	r, err := nodeRow(n, t.db.now())
	if err != nil {
		return err
	}
	return t.insert(p, r)
}

func (t *transaction) insert(p *part, r *row) error {
	p.next++
	r.seq = p.run.row.Load()<<32 | p.next
	if r.node != nil && !p.run.nodes[id(r.node)] {
		p.run.nodes[id(r.node)] = true
		p.nodes = append(p.nodes, id(r.node))
	}
	return t.exec(t.stmt.record, r.args(r.seq)...)
}

// stands tells the runs that the transaction stands, or that it does not.
func (t *transaction) stands(ok bool) {
	for _, p := range t.parts {
		if ok {
			p.run.next = p.next
			continue
		}
		for _, id := range p.nodes {
			delete(p.run.nodes, id)
		}
	}
}

// holders says who has the runs that were taken over.
func (t *transaction) holders() map[*run]error {
	held := map[*run]error{}
	for _, p := range t.parts {
		if p.taken {
			held[p.run] = t.holder(p.run)
		}
	}
	return held
}

// settle tells the callers and their runs that the transaction stands. The writer
// is not locked meanwhile: whoever has a run locked may be waiting for it.
func settle(group []*write, held map[*run]error) {
	for _, x := range group {
		if x.err = held[x.run]; x.err != nil {
			x.run.drop(x)
		} else if x.row != nil {
			x.run.written(x)
		}
		if x.done != nil {
			close(x.done)
		}
	}
}

// holder says who has taken a run over.
func (t *transaction) holder(r *run) error {
	held := &journal.HeldError{Where: t.db.file, Run: r.id}
	if err := t.conn.QueryRowContext(context.Background(), "SELECT owner FROM runs WHERE run = ?", r.row.Load()).Scan(&held.Owner); err != nil {
		return t.db.explain(err)
	}
	return held
}

// do executes a statement that is not worth preparing.
func (t *transaction) do(statement string, args ...any) (changed int64, err error) {
	result, err := t.conn.ExecContext(context.Background(), statement, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// row queries one row.
func (t *transaction) row(query string, args ...any) *sql.Row {
	return t.conn.QueryRowContext(context.Background(), query, args...)
}

// all reads the rows of records for which the query asks.
func (t *transaction) all(query string, args ...any) (found []sealed, err error) {
	rows, err := t.conn.QueryContext(context.Background(), query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for s := newScanner(); rows.Next(); {
		r, err := s.scan(rows)
		if err != nil {
			return nil, err
		}
		found = append(found, r)
	}
	return found, rows.Err()
}
