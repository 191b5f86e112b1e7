package dag

import (
	"fmt"
	"slices"
	"strings"
)

// This file implements reads of a fan-out's lanes in the Reduce that joins them.

// Lanes returns a reader that yields, for each surviving lane in lane order, the content of its nearest node of type t. Use it in
// the Reduce that closes a fan-out. The type t may be the type of the items. If a lane contains another fan-out, Lanes sees the
// result of that fan-out's Reduce. If a lane has no node of type t, the read fails with an error that names the lane.
func Lanes[A any](t Type[A]) Reader[[]A] {
	return readerOf[[]A]{[]Query{t.Query().Lanes()}, func(d DAG) ([]A, error) { return column(d, t) }}
}

// A Row2 holds the two values that Lanes2 reads from one lane.
type Row2[A, B any] struct {
	A A
	B B
}

// Lanes2 is like Lanes for two types, and returns one row per lane:
//
//	stone.Reduce(stone.Func("report", dag.Lanes2(Ticket, Reply), Report, report))
func Lanes2[A, B any](a Type[A], b Type[B]) Reader[[]Row2[A, B]] {
	return readerOf[[]Row2[A, B]]{[]Query{a.Query().Lanes(), b.Query().Lanes()}, func(d DAG) ([]Row2[A, B], error) {
		as, err := column(d, a)
		if err != nil {
			return nil, err
		}
		bs, err := column(d, b)
		if err != nil {
			return nil, err
		}
		rows := make([]Row2[A, B], len(as))
		for i := range rows {
			rows[i] = Row2[A, B]{as[i], bs[i]}
		}
		return rows, nil
	}}
}

// A Row3 holds the three values that Lanes3 reads from one lane.
type Row3[A, B, C any] struct {
	A A
	B B
	C C
}

// Lanes3 is like Lanes for three types, and returns one row per lane.
func Lanes3[A, B, C any](a Type[A], b Type[B], c Type[C]) Reader[[]Row3[A, B, C]] {
	return Derive2(Lanes2(a, b), Lanes(c), func(pairs []Row2[A, B], cs []C) []Row3[A, B, C] {
		rows := make([]Row3[A, B, C], len(pairs))
		for i, p := range pairs {
			rows[i] = Row3[A, B, C]{p.A, p.B, cs[i]}
		}
		return rows
	})
}

// column returns the values of one type, one for each lane.
func column[T any](d DAG, t Type[T]) ([]T, error) {
	nodes, err := d.Lanes(t.Name())
	if err != nil {
		return nil, err
	}
	out := make([]T, len(nodes))
	for i, n := range nodes {
		if n == nil {
			return nil, &ReadError{Type: t.Name(), Lane: d.laneName(i), Err: ErrMissing}
		}
		if out[i], err = t.Of(n); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Reduce returns d in the form in which the body of a Reduce receives it: even after the body has appended nodes, reads of lanes
// find the lanes of the fan-out at the end of d.
func (d DAG) Reduce() DAG {
	d.closing = d.log
	return d
}

// Reduced returns d, the result of a Reduce's body, for the steps after it. Before is the DAG at the start of the Reduce.
func (d DAG) Reduced(before DAG) DAG {
	d.closing = before.closing
	return d
}

// Lanes returns, for each surviving lane of the fan-out closed by the enclosing Reduce, the lane's nearest node that has one of
// the types, or nil. The cost is linear in the number of the lanes' nodes. The error is a *ReadError, which wraps ErrUndeclared if
// the view of d does not allow the read, and ErrMissing outside such a Reduce.
func (d DAG) Lanes(types ...string) ([]*Node, error) {
	for _, typ := range types {
		if !d.allows(lanes, typ, "") {
			return nil, d.refuse(typ, "")
		}
	}
	ends, base, ok := d.ends()
	if !ok {
		return nil, &ReadError{Type: strings.Join(types, ", "), Err: errNoLanes}
	}
	out := make([]*Node, 0, len(ends))
	var last *Node // the start of the previous lane
	for _, end := range ends {
		if lostLane(end) {
			continue
		}
		var found, start *Node
		for n := end; n != nil && !n.is(base); n = n.Parent() {
			if start = n; found == nil && slices.Contains(types, n.typ) {
				found = n
			}
		}
		if start != nil && start == last { // of a lane that ends in several nodes, the last one counts
			out = out[:len(out)-1]
		}
		out, last = append(out, found), start
	}
	return out, nil
}

// ends returns the last nodes of the lanes that the enclosing Reduce closes, including lost lanes, and the node before the
// fan-out. It returns false if there is no such fan-out.
func (d DAG) ends() (ends []*Node, base *Node, ok bool) {
	if d.closing == nil {
		return nil, nil, false
	}
	heads, from := d.closing.heads(), d.closing.from()
	for i, h := range heads {
		if from[i] != h {
			base, ends = from[i], ungrouped(ends, h)
		}
	}
	return ends, base, base != nil || heads[0].typ == join.Name() // true also for a fan-out without lanes
}

// ungrouped adds the ends of lanes from their groups.
func ungrouped(ends []*Node, head *Node) []*Node {
	if head.typ != join.Name() || len(head.parents) < 2 {
		return append(ends, head)
	}
	for _, h := range head.parents[1:] {
		ends = ungrouped(ends, h)
	}
	return ends
}

func (n *Node) is(other *Node) bool { return n == other || n.id == other.id }

// laneName returns a name for the i-th surviving lane, made of its number and its item.
func (d DAG) laneName(i int) string {
	ends, base, _ := d.ends()
	for at, end := range ends {
		if lostLane(end) {
			continue
		}
		if i--; i >= 0 {
			continue
		}
		start := end
		for up := end.Parent(); up != nil && !up.is(base); up = up.Parent() {
			start = up
		}
		if start.typ == laneMarker.Name() {
			return fmt.Sprintf("lane %d", at)
		}
		return fmt.Sprintf("lane %d (%.60s)", at, start.Text())
	}
	return "a lane"
}

// lostLane reports whether n is the failure of a dropped lane.
func lostLane(n *Node) bool {
	if n.typ != Failure.Name() {
		return false
	}
	f, err := Failure.Of(n)
	return err == nil && f.Lane != nil
}

// errNoLanes is the error for a read of lanes outside a Reduce that closes a fan-out.
var errNoLanes = fmt.Errorf("%w: no fan-out is closed here", ErrMissing)
