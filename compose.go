package stone

import (
	"context"
	"fmt"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/finding"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/schema"
)

// Seq runs steps one after the other, each on the DAG that the one before left.
// It stops at the first failure.
func Seq(name string, steps ...Ashlar) Ashlar {
	s := &spec{parts: parts{form: seqForm, name: name, children: append([]Ashlar(nil), steps...), composite: noComposite}}
	if len(steps) == 0 {
		s.fault(finding.EmptyComposite, "a sequence needs at least one step")
	}
	return Ashlar{s}
}

// Flow is a Seq whose steps do not wait for each other without need: a step
// begins as soon as those in front of it have ended that can produce a type which
// it, or anything below it, reads. What it leaves is what Seq would leave, with
// the same ids. At most 256 steps are in flight at once.
//
// A step with a fan-out, a Reduce or a Scoped in it, and one that reads the latest
// node or everything, waits for all in front of it. Bodies see of the others what
// their queries name, and no more: one that asks a DAG how long it is, or writes
// ids of nodes into its content, will find other ones than in a Seq. After a
// failure the steps behind it are cancelled and leave nothing; those in front of
// it come to their end. While one waits for an answer, those that do without it go
// on.
func Flow(name string, steps ...Ashlar) Ashlar {
	a := Seq(name, steps...)
	a.s.form = flowForm
	return a
}

// Loop runs body until the condition holds, at most max times:
//
//	stone.Loop("until-good", improve, stone.Until(Report, ReportDoc.Good), 3)
//
// The condition is read after each round. A round sees every node of the rounds
// before it. A failure of body ends the loop; if the condition does not hold after the
// last round, the failure has kind "loop-exhausted".
func Loop(name string, body Ashlar, until dag.Reader[bool], max int) Ashlar {
	s := &spec{parts: parts{form: loopForm, name: name, children: []Ashlar{body}, composite: &composite{max: max}}}
	if until == nil {
		s.fault(finding.NilBody, "the condition of the loop is empty: use Until with a function")
	} else {
		s.queries = dag.Types(until)
		s.decision = &decision{take: func(d dag.DAG) (any, error) { return until.From(d) }, restore: restoreAs[bool]}
	}
	if max < 1 {
		s.fault(finding.BadOption, "a loop of at most %d rounds: want at least 1", max)
	}
	return Ashlar{s}
}

// Until is the condition that pred holds for what the reader finds.
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

// Case makes a branch: body runs when the value that the extractor finds has the
// same JSON as value.
func Case(value any, body Ashlar) Branch { return Branch{value, body} }

// Match runs the branch that the extractor selects. There is no default: a value
// without a branch is a failure of kind "match-failed".
func Match(name string, on Extractor, branches ...Branch) Ashlar {
	s := &spec{parts: parts{form: matchForm, name: name, queries: on.queries, composite: &composite{lens: on.lens, key: on.schema}}}
	if on.key == nil {
		s.fault(finding.NilBody, "the extractor is empty: use Lens, or On with a function")
	} else {
		s.decision = &decision{take: func(d dag.DAG) (any, error) { return matchKey(on, d) }, restore: restoreAs[string]}
	}
	if len(branches) == 0 {
		s.fault(finding.EmptyComposite, "a match needs at least one Case")
	}
	seen := map[string]bool{}
	for _, b := range branches {
		key, err := canon.Append(nil, b.value)
		if err != nil {
			s.fault(finding.BadBranch, "the value of a Case has no JSON: %v", err)
		}
		if seen[string(key)] {
			s.fault(finding.DuplicateBranch, "two branches for %s: remove one", key)
		}
		seen[string(key)] = true
		s.keys = append(s.keys, string(key))
		s.children = append(s.children, b.body)
	}
	return Ashlar{s}
}

func matchKey(on Extractor, d dag.DAG) (string, error) {
	v, err := on.key(d)
	if err != nil {
		return "", err
	}
	key, err := canon.Append(nil, v)
	return string(key), err
}

// Map runs body once for each item of a list, all at the same time. The list is what
// the reader finds, such as the nearest node of a list type, or dag.Derive of one:
//
//	stone.Map("each-line", Poem, Line, translate)
//	stone.Map("each-file", dag.Derive(Repo, RepoDoc.Files), File, review, stone.AllLanes())
//
// Every lane starts with a node of the item's type and sees nothing of the others. A
// lane that fails is dropped, and listed in Result.Lost; at least one must survive, or
// as many as Quorum or AllLanes say. A lane that waits for an answer, or meets the end
// of the run's budget, has not failed: the run ends, and that lane is done when it is
// resumed. An empty list is a failure of kind "map-empty" without AllowEmpty. Follow a
// Map with Reduce.
func Map[L ~[]I, I any](name string, list dag.Reader[L], item dag.Type[I], body Ashlar, opts ...FanOption) Ashlar {
	s := &spec{parts: parts{form: mapForm, name: name, children: []Ashlar{body}, out: item, composite: new(composite)}}
	if list == nil {
		s.fault(finding.NilBody, "its list is nil: give it a reader, as a dag.Type or dag.Derive")
		return Ashlar{with(s, opts)}
	}
	s.queries = dag.Types(list)
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

// Parallel runs its lanes at the same time, each on the DAG as it is now. Lanes and
// options are its parts:
//
//	stone.Parallel("vote", a, b, c, stone.Quorum(2))
//
// What is said of the lanes of Map holds for them too.
func Parallel(name string, of ...FanPart) Ashlar {
	s := &spec{parts: parts{form: parallelForm, name: name, composite: new(composite)}}
	for _, part := range of {
		if part == nil {
			s.fault(finding.BadOption, "one of its parts is nil: remove it")
			continue
		}
		part.fanPart(s)
	}
	if len(s.children) == 0 {
		s.fault(finding.EmptyComposite, "a parallel needs at least one lane")
	}
	return Ashlar{s}
}

// Reduce marks body as the step that brings the lanes of a fan-out together,
// which it reads with All. It runs as body does and has its name.
func Reduce(body Ashlar) Ashlar {
	return Ashlar{&spec{parts: parts{form: reduceForm, name: body.Name(), children: []Ashlar{body}, composite: noComposite}}}
}

// Rescue runs body; if it fails, the failure is recorded as a node and heal runs
// after it. It is the one place where a failure stops. Nothing is rolled back:
// heal sees what body had finished. The cancellation of a run is not rescued.
func Rescue(name string, body, heal Ashlar) Ashlar {
	return Ashlar{&spec{parts: parts{form: rescueForm, name: name, children: []Ashlar{body, heal}, composite: noComposite}}}
}

// Scoped makes a composite that is no combination of the others. Body runs the
// children that the walk names with RunChild, as often as it likes, and returns a DAG
// that extends the one it was given; what it does must follow from what it reads. It
// reads the queries that reads lists. The walk tells the validator in which way body
// runs the children.
func Scoped(name string, walk Walk, body func(context.Context, dag.DAG) (dag.DAG, error), reads ...dag.Querier) Ashlar {
	s := &spec{parts: parts{form: scopedForm, name: name, children: walk.children(), walk: walk, queries: dag.Types(reads...), composite: &composite{scope: body}}}
	if body == nil {
		s.fault(finding.NilBody, "the body is nil: give it a function")
	}
	return Ashlar{s}
}

// An Extractor finds the value on which a Match branches.
type Extractor struct {
	key     func(dag.DAG) (any, error)
	queries []dag.Query
	lens    []string
	schema  func() *schema.Schema // of the value, if it is known before a run
}

// Lens looks into the content of the latest node, along field names.
func Lens(path ...string) Extractor {
	return Extractor{
		lens:    append([]string{}, path...),
		queries: dag.Types(dag.Latest),
		key: func(d dag.DAG) (any, error) {
			n := d.Latest()
			v, ok := n.At(path...)
			if !ok {
				return nil, fmt.Errorf("the latest node, %s, has no field %q", n, path)
			}
			return v, nil
		},
	}
}

// On computes the value from what the reader finds.
func On[T any, K comparable](reader dag.Reader[T], key func(T) K) Extractor {
	e := Extractor{queries: dag.Types(reader), schema: dag.NewType[K]("key").Schema}
	if key != nil {
		derived := dag.Derive(reader, key)
		e.key = func(d dag.DAG) (any, error) { return derived.From(d) }
	}
	return e
}
