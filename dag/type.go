package dag

import (
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"
	"unsafe"

	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/jsonv2"
	"github.com/stonelayer/stone/schema"
)

// A Type is a node type: a name together with the Go type of the nodes' content. It consists of one pointer: it can be copied
// freely, kept in a package variable and used from any goroutine.
type Type[T any] struct{ d *desc }

// AnyType is the interface of every Type[T]. No other type implements it.
type AnyType interface {
	Querier
	// Query returns the query for the nearest node of the type.
	Query() Query
	Name() string
	// Schema returns the JSON Schema of the content, or nil if the type has an Err.
	Schema() *schema.Schema
	// Err returns an error if nodes of the type cannot be written, otherwise nil.
	Err() error
	describe() *desc
}

// desc holds the fields of a Type that do not depend on T.
type desc struct {
	name   string
	quoted []byte // the name as canonical JSON
	goType reflect.Type
	enc    *canon.Encoder
	err    error

	makeSchema func() (*schema.Schema, error)
	lists      func() (*schema.Lists, error) // returns the lists of allowed values for content, or the error of Err
}

// NewType returns the type with the given name and the content type T. A pipeline treats two types with the same name and schema
// as one. If the name or the Go type cannot be encoded as JSON, Err and the validator report it; NewType never fails.
func NewType[T any](name string) Type[T] {
	t, err := describe(name)
	if err != nil {
		t = &desc{name: name}
	}
	d := *t
	d.goType = reflect.TypeFor[T]()
	d.makeSchema = sync.OnceValues(func() (*schema.Schema, error) { return schema.ForType(d.goType) })
	enc, encErr := canon.Addressable(d.goType)
	d.enc = enc
	if encErr != nil {
		encErr = fmt.Errorf("type %q: %w", name, encErr)
	}
	d.err = errors.Join(err, encErr)
	d.lists = sync.OnceValues(d.closedLists)
	return Type[T]{&d}
}

// closedLists returns the lists that limit the values of fields in the Go type of the content.
func (d *desc) closedLists() (*schema.Lists, error) {
	if d.err != nil {
		return nil, d.err
	}
	if _, err := d.makeSchema(); err != nil {
		return nil, fmt.Errorf("type %q: %w", d.name, err)
	}
	return schema.ListsOf(d.goType), nil
}

// WithSchema returns a copy of t with the given schema, which must be narrower than the schema of its Go type. A plan, for
// example, declares a schema for a json.RawMessage. If the schema is nil, WithSchema returns t.
func (t Type[T]) WithSchema(s *schema.Schema) Type[T] {
	if s == nil {
		return t
	}
	d := *t.describe()
	d.makeSchema = func() (*schema.Schema, error) { return s, nil }
	if d.lists != nil {
		d.lists = sync.OnceValues((&d).closedLists)
	}
	return Type[T]{&d}
}

// describe returns a desc that contains only the name.
func describe(name string) (*desc, error) {
	if name == "" {
		return nil, errors.New("type name is empty: give the node type a name")
	}
	quoted, err := quote(name)
	if err != nil {
		return nil, err
	}
	return &desc{name: name, quoted: quoted}, nil
}

var noType = &desc{err: errors.New("zero dag.Type: make types with dag.NewType")}

func (t Type[T]) describe() *desc {
	if t.d == nil {
		return noType
	}
	return t.d
}

// Name returns the type's name.
func (t Type[T]) Name() string { return t.describe().name }

// Err returns an error if nodes of the type cannot be written, otherwise nil.
func (t Type[T]) Err() error {
	_, err := t.describe().written()
	return err
}

// written returns the lists of values that the content may have, or an error if nodes of the type cannot be written.
func (d *desc) written() (*schema.Lists, error) {
	if d.lists == nil { // there is no Go type
		return nil, d.err
	}
	return d.lists()
}

// Schema returns the JSON Schema of the content, or nil if the type has an Err.
func (t Type[T]) Schema() *schema.Schema {
	d := t.describe()
	if d.makeSchema == nil {
		return nil
	}
	s, _ := d.makeSchema()
	return s
}

// Query returns the query for the nearest node of the type.
func (t Type[T]) Query() Query { return Query{mode: nearest, typ: t} }

// Queries returns the query for the nearest node of the type.
func (t Type[T]) Queries() []Query { return []Query{t.Query()} }

// Node returns a new node of type t with the content v and the parents d.Next(). The content is a copy of v. The time at is not
// part of the id and may be zero.
func (t Type[T]) Node(d DAG, v T, at time.Time) (*Node, error) {
	return t.node(d.next(), v, at)
}

func (t Type[T]) node(parents []*Node, v T, at time.Time) (*Node, error) {
	desc := t.describe()
	lists, err := desc.written()
	if err != nil {
		return nil, err
	}
	n, p := newNode(v, desc.enc.Flat())
	if lists != nil {
		if err := lists.Check(reflect.ValueOf(p).Elem()); err != nil {
			return nil, fmt.Errorf("content of a %q node: %w", desc.name, err)
		}
	}
	e := openEnvelope()
	defer e.close()
	if e.buf, err = desc.enc.Append(e.buf, unsafe.Pointer(p)); err != nil {
		return nil, fmt.Errorf("content of a %q node: %w", desc.name, err)
	}
	n.typ, n.parents, n.at = desc.name, parents, nanos(at)
	n.id, n.content = e.seal(parents, desc)
	return n, nil
}

// A cell holds a node, its value and its log entry in one allocation instead of three.
type cell[T any] struct {
	Node
	entry entry
	value T
}

// newNode returns a new node for v and a pointer to a copy of v. If keep is true, the node keeps the copy.
func newNode[T any](v T, keep bool) (*Node, *T) {
	if !keep {
		c := &cell[struct{}]{}
		c.self[0] = &c.Node
		c.spare.Store(&c.entry)
		p := new(T) // &v would move every v to the heap
		*p = v
		return &c.Node, p
	}
	c := &cell[T]{value: v}
	c.self[0] = &c.Node
	c.spare.Store(&c.entry)
	c.Node.value = &c.value
	return &c.Node, &c.value
}

// Append returns d with a node for v added. Use it for the input of a run and in tests; within a pipeline, the run appends the
// results of steps.
func (t Type[T]) Append(d DAG, v T) (DAG, error) {
	n, err := t.Node(d, v, time.Time{})
	if err != nil {
		return d, err
	}
	return d.grow(n), nil
}

// Of returns the decoded content of n, which must be a node of this type.
func (t Type[T]) Of(n *Node) (T, error) {
	if n != nil && n.value != nil && n.typ == t.Name() {
		if v, ok := n.value.(*T); ok {
			return *v, nil
		}
	}
	return t.decode(n)
}

func (t Type[T]) decode(n *Node) (T, error) {
	var v T
	if n == nil {
		return v, &ReadError{Type: t.Name(), Err: ErrMissing}
	}
	if n.typ != t.Name() {
		return v, fmt.Errorf("node %s: want type %q", n, t.Name())
	}
	if err := jsonv2.UnmarshalV1(bytesOf(n.content), &v); err != nil {
		return v, fmt.Errorf("node %s: content cannot be read as %s: %w", n, t.describe().goType, err)
	}
	return v, nil
}

// From returns the content of d's nearest node of type t. A Type is thus its own [Reader].
func (t Type[T]) From(d DAG) (T, error) {
	n, err := d.Nearest(t.Name())
	if err != nil {
		var zero T
		return zero, err
	}
	return t.Of(n)
}
