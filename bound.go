package stone

import (
	"context"
	"fmt"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/address"
)

// Bound returns the most that a run of a may cost, without running any of it:
//
//	most := pipeline.Bound(llm.WithTable(ctx, table), stone.Config{Input: input}.Given())
//	usd, known := most.USD() // or most.String(), as "0.02 + 0.31 × each-document"
//
// It counts every loop, branch, retry, turn, repair and fan-out. The lanes of a Map are counted if its list depends only on the
// input: g has every required type that the list is read from, and no step produces any of them. Otherwise the Map's name appears
// in the bound as a factor that stands for the number of lanes. The context carries the table of model windows and prices; see
// llm.WithTable. If a price or a window is missing, the bound is open and names the model.
//
// The bound holds for a run in one process. It does not count interrupted answers that a provider's client requests again (see
// llm.Retry), steps repeated after a crash or on purpose, or money that Go code spends on its own. A leaf whose body spends money
// has a Bound in its [Detail]. The bound of a Scoped follows its [Walk].
func (a Ashlar) Bound(ctx context.Context, g Given) budget.Bound {
	b := &bounding{ctx: ctx, input: g.dag, made: map[string]bool{}}
	for _, t := range a.ProducesAll() {
		b.made[t.Name()] = true
	}
	return b.of(a, address.Escape(a.Name()))
}

// bounding is the state of a call of Bound while it walks the pipeline.
type bounding struct {
	ctx   context.Context
	input dag.DAG
	made  map[string]bool // types that the pipeline produces
}

// of returns the bound of the ashlar at the given path.
func (b *bounding) of(a Ashlar, path string) budget.Bound {
	s := a.spec()
	switch s.form {
	case leafForm:
		return b.leaf(s, path)
	case scopedForm:
		return b.walk(s, path)
	case loopForm:
		return b.all(s, path).Times(s.max)
	case mapForm:
		if n, known := b.lanes(s); known {
			return b.all(s, path).Times(n)
		}
		return b.all(s, path).Over(s.name)
	case matchForm:
		return b.either(s, s.children, path)
	}
	return b.all(s, path)
}

// all returns the sum of the bounds of s's children.
func (b *bounding) all(s *spec, path string) budget.Bound {
	each := make([]budget.Bound, len(s.children))
	for i, c := range s.children {
		each[i] = b.of(c, s.below(path, c, i))
	}
	return budget.Bound{}.Add(each...)
}

func (b *bounding) either(s *spec, children []Ashlar, path string) (most budget.Bound) {
	for i, c := range children {
		most = most.Or(b.of(c, s.below(path, c, i)))
	}
	return most
}

// below returns the path of c, the i-th child of s. Paths omit the same elements as addresses.
func (s *spec) below(path string, c Ashlar, i int) string {
	switch child := c.spec(); {
	case s.form == reduceForm || child.glue && child.form != leafForm:
		return path
	case i < len(s.children) && s.children[i].s == c.s:
		return address.Child(path, child.name, s.occurrence(i))
	default:
		return address.Child(path, child.name, 1)
	}
}

func (b *bounding) leaf(s *spec, path string) (most budget.Bound) {
	d := s.said()
	switch {
	case d.Bound != nil:
		// The nodes that a leaf passes to its children are not inputs of the run.
		inner := &bounding{ctx: b.ctx}
		most = d.Bound(b.ctx, func(c Ashlar) budget.Bound {
			now, _ := s.child(c)
			return inner.of(now, s.below(path, now, len(s.children)))
		})
	case d.Unpriced != nil:
		most = budget.Unbounded("the package that made " + s.name + " declares no bound")
	case len(s.children) > 0:
		most = (&bounding{ctx: b.ctx}).walk(s, path)
	}
	if most = most.In(path); s.retry != nil {
		most = most.Times(max(s.retry.Attempts, 1))
	}
	return most
}

// walk returns the bound of the children of s, computed from the Walk of s.
func (b *bounding) walk(s *spec, path string) (most budget.Bound) {
	for _, part := range s.blocks() {
		if part.how == exactlyOne {
			most = most.Add(b.either(s, part.children, path))
			continue
		}
		for i, c := range part.children {
			one := b.of(c, s.below(path, c, i))
			if part.how == again && !one.Free() {
				one = budget.Unbounded(fmt.Sprintf("there is no limit on how often %s runs %s", s.name, c.Name())).In(path)
			}
			most = most.Add(one)
		}
	}
	return most
}

// lanes returns how many items a map has, or false if its list depends on more than the input.
func (b *bounding) lanes(s *spec) (n int, known bool) {
	if s.decision == nil || s.enter == nil || len(s.queries) == 0 {
		return 0, false
	}
	given := false
	for _, q := range s.queries {
		if q.Type() == nil || b.made[q.Type().Name()] || q.After() != nil && b.made[q.After().Name()] {
			return 0, false
		}
		if _, err := b.input.Nearest(q.Type().Name()); err == nil {
			given = true
		} else if !q.IsOptional() {
			return 0, false
		}
	}
	if !given {
		return 0, false
	}
	defer func() {
		if recover() != nil { // The function will panic in the run too, and no lanes will run.
			n, known = 0, false
		}
	}()
	d := b.input.Within(nil)
	list, err := s.decision.take(d)
	if err != nil {
		return 0, false
	}
	lanes, err := s.enter(d, list)
	return len(lanes), err == nil
}
