package dag

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/terms"
)

// A Query describes which nodes a step reads. Unlike a [Reader], it does not know the Go type of the result. [Type.Query] returns
// the query for the nearest node of a type; the methods All, Since and Optional turn it into other queries for the same type. The
// zero Query asks for nothing.
type Query struct {
	mode     mode
	typ      AnyType // nil for Latest, Everything and the zero Query
	after    AnyType // for Since
	lens     *lens   // for Lens
	optional bool
	history  bool // whether History made the query
	inner    bool // see Inner
}

// lens describes what a query reads in the latest node.
type lens struct {
	path []string
	typ  AnyType
}

type mode uint8

const (
	nearest mode = iota
	all
	since
	latest
	everything
	lanes
)

// A Querier declares the queries of a step. Queries and readers are Queriers.
type Querier interface{ Queries() []Query }

// Queries returns a slice with q as its only element.
func (q Query) Queries() []Query { return []Query{q} }

// Types returns the queries of all qs. For a nil Querier, it returns the zero Query.
func Types(qs ...Querier) []Query {
	out := make([]Query, 0, len(qs))
	for _, q := range qs {
		if q == nil {
			out = append(out, Query{})
		} else {
			out = append(out, q.Queries()...)
		}
	}
	return out
}

// nameOf returns t.Name(), or "" if t is nil. No node has the type "".
func nameOf(t AnyType) string {
	if t == nil {
		return ""
	}
	return t.Name()
}

// All returns the query for all nodes of q's type.
func (q Query) All() Query {
	q.mode = all
	return q
}

// History is like All, but for the reader that the function History returns.
func (q Query) History() Query {
	q.mode, q.history = all, true
	return q
}

// Lanes returns the query for the nearest node of q's type in each lane; see the function Lanes.
func (q Query) Lanes() Query {
	q.mode = lanes
	return q
}

// Since returns the query for the nodes of q's type that follow the nearest node of type after; see [DAG.Since].
func (q Query) Since(after AnyType) Query {
	q.mode, q.after = since, after
	return q
}

// Optional returns a copy of q that may find nothing, so the validator does not require a step that produces its type.
func (q Query) Optional() Query {
	q.optional = true
	return q
}

// Inner returns a copy of q for values that only the run itself or its server provides, such as the earlier messages of a chat.
// Clients of a published pipeline cannot supply such a value as input.
func (q Query) Inner() Query {
	q.inner = true
	return q
}

// Type returns the type that q asks for. It returns nil for Latest, Everything and the zero Query.
func (q Query) Type() AnyType { return q.typ }

// After returns the type passed to Since, or nil if q is not a Since query.
func (q Query) After() AnyType { return q.after }

// Lens returns the field names that a query of a [Lens] follows into the latest node, and the type of the value found there. The
// type's name has no meaning. For any other query, the type is nil.
func (q Query) Lens() ([]string, AnyType) {
	if q.lens == nil {
		return nil, nil
	}
	return slices.Clone(q.lens.path), q.lens.typ
}

// IsNearest reports whether q asks for the nearest node of its type.
func (q Query) IsNearest() bool { return q.mode == nearest }

// IsAll reports whether q asks for all nodes of its type.
func (q Query) IsAll() bool { return q.mode == all }

// IsHistory reports whether q was made by History.
func (q Query) IsHistory() bool { return q.history }

// IsLanes reports whether q asks for the nearest node of its type in each lane.
func (q Query) IsLanes() bool { return q.mode == lanes }

// IsLatest reports whether q asks for the latest node of any type.
func (q Query) IsLatest() bool { return q.mode == latest }

// IsEverything reports whether q is the query of Everything, which allows every read.
func (q Query) IsEverything() bool { return q.mode == everything }

// IsOptional reports whether q may find nothing.
func (q Query) IsOptional() bool { return q.optional }

// IsInner reports whether q asks for a value that clients cannot supply.
func (q Query) IsInner() bool { return q.inner }

// String returns a human-readable form of the query, such as `every "reply"`.
func (q Query) String() string {
	name := "nothing"
	if q.typ != nil {
		name = fmt.Sprintf("%q", q.typ.Name())
	}
	switch q.mode {
	case all:
		name = "every " + name
	case lanes:
		name += " of each lane"
	case since:
		name += fmt.Sprintf(" since %q", nameOf(q.after))
	case latest:
		if name = "the latest node"; q.lens != nil && len(q.lens.path) > 0 {
			name = fmt.Sprintf("%q of the latest node", strings.Join(q.lens.path, "."))
		}
	case everything:
		name = "everything"
	}
	if q.optional {
		name = "optional " + name
	}
	return name
}

// Digest returns a digest of the nodes that q reads in d: equal digests mean equal results. Without across, the digest is a hash
// of node ids, which cover all ancestors. With across, it is a hash of types and contents, as returned by Own, and can be
// compared between runs. For Everything, the digest also covers the shape of the graph: with across, the positions of every
// node's parents, otherwise the ids of the heads.
func (q Query) Digest(d DAG, across bool) ID {
	h := sha256.New()
	nodes := q.answer(d.Within(nil), across)
	for _, n := range nodes {
		id := n.ID()
		if across {
			id = sha256.Sum256([]byte(n.Type() + "\x00" + n.Own()))
		} else if q.mode != everything {
			id = n.as()
		}
		h.Write(id[:])
	}
	if across && q.mode == everything {
		h.Write(shape(d, nodes))
	}
	return ID(h.Sum(nil))
}

// as returns the id of n or, if a fork copied n from another run, the id of the original node.
func (n *Node) as() ID {
	if n != nil && n.meta[terms.As] != "" {
		if id, err := ParseID(n.meta[terms.As]); err == nil {
			return id
		}
	}
	return n.ID()
}

// shape returns an encoding of the parents of every node, and of the next node, as positions in the list of nodes.
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

// answer returns the nodes that q reads in d. For Everything without across, it returns only the heads, whose ids cover all
// nodes.
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
	case lanes:
		nodes, _ = d.Lanes(nameOf(q.typ))
	case everything:
		if !across {
			return d.next()
		}
		nodes = slices.Collect(d.Nodes())
	}
	return nodes
}

var (
	// ErrMissing is the error for a read that finds no node of the requested type.
	ErrMissing = errors.New("no such node")
	// errNoField is the error that Lens returns for a node without the field.
	errNoField = errors.New("the latest node has no such field")
	// ErrUndeclared is the error for a read that the step has not declared.
	ErrUndeclared = errors.New("not declared")
)

// A ReadError is a failed read. Its Err is ErrMissing or ErrUndeclared.
type ReadError struct {
	Type  string // empty if the query reads the whole DAG or the latest node
	After string // for Since
	Lane  string // for Lanes: the lane that has no node of the type
	Err   error
}

// Error returns a message that describes the failed read and says what to do.
func (e *ReadError) Error() string {
	what := fmt.Sprintf("%q", e.Type)
	if e.Type == "" {
		what = "everything"
	}
	if e.Type == "" && errors.Is(e.Err, ErrMissing) {
		return "no node before this place"
	}
	switch {
	case errors.Is(e.Err, errNoLanes):
		return fmt.Sprintf("no fan-out is closed here, so there are no lanes with %s: read it in the Reduce after a fan-out", what)
	case e.Lane != "":
		return fmt.Sprintf("%s has no %s node: produce one in each surviving lane, or read all nodes with dag.All", e.Lane, what)
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

// Context returns the context of the body to which d was passed. If d has no view, or a view without a context, it returns
// context.Background(). Slow readers use the context for cancellation and for limits.
func (d DAG) Context() context.Context {
	if ctx, ok := d.view.(context.Context); ok {
		return ctx
	}
	return context.Background()
}

// A View limits the reads of a DAG to declared queries. Any other read returns ErrUndeclared and is reported to Undeclared. Both
// methods may be called from several goroutines at once. Heads, Next and the parents of a node are not limited, because new nodes
// need them.
type View interface {
	Declared() []Query
	Undeclared(*ReadError)
}

// allows reports whether the view of d permits the read. Without a view, every read is permitted.
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

// shows reports whether at least one query of d's view names the type.
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
