package stone

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/schema"
)

// Seq returns an ashlar that runs the given steps in order, each on the DAG that the previous step returned. It stops at the
// first failure.
func Seq(name string, steps ...Ashlar) Ashlar {
	s := &spec{parts: parts{form: seqForm, name: name, children: append([]Ashlar(nil), steps...), composite: noComposite}}
	if len(steps) == 0 {
		s.fault("empty-composite", "a sequence needs at least one step")
	}
	return Ashlar{s}
}

// Flow is like Seq, but starts each step as soon as every earlier step that could produce its input has finished. A step's input
// consists of all types that the step, or anything below it, reads. Flow produces the same nodes as Seq, with the same ids. At
// most 256 steps run at once.
//
// A step waits for all earlier steps if it contains a fan-out, a Reduce or a Scoped, or reads the latest node or everything. A
// body sees only the nodes that its queries name: in a Flow, the length of a DAG and the ids of nodes can differ from those in a
// Seq. If a step fails, earlier steps finish, and later steps are cancelled and leave no nodes. While a step is waiting for an
// answer, the steps that do not depend on it continue.
func Flow(name string, steps ...Ashlar) Ashlar {
	a := Seq(name, steps...)
	a.s.form = flowForm
	return a
}

// Loop returns an ashlar that runs body repeatedly until the condition holds, but at most max times:
//
//	stone.Loop("until-good", improve, stone.Until(Report, ReportDoc.Good), 3)
//
// The condition is read after each round. A round sees every node of the earlier rounds. A failure of body ends the loop; if the
// condition does not hold after the last round, the failure has kind "loop-exhausted".
func Loop(name string, body Ashlar, until dag.Reader[bool], max int) Ashlar {
	s := &spec{parts: parts{form: loopForm, name: name, children: []Ashlar{body}, composite: &composite{max: max}}}
	if until == nil {
		s.fault("nil-body", "the condition of the loop is empty: use Until with a function")
	} else {
		s.queries, s.version = dag.Types(until), terms.Version(until)
		s.decision = &decision{take: func(d dag.DAG) (any, error) { return until.From(d) }, restore: restoreAs[bool]}
	}
	if max < 1 {
		s.fault("bad-option", "a loop of at most %d rounds: want at least 1", max)
	}
	return Ashlar{s}
}

// Until returns a condition that ends a Loop when pred returns true for the value of the reader. Until(dag.Latest, passed), for
// example, tests only the latest node.
func Until[T any](reader dag.Reader[T], pred func(T) bool) dag.Reader[bool] {
	if pred == nil {
		return nil
	}
	return dag.Derive(reader, pred)
}

// A Branch is one case of a Match.
type Branch struct {
	value any
	body  Ashlar
}

// Case returns a branch of a Match. The Match runs body if the matched value has the same JSON as value.
func Case(value any, body Ashlar) Branch { return Branch{value, body} }

// Match returns an ashlar that runs the branch whose value equals the value that [Lens] or [On] finds. There is no default
// branch: if no branch has this value, the Match fails with kind "match-failed".
func Match(name string, on Extractor, branches ...Branch) Ashlar {
	s := &spec{parts: parts{form: matchForm, name: name, queries: on.queries, composite: &composite{lens: on.lens, key: on.schema}}}
	s.version = on.version
	if on.key == nil {
		s.fault("nil-body", "the matched value is missing: use Lens, or On with a function")
	} else {
		s.decision = &decision{take: func(d dag.DAG) (any, error) {
			v, err := on.key(d)
			if err != nil {
				return "", err
			}
			key, err := canon.Append(nil, v)
			return string(key), err
		}, restore: restoreAs[string]}
	}
	if len(branches) == 0 {
		s.fault("empty-composite", "a match needs at least one Case")
	}
	seen := map[string]bool{}
	for _, b := range branches {
		key, err := canon.Append(nil, b.value)
		if err != nil {
			s.fault("bad-branch", "the value of a Case cannot be encoded as JSON: %v", err)
		}
		if seen[string(key)] {
			s.fault("duplicate-branch", "two branches for %s: remove one", key)
		}
		seen[string(key)] = true
		s.keys = append(s.keys, string(key))
		s.children = append(s.children, b.body)
	}
	return Ashlar{s}
}

// Map returns an ashlar that runs body once for each item of a list, in concurrent lanes. The list is the content of a node, such
// as the nearest node of a list type, or is derived from one:
//
//	stone.Map("each-line", Poem, Line, translate)
//	stone.Map("each-file", dag.Derive(Repo, RepoDoc.Files), File, review, stone.AllLanes())
//
// Every lane starts with a node of the item's type and does not see other lanes. A lane that fails is dropped and listed in
// Result.Lost. At least one lane must survive, or as many as Quorum or AllLanes require. A lane that is waiting for an answer, or
// that exceeds the run's budget, has not failed: the run ends, and a resumed run continues that lane. If the list is empty, the
// Map fails with kind "map-empty", unless AllowEmpty is given. Follow a Map with Reduce.
func Map[L ~[]I, I any](name string, list dag.Reader[L], item dag.Type[I], body Ashlar, opts ...FanOption) Ashlar {
	s := &spec{parts: parts{form: mapForm, name: name, children: []Ashlar{body}, out: item, composite: new(composite)}}
	if list == nil {
		s.fault("nil-body", "its list is nil: pass a dag.Type or dag.Derive")
		return Ashlar{with(s, opts)}
	}
	s.queries, s.version = dag.Types(list), terms.Version(list)
	s.decision = &decision{
		take: func(d dag.DAG) (any, error) {
			all, err := list.From(d)
			if all == nil {
				all = L{}
			}
			return []I(all), err
		},
		restore: restoreAs[[]I],
	}
	s.enter = func(d dag.DAG, choice any) ([]dag.DAG, error) { return item.Lanes(d, choice.([]I)) }
	return Ashlar{with(s, opts)}
}

// Parallel returns an ashlar that runs several lanes at the same time, each on the DAG at its start. Its arguments are lanes and
// options:
//
//	stone.Parallel("vote", a, b, c, stone.Quorum(2))
//
// As with a Map, a failed lane is dropped, and options determine how many lanes must survive.
func Parallel(name string, of ...FanPart) Ashlar {
	s := &spec{parts: parts{form: parallelForm, name: name, composite: new(composite)}}
	for _, part := range of {
		if part == nil {
			s.fault("bad-option", "one of its parts is nil: remove it")
			continue
		}
		part.fanPart(s)
	}
	if len(s.children) == 0 {
		s.fault("empty-composite", "a parallel needs at least one lane")
	}
	return Ashlar{s}
}

// Reduce returns an ashlar that runs body as the step that joins the lanes of a fan-out. The body reads the lanes with dag.Lanes,
// or with dag.Lanes2 for rows of two types. The Reduce has the name of body.
func Reduce(body Ashlar) Ashlar {
	return Ashlar{&spec{parts: parts{form: reduceForm, name: body.Name(), children: []Ashlar{body}, composite: noComposite}}}
}

// Rescue returns an ashlar that runs body. If body fails, the failure is recorded as a node, and then heal runs. Only Rescue runs
// a step because of a failure. Nothing is rolled back: heal sees the nodes of every step of body that had finished. The
// cancellation of a run is not rescued.
func Rescue(name string, body, heal Ashlar) Ashlar {
	return Ashlar{&spec{parts: parts{form: rescueForm, name: name, children: []Ashlar{body, heal}, composite: noComposite}}}
}

// Scoped returns a composite ashlar that the other forms cannot express. Its body uses RunChild to run the children that the walk
// names, as often as needed, and returns a DAG that extends the DAG passed to it. Reads lists the queries of body. The actions of
// body must depend only on the nodes that it reads. The walk tells the validator how body runs the children, and which nodes body
// itself appends.
func Scoped(name string, walk Walk, body func(context.Context, dag.DAG) (dag.DAG, error), reads ...dag.Querier) Ashlar {
	s := &spec{parts: parts{form: scopedForm, name: name, children: walk.children(), walk: walk, queries: dag.Types(reads...), composite: &composite{scope: body}}}
	if body == nil {
		s.fault("nil-body", "the body is nil: pass a function")
	}
	return Ashlar{s}
}

// An Extractor computes the value on which a Match branches.
type Extractor struct {
	key     func(dag.DAG) (any, error)
	queries []dag.Query
	lens    []string
	version string
	schema  func() *schema.Schema // the schema of the value, if known before a run
}

// Lens returns an Extractor of the value found by following the field names into the content of the latest node. For a value with
// a Go type, see dag.Lens.
func Lens(path ...string) Extractor {
	value := dag.Lens[json.RawMessage](path...)
	return Extractor{
		lens:    append([]string{}, path...),
		queries: dag.Types(value),
		key:     func(d dag.DAG) (any, error) { return value.From(d) },
	}
}

// On returns an Extractor that calls key with the value of reader. The result is the matched value.
func On[T any, K comparable](reader dag.Reader[T], key func(T) K) Extractor {
	e := Extractor{queries: dag.Types(reader), version: terms.Version(reader), schema: dag.NewType[K]("key").Schema}
	if key != nil {
		derived := dag.Derive(reader, key)
		e.key = func(d dag.DAG) (any, error) { return derived.From(d) }
	}
	return e
}

// New returns a leaf. Its body reads the nodes that its Queries declare and returns the content of a node of type out. If body
// returns an error, the step fails; use Fail to choose the kind of the failure. The body must return when its context is done,
// and must be safe for concurrent calls if the leaf is used in several lanes or runs.
func New[T any](name string, out dag.Type[T], body func(context.Context, dag.DAG) (T, error), opts ...LeafOption) Ashlar {
	return typed(name, out, body, nil, opts)
}

// Func0 returns a leaf that calls fn and reads no nodes.
func Func0[T any](name string, out dag.Type[T], fn func(context.Context) (T, error), opts ...LeafOption) Ashlar {
	if fn == nil {
		return typed(name, out, nil, nil, opts)
	}
	return typed(name, out, func(ctx context.Context, _ dag.DAG) (T, error) { return fn(ctx) }, nil, opts)
}

// Func returns a leaf that calls fn with the value that in reads, for example the content of the nearest node of a type.
// The result of fn becomes the content of a node of type out. The leaf declares the reader's queries.
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

// Func2 is like Func, but fn receives the values of two readers.
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

// Func3 is like Func, but fn receives the values of three readers. For more inputs, combine readers with [dag.Derive3] or declare
// Queries with New.
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

// Leaf returns a leaf whose body makes its node itself, with dag.NewNode. Use it for content that is JSON without a Go type. The
// parents of the node must be d.Next(), where d is the DAG passed to the body, or the DAG that Await or Keep returned. A node
// without a time receives the run's time.
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

// placed returns the node of a Leaf with its time set, or an error if its parents are wrong.
func (f *frame) placed(d dag.DAG, n *dag.Node, at time.Time) (*dag.Node, error) {
	_, d, err := f.grounds(d)
	if err != nil {
		return nil, err
	}
	if n.Type() != dag.Failure.Name() && !slices.Equal(n.Parents(), d.Next()) {
		return nil, Fail(kind.BadContent, "the body returned a node whose parents are not d.Next()")
	}
	return n.Stamped(at), nil
}

func leaf(name string, out dag.AnyType, body func(context.Context, dag.DAG, time.Time) (*dag.Node, error), queries []dag.Query, opts []LeafOption) Ashlar {
	s := &spec{parts: parts{form: leafForm, name: name, out: out, queries: queries, body: body, composite: noComposite}}
	if s.name == "" && out != nil {
		s.name = out.Name()
	}
	if body == nil {
		s.fault("nil-body", "the body is nil: pass a function")
	}
	return Ashlar{with(s, opts)}
}
