package sqlite

import (
	"context"
	"encoding/json"

	"github.com/stonelayer/stone/dag"
)

// An intent says that the work of a step begins.
type intent struct {
	Digest dag.ID `json:"digest"`
	Path   string `json:"path"`
	Kind   string `json:"kind"`
	Name   string `json:"name"`
}

// transaction is one commit. What it knows is told to the runs when it stands.
type transaction struct {
	*writer
	group   []*write
	parts   []*part
	seconds []*write // results of steps that have one already
}

// part is what a transaction holds of one run.
type part struct {
	run     *run
	next    int64 // sequence number
	taken   bool  // by another owner
	intents []*intent
	nodes   map[dag.ID]bool // that are new in the file
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
	if err := t.stmt.ours.QueryRowContext(context.Background(), r.row, t.db.owner).Scan(&ours); err != nil {
		return nil, err
	}
	p := &part{run: r, next: r.next, taken: ours == 0, nodes: map[dag.ID]bool{}}
	t.parts = append(t.parts, p)
	return p, nil
}

func (t *transaction) apply() error {
	for _, x := range t.group {
		p, err := t.part(x.run)
		if err != nil {
			return err
		}
		switch {
		case p.taken:
		case x.intent != nil && !x.abandoned.Load():
			p.intents = append(p.intents, x.intent)
		case x.row != nil:
			err = t.record(p, x)
		case x.intent == nil:
			err = t.exec(t.stmt.beat, x.run.row, t.db.owner)
		}
		if err != nil {
			return err
		}
	}
	for _, p := range t.parts {
		if len(p.intents) == 0 {
			continue
		}
		steps, err := json.Marshal(p.intents)
		if err != nil {
			return err
		}
		if err := t.exec(t.stmt.intents, p.seq(), string(steps)); err != nil {
			return err
		}
	}
	return nil
}

func (p *part) seq() int64 {
	p.next++
	return p.run.row<<32 | p.next
}

// record writes a result, and before it the nodes from which its node was made.
func (t *transaction) record(p *part, x *write) error {
	if x.row.made != nil {
		for _, n := range p.missing(x.row.made) {
			row, err := nodeRow(n)
			if err != nil {
				return err
			}
			if err := t.exec(t.stmt.record, row.args(p.seq(), p.run.row)...); err != nil {
				return err
			}
			p.nodes[n.ID()] = true
		}
	}
	first, err := t.changed(t.stmt.record, x.row.args(p.seq(), p.run.row)...)
	switch {
	case err != nil:
		return err
	case !first:
		t.seconds = append(t.seconds, x)
	case x.row.made != nil:
		p.nodes[x.row.made.ID()] = true
	}
	return nil
}

// missing returns the ancestors of n that are not in the file, parents first.
func (p *part) missing(n *dag.Node) []*dag.Node {
	var found []*dag.Node
	seen := map[dag.ID]bool{}
	type visit struct {
		node *dag.Node
		done bool // its parents are found
	}
	var todo []visit
	push := func(n *dag.Node) {
		for _, parent := range n.Parents() {
			if id := parent.ID(); !p.run.nodes[id] && !p.nodes[id] && !seen[id] {
				todo = append(todo, visit{node: parent})
			}
		}
	}
	for push(n); len(todo) > 0; {
		v := &todo[len(todo)-1]
		id := v.node.ID()
		switch {
		case !v.done && !seen[id]:
			v.done, seen[id] = true, true
			push(v.node)
			continue
		case v.done:
			found = append(found, v.node)
		}
		todo = todo[:len(todo)-1]
	}
	return found
}

// settle tells the runs and the callers that the transaction stands.
func (t *transaction) settle() {
	held := map[*run]error{}
	for _, p := range t.parts {
		if p.taken {
			held[p.run] = t.holder(p.run)
			continue
		}
		p.run.next = p.next
		for id := range p.nodes {
			p.run.nodes[id] = true
		}
	}
	for _, x := range t.seconds {
		x.second = true
	}
	for _, x := range t.group {
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
	held := &HeldError{File: t.db.file, Run: r.id}
	if err := t.conn.QueryRowContext(context.Background(), "SELECT owner FROM runs WHERE run = ?", r.row).Scan(&held.Owner); err != nil {
		return t.db.explain(err)
	}
	return held
}
