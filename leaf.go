package stone

import (
	"context"
	"slices"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/kind"
)

// New makes a leaf: body reads the DAG, as far as its Queries allow, and returns the
// content of one node of type out. If body returns an error, the step fails; Fail makes
// an error of a kind. The body must return when its context is done, and must be safe
// for concurrent calls if the leaf is used in several lanes or runs.
func New[T any](name string, out dag.Type[T], body func(context.Context, dag.DAG) (T, error), opts ...LeafOption) Ashlar {
	return typed(name, out, body, nil, opts)
}

// Func0 makes a leaf that reads nothing.
func Func0[T any](name string, out dag.Type[T], fn func(context.Context) (T, error), opts ...LeafOption) Ashlar {
	if fn == nil {
		return typed(name, out, nil, nil, opts)
	}
	return typed(name, out, func(ctx context.Context, _ dag.DAG) (T, error) { return fn(ctx) }, nil, opts)
}

// Func makes a leaf from a function: fn gets the value that the reader finds, for
// example the nearest node of a type, and returns the content of a node of type out. The
// leaf queries what the reader queries.
func Func[A, T any](name string, in dag.Reader[A], out dag.Type[T], fn func(context.Context, A) (T, error), opts ...LeafOption) Ashlar {
	if fn == nil {
		return typed(name, out, nil, nil, opts)
	}
	return typed(name, out, func(ctx context.Context, d dag.DAG) (T, error) {
		a, err := in.From(d)
		if err != nil {
			var none T
			return none, err
		}
		return fn(ctx, a)
	}, dag.Types(in), opts)
}

// Func2 is Func for a function of two inputs.
func Func2[A, B, T any](name string, inA dag.Reader[A], inB dag.Reader[B], out dag.Type[T], fn func(context.Context, A, B) (T, error), opts ...LeafOption) Ashlar {
	if fn == nil {
		return typed(name, out, nil, nil, opts)
	}
	return typed(name, out, func(ctx context.Context, d dag.DAG) (T, error) {
		var none T
		a, err := inA.From(d)
		if err != nil {
			return none, err
		}
		b, err := inB.From(d)
		if err != nil {
			return none, err
		}
		return fn(ctx, a, b)
	}, dag.Types(inA, inB), opts)
}

// Func3 is Func for a function of three inputs. For more, read them together with
// [dag.Derive3] or declare Queries with New.
func Func3[A, B, C, T any](name string, inA dag.Reader[A], inB dag.Reader[B], inC dag.Reader[C], out dag.Type[T], fn func(context.Context, A, B, C) (T, error), opts ...LeafOption) Ashlar {
	if fn == nil {
		return typed(name, out, nil, nil, opts)
	}
	return typed(name, out, func(ctx context.Context, d dag.DAG) (T, error) {
		var none T
		a, err := inA.From(d)
		if err != nil {
			return none, err
		}
		b, err := inB.From(d)
		if err != nil {
			return none, err
		}
		c, err := inC.From(d)
		if err != nil {
			return none, err
		}
		return fn(ctx, a, b, c)
	}, dag.Types(inA, inB, inC), opts)
}

func typed[T any](name string, out dag.Type[T], body func(context.Context, dag.DAG) (T, error), queries []dag.Query, opts []LeafOption) Ashlar {
	if body == nil {
		return leaf(name, out, nil, queries, opts)
	}
	return leaf(name, out, func(ctx context.Context, d dag.DAG, at time.Time) (*dag.Node, error) {
		v, err := body(ctx, d)
		if err != nil {
			return nil, err
		}
		_, d, err = ctx.(*frame).grounds(d)
		if err != nil {
			return nil, err
		}
		n, err := out.Node(d, v, at)
		if err != nil {
			return nil, badContent(err)
		}
		return n, nil
	}, queries, opts)
}

// Leaf makes a leaf whose body builds its node itself, with dag.NewNode: for content that
// has no Go type, only JSON. The parents of the node must be d.Next(), where d is the DAG
// that the body was given, or that Await or Keep returned. A node without a time gets the
// time of the run.
func Leaf(name string, out dag.AnyType, body func(context.Context, dag.DAG) (*dag.Node, error), opts ...LeafOption) Ashlar {
	if body == nil {
		return leaf(name, out, nil, nil, opts)
	}
	return leaf(name, out, func(ctx context.Context, d dag.DAG, at time.Time) (*dag.Node, error) {
		n, err := body(ctx, d)
		if err != nil || n == nil {
			return nil, err
		}
		return ctx.(*frame).placed(d, n, at)
	}, nil, opts)
}

// placed checks the parents of a Leaf's node and returns the node with its time.
func (f *frame) placed(d dag.DAG, n *dag.Node, at time.Time) (*dag.Node, error) {
	_, d, err := f.grounds(d)
	if err != nil {
		return nil, err
	}
	if n.Type() != dag.Failure.Name() && !slices.Equal(n.Parents(), d.Next()) {
		return nil, Fail(kind.BadContent, "the body returned a node with other parents than d.Next()")
	}
	return n.Stamped(at), nil
}

func leaf(name string, out dag.AnyType, body func(context.Context, dag.DAG, time.Time) (*dag.Node, error), queries []dag.Query, opts []LeafOption) Ashlar {
	s := &spec{parts: parts{form: leafForm, name: name, out: out, queries: queries, body: body, composite: noComposite}}
	if s.name == "" && out != nil {
		s.name = out.Name()
	}
	if body == nil {
		s.fault("nil-body", "the body is nil: give it a function")
	}
	return Ashlar{with(s, opts)}
}
