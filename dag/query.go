package dag

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// A Query says what a step reads. A Type is the query for its nearest node; for
// the others see [Every], [Since], [Latest] and [Everything]. The zero Query, and
// one made of a nil type, asks for nothing.
type Query struct {
	mode     mode
	typ      AnyType // nil for Latest, Everything and nothing
	after    AnyType // for Since
	optional bool
}

type mode uint8

const (
	nearest mode = iota
	all
	since
	latest
	everything
)

// A Querier is a Query or something that stands for one: a Type stands for its
// nearest node.
type Querier interface{ Query() Query }

// Query returns q itself.
func (q Query) Query() Query { return q }

// Types makes a list of queries, so that it reads well in a struct literal.
func Types(qs ...Querier) []Query {
	out := make([]Query, len(qs))
	for i, q := range qs {
		out[i] = queryOf(q)
	}
	return out
}

// queryOf is q.Query(), and for nil the zero Query.
func queryOf(q Querier) Query {
	if q == nil {
		return Query{}
	}
	return q.Query()
}

// nameOf is t.Name(), and for nil a name that no node has.
func nameOf(t AnyType) string {
	if t == nil {
		return ""
	}
	return t.Name()
}

// Every is the query for all nodes of a type.
func Every(t AnyType) Query { return Query{mode: all, typ: t} }

// Since is the query for the nodes of type t on the current line that came
// after the nearest node of the other type; see [DAG.Since].
func Since(t, after AnyType) Query { return Query{mode: since, typ: t, after: after} }

// Optional makes a query one that may find nothing: no validator asks for a
// producer, and the reader deals with ErrMissing.
func Optional(q Querier) Query {
	query := queryOf(q)
	query.optional = true
	return query
}

var (
	// Latest is the query for the latest node, whatever its type.
	Latest = Query{mode: latest}
	// Everything allows every read. A step that declares it depends on all
	// that came before it.
	Everything = Query{mode: everything}
)

// Type returns the type that is asked for, nil for Latest and Everything.
func (q Query) Type() AnyType { return q.typ }

// After returns the type at which a Since query stops, otherwise nil.
func (q Query) After() AnyType { return q.after }

// IsNearest reports whether q asks for the nearest node of its type.
func (q Query) IsNearest() bool { return q.mode == nearest }

// IsOptional reports whether q may find nothing.
func (q Query) IsOptional() bool { return q.optional }

// String returns the query as a program writes it.
func (q Query) String() string {
	name := "nothing"
	if q.typ != nil {
		name = fmt.Sprintf("%q", q.typ.Name())
	}
	switch q.mode {
	case all:
		name = "every " + name
	case since:
		name += fmt.Sprintf(" since %q", nameOf(q.after))
	case latest:
		name = "the latest node"
	case everything:
		name = "everything"
	}
	if q.optional {
		name = "optional " + name
	}
	return name
}

// Digest identifies what q reads in d: equal digests, equal answers. Without
// across it is made of node ids, which carry the whole lineage. With across it is
// made of types and contents, so that it can be compared with that of another run.
// Everything covers the shape of the graph too: across runs the parents of every
// node by their position, otherwise the ids of the heads.
func (q Query) Digest(d DAG, across bool) ID {
	h := sha256.New()
	nodes := q.answer(d.Within(nil), across)
	for _, n := range nodes {
		id := n.ID()
		if across {
			id = sha256.Sum256([]byte(n.Type() + "\x00" + n.JSON()))
		}
		h.Write(id[:])
	}
	if across && q.mode == everything {
		h.Write(shape(d, nodes))
	}
	return ID(h.Sum(nil))
}

// shape writes down the parents of every node and those of the next one, by their
// positions among the nodes.
func shape(d DAG, nodes []*Node) []byte {
	at := make(map[ID]int, len(nodes))
	for i, n := range nodes {
		at[n.id] = i
	}
	var b []byte
	list := func(parents []*Node) {
		b = binary.AppendUvarint(b, uint64(len(parents)))
		for _, p := range parents {
			b = binary.AppendUvarint(b, uint64(at[p.id]))
		}
	}
	for _, n := range nodes {
		list(n.Parents())
	}
	list(d.next())
	return b
}

// answer returns the nodes that q reads in d, or heads that stand for them.
func (q Query) answer(d DAG, across bool) []*Node {
	var nodes []*Node
	switch q.mode {
	case nearest:
		n, _ := d.Nearest(nameOf(q.typ))
		nodes = []*Node{n}
	case all:
		nodes, _ = d.All(nameOf(q.typ))
	case since:
		nodes, _ = d.Since(nameOf(q.typ), nameOf(q.after))
	case latest:
		nodes = []*Node{d.Latest()}
	case everything:
		if !across {
			return d.next()
		}
		nodes = slices.Collect(d.Nodes())
	}
	return nodes
}

var (
	// ErrMissing says that there is no node of the type that was asked for.
	ErrMissing = errors.New("no such node")
	// ErrUndeclared says that a step read what it had not declared.
	ErrUndeclared = errors.New("not declared")
)

// A ReadError says which read found nothing, and why: its Err is ErrMissing or
// ErrUndeclared.
type ReadError struct {
	Type  string // empty if it was the whole DAG
	After string // for Since
	Err   error
}

// Error says what was asked for and what to do.
func (e *ReadError) Error() string {
	what := fmt.Sprintf("%q", e.Type)
	if e.Type == "" {
		what = "everything"
	}
	if e.After != "" {
		what += fmt.Sprintf(" since %q", e.After)
	}
	if errors.Is(e.Err, ErrUndeclared) {
		return fmt.Sprintf("read of %s is not declared: add it to the queries of this step", what)
	}
	return fmt.Sprintf("no %s node before this place", what)
}

// Unwrap returns ErrMissing or ErrUndeclared.
func (e *ReadError) Unwrap() error { return e.Err }

// A View limits what one reader sees of a DAG to what its queries name. A read
// beyond that answers with ErrUndeclared and is reported. Both methods may be
// called from several goroutines at once. Heads, Next and the parents of a node
// are not limited: they are what new nodes are made of.
type View interface {
	Declared() []Query
	Undeclared(*ReadError)
}

// allows reports whether the view, if there is one, permits the read.
func (d DAG) allows(m mode, typ, after string) bool {
	if d.view == nil {
		return true
	}
	for _, q := range d.view.Declared() {
		switch {
		case q.mode == everything:
			return true
		case q.mode == m && nameOf(q.typ) == typ && nameOf(q.after) == after:
			return true
		}
	}
	return false
}

// shows reports whether some query of the view names the type.
func (d DAG) shows(typ string) bool {
	if d.view == nil {
		return true
	}
	for _, q := range d.view.Declared() {
		if q.mode == everything || nameOf(q.typ) == typ {
			return true
		}
	}
	return false
}

func (d DAG) refuse(typ, after string) error {
	err := &ReadError{Type: typ, After: after, Err: ErrUndeclared}
	d.view.Undeclared(err)
	return err
}
