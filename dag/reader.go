package dag

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/stonelayer/stone/internal/jsonv2"
)

// A Reader declares queries and returns a value of type T that it reads from a DAG. [Type] reads the nearest node; [All],
// [Lanes], [Maybe], [Since], [Latest] and [Everything] read in other ways, and [Derive] makes readers from readers.
//
// A reader may have a method Version() string. Like a leaf's stone.Version, that version becomes part of the fingerprint: of a
// decision that uses the reader, or of a call that takes its input from the reader.
type Reader[T any] interface {
	Querier
	// From returns the value read from d. The error is a [*ReadError], which wraps ErrMissing if no node is found, and
	// ErrUndeclared if the step to which d belongs has not declared the read. From may be called from several goroutines at once.
	From(d DAG) (T, error)
}

// All returns a reader that yields the contents of all nodes of type t in append order, except the items of lost lanes. If no such
// nodes exist, the list is empty. All does not stop at a fan-out: it also reads earlier nodes, nested lanes, and earlier rounds of
// a loop. Read the lanes of one fan-out with [Lanes].
func All[T any](t Type[T]) Reader[[]T] { return several[T]{t, t.Query().All()} }

// History is like All, but marks the read as intended: the validator accepts it in the Reduce of a fan-out even if earlier rounds
// or steps have produced nodes of the type.
func History[T any](t Type[T]) Reader[[]T] { return several[T]{t, t.Query().History()} }

// Since returns a reader of the nodes of type t that follow the nearest node of type after on the current line, oldest first; see
// [DAG.Since].
func Since[T any](t Type[T], after AnyType) Reader[[]T] {
	return several[T]{t, t.Query().Since(after)}
}

// several is a Reader for several nodes of one type.
type several[T any] struct {
	typ   Type[T]
	query Query
}

func (l several[T]) Queries() []Query { return []Query{l.query} }

func (l several[T]) From(d DAG) ([]T, error) {
	var nodes []*Node
	var err error
	if l.query.mode == since {
		nodes, err = d.Since(l.typ.Name(), nameOf(l.query.after))
	} else {
		nodes, err = d.All(l.typ.Name())
	}
	if err != nil {
		return nil, err
	}
	out := make([]T, len(nodes))
	for i, n := range nodes {
		if out[i], err = l.typ.Of(n); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Lens returns a reader of a value within the latest node's content, whatever the node's type. The value is found by following
// the given field names:
//
//	stone.Map("each-file", dag.Lens[[]string]("files"), File, review)
//
// Without names, the value is the whole content. Validation compares the names and T with the latest node's schema if that schema
// is known.
func Lens[T any](path ...string) Reader[T] {
	at := &lens{slices.Clone(path), NewType[T]("value")}
	return readerOf[T]{[]Query{{mode: latest, lens: at}}, func(d DAG) (v T, err error) {
		n, err := Latest.From(d)
		if err != nil {
			return v, err
		}
		raw, ok := n.field(at.path)
		if !ok {
			return v, fmt.Errorf("%w: %q in %s", errNoField, at.path, n)
		}
		if err := jsonv2.UnmarshalV1(raw, &v); err != nil {
			return v, fmt.Errorf("%q of the latest node, %s, cannot be read as %s: %w", at.path, n, reflect.TypeFor[T](), err)
		}
		return v, nil
	}}
}

// Maybe returns a reader that reads the same as r, but returns nil if r finds nothing. The validator does not require a step that
// produces the type.
func Maybe[T any](r Reader[T]) Reader[*T] {
	queries := Types(r)
	for i := range queries {
		queries[i] = queries[i].Optional()
	}
	if r == nil {
		return readerOf[*T]{queries: queries}
	}
	return readerOf[*T]{queries, func(d DAG) (*T, error) {
		v, err := r.From(d)
		switch {
		case errors.Is(err, ErrMissing), errors.Is(err, errNoField):
			return nil, nil
		case err != nil:
			return nil, err
		}
		return &v, nil
	}}
}

var (
	// Latest is a reader of the latest node, whatever its type.
	Latest Reader[*Node] = readerOf[*Node]{[]Query{{mode: latest}}, func(d DAG) (*Node, error) {
		if n := d.Latest(); n != nil {
			return n, nil
		}
		return nil, &ReadError{Err: ErrMissing}
	}}
	// Everything is a reader of the whole DAG. A step that declares it depends on all earlier nodes.
	Everything Reader[DAG] = readerOf[DAG]{[]Query{{mode: everything}}, func(d DAG) (DAG, error) {
		if !d.allows(everything, "", "") {
			return DAG{}, d.refuse("", "")
		}
		return d, nil
	}}
)

// Nothing is a reader that reads no nodes. Use it, for example, for a constant question or prompt.
var Nothing Reader[struct{}] = readerOf[struct{}]{from: func(DAG) (struct{}, error) { return struct{}{}, nil }}

// readerOf is a Reader that consists of queries and a function.
type readerOf[T any] struct {
	queries []Query
	from    func(DAG) (T, error)
}

func (r readerOf[T]) Queries() []Query      { return append([]Query(nil), r.queries...) }
func (r readerOf[T]) From(d DAG) (T, error) { return r.from(d) }

// ReaderFunc returns a reader that declares the given queries and calls fn, which must read only what these queries allow. The
// result must depend only on the nodes that it reads.
func ReaderFunc[T any](read func(DAG) (T, error), queries ...Querier) Reader[T] {
	qs := Types(queries...)
	if read == nil {
		qs = append(qs, Query{}) // an invalid query, which the validator reports
	}
	return readerOf[T]{qs, read}
}

// Derive returns a reader that returns fn's result for the value of r, for example a prompt built from a ticket. The result of fn
// must depend only on its argument.
func Derive[A, T any](r Reader[A], fn func(A) T) Reader[T] {
	if r == nil || fn == nil {
		return ReaderFunc[T](nil, r)
	}
	return ReaderFunc(func(d DAG) (T, error) {
		a, err := r.From(d)
		if err != nil {
			var none T
			return none, err
		}
		return fn(a), nil
	}, r)
}

// Derive2 is like Derive, but fn receives the values of two readers.
func Derive2[A, B, T any](ra Reader[A], rb Reader[B], fn func(A, B) T) Reader[T] {
	if ra == nil || rb == nil || fn == nil {
		return ReaderFunc[T](nil, ra, rb)
	}
	return ReaderFunc(func(d DAG) (T, error) {
		var none T
		a, err := ra.From(d)
		if err != nil {
			return none, err
		}
		b, err := rb.From(d)
		if err != nil {
			return none, err
		}
		return fn(a, b), nil
	}, ra, rb)
}

// Derive3 is like Derive, but fn receives the values of three readers.
func Derive3[A, B, C, T any](ra Reader[A], rb Reader[B], rc Reader[C], fn func(A, B, C) T) Reader[T] {
	if ra == nil || rb == nil || rc == nil || fn == nil {
		return ReaderFunc[T](nil, ra, rb, rc)
	}
	return ReaderFunc(func(d DAG) (T, error) {
		var none T
		a, err := ra.From(d)
		if err != nil {
			return none, err
		}
		b, err := rb.From(d)
		if err != nil {
			return none, err
		}
		c, err := rc.From(d)
		if err != nil {
			return none, err
		}
		return fn(a, b, c), nil
	}, ra, rb, rc)
}
