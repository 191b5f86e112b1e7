package stone

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"pgregory.net/rapid"

	"github.com/stonelayer/stone/dag"
)

// grower draws trees. It keeps in mind what is probably there, so that enough of
// the trees are valid, and now and then forgets about it, so that enough are not.
type grower struct {
	*rapid.T
	*witness
	names     int
	line, all []dag.AnyType // what is probably on the line, and what there is at all
	joined    bool          // the latest node is that of some lane
	closed    []dag.AnyType // within a Reduce: what its lanes probably have
	grown     []Ashlar      // leaves, for being used again
}

func (g *grower) name(form string) string {
	g.names++
	return fmt.Sprint(form, g.names)
}

// upTo draws from 0 to n, all alike: rapid's own ranges prefer small numbers, and
// with them every exception would be the rule.
func (g *grower) upTo(n int) int {
	drawn := 0
	for range bits.Len(uint(n)) + 3 {
		drawn *= 2
		if rapid.Bool().Draw(g.T, "bit") {
			drawn++
		}
	}
	return drawn % (n + 1)
}

func (g *grower) oneIn(n int) bool { return g.upTo(n-1) == n-1 }

func pick[E any](g *grower, list []E) E { return list[g.upTo(len(list)-1)] }

func (g *grower) cells() dag.Type[cell] { return pick(g, cellTypes) }

// known is a type that is probably there, or any.
func (g *grower) known(list []dag.AnyType) dag.AnyType {
	if len(list) == 0 || g.oneIn(40) {
		return g.cells()
	}
	return pick(g, list)
}

// one is the query of a reader that has one.
func one(q dag.Querier) dag.Query { return q.Queries()[0] }

func (g *grower) query() dag.Query {
	var q dag.Query
	if len(g.closed) > 0 && g.oneIn(4) {
		return pick(g, g.closed).Query().Lanes()
	}
	switch g.upTo(11) {
	default:
		q = g.known(g.line).Query()
	case 5, 6:
		q = g.known(g.all).Query().History()
	case 7:
		if q = g.known(g.all).Query().History(); len(g.closed) == 0 || g.oneIn(10) {
			q = q.Type().Query().All()
		}
	case 8:
		q = g.known(g.line).Query().Since(g.known(g.line))
	case 9:
		if q = one(dag.Latest); g.joined {
			q = one(dag.Everything)
		}
	case 10:
		q = one(dag.All(dag.Failure))
	case 11:
		q = one(dag.Everything)
	}
	if g.oneIn(8) {
		q = q.Optional()
	}
	return q
}

func (g *grower) queries(most int) []dag.Query {
	var out []dag.Query
	if len(g.all) > 0 || g.oneIn(10) {
		for range g.upTo(most) {
			out = append(out, g.query())
		}
	}
	return out
}

// suits reports whether what a reads is probably there.
func (g *grower) suits(a Ashlar) bool {
	for _, q := range a.Queries() {
		if q.IsLanes() {
			return false
		}
		there := g.line
		if !q.IsNearest() && q.After() == nil {
			there = g.all
		}
		if t := q.Type(); t != nil && !slices.Contains(there, t) || t == nil && g.joined {
			return false
		}
	}
	return true
}

func declared(qs []dag.Query) LeafOption {
	var all []dag.Querier
	for _, q := range qs {
		all = append(all, q)
	}
	return Queries(all...)
}

func (g *grower) made(t dag.AnyType) {
	g.line, g.all, g.joined = append(slices.Clip(g.line), t), append(slices.Clip(g.all), t), false
}

// aside draws something whose types do not stay for certain.
func (g *grower) aside(draw func()) {
	line, all := g.line, g.all
	draw()
	g.line, g.all = line, all
}

func (g *grower) leaf() Ashlar {
	if len(g.grown) > 0 && g.oneIn(12) {
		if again := pick(g, g.grown); g.suits(again) || g.oneIn(10) {
			g.made(again.Produces())
			return again
		}
	}
	name, out, queries := g.name("leaf"), g.cells(), g.queries(3)
	opts := []LeafOption{declared(queries)}
	var judges []Ashlar
	if g.oneIn(15) {
		g.aside(func() { g.made(out); judges = []Ashlar{g.ashlar(2)} })
		opts = append(opts, Children(Walk{}.InOrder(judges...)))
	}
	a := New(name, out, func(ctx context.Context, d dag.DAG) (cell, error) {
		n, err := g.readAll(ctx, d, queries)
		for _, judge := range judges {
			draft, _ := out.Append(d, newCell(n))
			var failed *Failure
			if errors.As(In(ctx).RunChild(judge, draft).Cause(), &failed) && guilty(failed.Kind) {
				return cell{}, failed
			}
		}
		return newCell(n), err
	}, opts...)
	g.made(out)
	g.grown = append(g.grown, a)
	return a
}

func (g *grower) tree() Ashlar {
	return Seq("root", append([]Ashlar{g.leaf()}, g.some(5, 4)...)...)
}

func (g *grower) ashlar(depth int) Ashlar {
	if depth == 0 || g.oneIn(4) {
		return g.leaf()
	}
	switch g.upTo(8) {
	default:
		return Seq(g.name("seq"), g.some(depth, 3)...)
	case 2:
		return g.loop(depth)
	case 3:
		return g.match(depth)
	case 4, 5:
		return g.fanOut(depth)
	case 6:
		return g.rescue(depth)
	case 7:
		return g.scoped(depth)
	}
}

func (g *grower) some(depth, most int) []Ashlar {
	out := make([]Ashlar, 1+g.upTo(most-1))
	for i := range out {
		out[i] = g.ashlar(depth - 1)
	}
	return out
}

func (g *grower) loop(depth int) Ashlar {
	name, body := g.name("loop"), g.ashlar(depth-1)
	queries := g.queries(2)
	until := Until(dag.ReaderFunc(func(d dag.DAG) (bool, error) {
		n, err := g.readAll(context.Background(), d, queries)
		return (n+uint32(d.Len()))%3 == 0, err
	}, queriers(queries)...), func(done bool) bool { return done })
	return Loop(name, body, until, 1+g.upTo(3))
}

func queriers(qs []dag.Query) (out []dag.Querier) {
	for _, q := range qs {
		out = append(out, q)
	}
	return out
}

// brittle fails now and then, though no leaf does.
func (g *grower) brittle(a Ashlar) Ashlar {
	return Match(g.name("match"), On(dag.ReaderFunc(func(d dag.DAG) (any, error) { return newCell(uint32(d.Len())).K, nil }), func(v any) any { return v }), Case("k0", a), Case("k1", a))
}

func (g *grower) match(depth int) Ashlar {
	name := g.name("match")
	var on Extractor
	switch queries := g.queries(2); g.upTo(2) {
	case 0:
		on = Lens("K")
	case 1:
		on = On(dag.ReaderFunc(func(d dag.DAG) (any, error) {
			n, err := g.readAll(context.Background(), d, queries)
			return newCell(n).K, err
		}, queriers(queries)...), func(v any) any { return v })
	default:
		t, ok := g.known(g.line).(dag.Type[cell])
		if !ok {
			t = g.cells()
		}
		on = On(t, func(c cell) string { return c.K })
	}
	branches := make([]Branch, 1+g.upTo(2))
	line, all := g.line, g.all
	for i := range branches {
		g.line, g.all = line, all
		branches[i] = Case(fmt.Sprint("k", i), g.ashlar(depth-1))
	}
	if len(branches) > 1 && !g.oneIn(20) {
		g.line, g.all = line, all
	}
	return Match(name, on, branches...)
}

// fanOut is a map or a parallel, mostly with its reducer.
func (g *grower) fanOut(depth int) Ashlar {
	name := g.name("fan")
	line, all := g.line, g.all
	var opts []FanOption
	if g.oneIn(3) {
		opts = append(opts, Lanes(1+g.upTo(3)))
	}
	whole := g.oneIn(4)
	if whole {
		opts = append(opts, AllLanes())
	}
	var closed []dag.AnyType
	var fan Ashlar
	if item, queries := g.cells(), g.queries(2); g.oneIn(2) {
		g.made(item)
		items := dag.ReaderFunc(func(d dag.DAG) ([]cell, error) {
			n, err := g.readAll(context.Background(), d, queries)
			return []cell{newCell(n), newCell(n / 2), newCell(n)}[:n%4%3+min(1, n%9)], err
		}, queriers(queries)...)
		fan = Map(name, items, item, g.ashlar(depth-1), opts...)
		closed = slices.Clone(g.line[min(len(line), len(g.line)):])
	} else {
		lanes := make([]Ashlar, 1+g.upTo(2))
		kept := g.all
		for i := range lanes {
			g.line, g.all = line, all
			if lanes[i] = g.ashlar(depth - 1); g.oneIn(3) {
				lanes[i] = g.brittle(lanes[i])
			}
			made := g.line[min(len(line), len(g.line)):]
			if i == 0 {
				closed = slices.Clone(made)
			}
			closed = slices.DeleteFunc(closed, func(t dag.AnyType) bool { return !slices.Contains(made, t) })
			if len(lanes) == 1 || whole || g.oneIn(6) {
				kept = append(slices.Clip(kept), g.all...)
			}
		}
		g.all = kept
		if !whole && g.oneIn(4) {
			opts = append(opts, Quorum(1+g.upTo(len(lanes)-1)))
		}
		fan = Parallel(name, Parts(lanes, opts...)...)
	}
	g.line, g.joined = line, true
	if g.oneIn(20) {
		return fan
	}
	outer := g.closed
	g.closed = closed
	reducer := Reduce(g.ashlar(min(1, depth-1)))
	g.closed = outer
	return Seq(g.name("seq"), fan, reducer)
}

func (g *grower) rescue(depth int) Ashlar {
	name := g.name("rescue")
	var body, heal Ashlar
	g.aside(func() {
		line, all := g.line, g.all
		if body = Seq(g.name("seq"), g.some(depth, 3)...); !g.oneIn(4) { // else heal trusts in what body does
			g.line, g.all = line, all
		}
		g.made(dag.Failure)
		heal = g.ashlar(depth - 1)
	})
	return Rescue(name, body, heal)
}

// scoped draws a walk rule, and a body that keeps to it.
func (g *grower) scoped(depth int) Ashlar {
	name := g.name("scoped")
	var blocks []block
	var queries []dag.Query
	for range 1 + g.upTo(2) {
		b := block{how: how(g.upTo(int(apart)))}
		draw := func() {
			for _, c := range g.some(depth, 2) { // one that is used twice would have one path twice
				b.children = append(b.children, Seq(g.name("seq"), c))
			}
		}
		if b.how == inOrder || b.how == again {
			draw()
		} else {
			g.aside(draw)
		}
		blocks = append(blocks, b)
		if b.how == apart && !g.oneIn(20) {
			g.joined = true
			outer := g.closed
			g.closed = nil
			reducer := Reduce(Seq(g.name("seq"), g.leaf()))
			g.closed = outer
			blocks = append(blocks, block{how: inOrder, children: []Ashlar{reducer}})
		}
	}
	if g.oneIn(2) {
		queries = g.queries(2)
		blocks = append(blocks, block{how: reading})
	}
	if g.oneIn(3) {
		out := g.cells()
		g.made(out)
		blocks = append(blocks, block{how: writing, types: []dag.AnyType{out}})
	}
	var walk Walk
	for _, b := range blocks {
		switch b.how {
		case inOrder:
			walk = walk.InOrder(b.children...)
		case exactlyOne:
			walk = walk.OneOf(b.children...)
		case inOrderOrNot:
			walk = walk.Perhaps(b.children...)
		case again:
			walk = walk.Repeat(b.children...)
		case apart:
			walk = walk.Lanes(b.children...)
		case reading:
			walk = walk.Reads()
		case writing:
			walk = walk.Writes(b.types...)
		}
	}
	body := func(ctx context.Context, d dag.DAG) (dag.DAG, error) {
		for _, b := range blocks {
			var err error
			switch b.how {
			case reading:
				_, err = g.readAll(ctx, d, queries)
			case writing:
				d, err = b.types[0].(dag.Type[cell]).Append(d, newCell(uint32(d.Len())))
			default:
				d, err = runBlock(ctx, b, d)
			}
			if err != nil || d.InFlight() {
				return d, err
			}
		}
		return d, nil
	}
	return Scoped(name, walk, body, queriers(queries)...)
}

func runBlock(ctx context.Context, b block, d dag.DAG) (dag.DAG, error) {
	chance := d.Len()
	switch {
	case b.how == exactlyOne:
		return In(ctx).RunChild(b.children[chance%len(b.children)], d), nil
	case b.how == inOrderOrNot && chance%2 == 0:
		return d, nil
	case b.how == apart:
		return runLanes(ctx, b.children, d)
	}
	times := 1
	if b.how == again {
		times += chance % 3
	}
	for range times {
		for _, c := range b.children {
			if d = In(ctx).RunChild(c, d); d.InFlight() {
				return d, nil
			}
		}
	}
	return d, nil
}

// runLanes leaves, as a fan-out does, nothing of a lane that failed but its failure.
func runLanes(ctx context.Context, children []Ashlar, d dag.DAG) (dag.DAG, error) {
	base, err := dag.Origin(d)
	if err != nil {
		return d, err
	}
	lanes := make([]dag.DAG, len(children))
	for i, c := range children {
		lane, err := dag.Lane(base, i)
		if err != nil {
			return d, err
		}
		if lanes[i] = In(ctx).RunChild(c, lane); lanes[i].InFlight() {
			return base, lanes[i].Cause()
		}
	}
	return dag.Join(base, lanes)
}

// sketch draws a tree for a message.
func sketch(p Ashlar) string {
	var b strings.Builder
	var draw func(a Ashlar, indent string)
	draw = func(a Ashlar, indent string) {
		s := a.spec()
		fmt.Fprintf(&b, "%s%s %s", indent, formNames[s.form], s.name)
		if s.out != nil {
			fmt.Fprintf(&b, " → %s", s.out.Name())
		}
		fmt.Fprintf(&b, " reads %v, max %d, lanes %t %d %v", s.queries, s.max, s.allLanes, s.quorum, s.keys)
		for how, children := range a.Walk() {
			fmt.Fprintf(&b, ", %s %d", how, len(children))
		}
		b.WriteString("\n")
		for _, c := range s.children {
			draw(c, indent+"  ")
		}
	}
	draw(p, "")
	return b.String()
}
