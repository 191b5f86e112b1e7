package stone

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/bits"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/kind"
)

// cell is the content of all nodes: a number that follows from what its writer
// has read, and a key for matches that follows from the number.
type cell struct {
	N uint32
	K string
}

func newCell(n uint32) cell { return cell{n, fmt.Sprint("k", n%3)} }

var cellTypes = func() (types []dag.Type[cell]) {
	for i := range 7 {
		types = append(types, dag.NewType[cell](fmt.Sprint("t", i)))
	}
	return types
}()

// witness remembers which reads found something: by place, query and type. That
// is what a finding must not deny.
type witness struct {
	mu     sync.Mutex
	found  map[string]bool
	missed []error // reads of what must be there that found nothing
}

// rounds are the parts of an address that stand for rounds, lanes and visits.
var rounds = regexp.MustCompile(`\[\d+\]|@\d+`)

func (w *witness) saw(ctx context.Context, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.found[rounds.ReplaceAllString(Path(ctx), "")+" "+name] = true
}

// kindEmpty is the failure of a body that reads all of a type and finds none.
const kindEmpty = "empty-every"

// read does what q declares. It returns a number that stands for what it found.
func (w *witness) read(ctx context.Context, d dag.DAG, q dag.Query) (uint32, error) {
	h := fnv.New32a()
	var nodes []*dag.Node
	var err error
	name := ""
	switch {
	case q.Type() == nil && (q == dag.Latest || q == dag.Optional(dag.Latest)):
		if n := d.Latest(); n != nil {
			nodes = append(nodes, n)
		} else {
			err = &dag.ReadError{Err: dag.ErrMissing}
		}
	case q.Type() == nil:
		nodes = slices.Collect(d.Nodes())
	case q.IsNearest():
		name = q.Type().Name()
		var n *dag.Node
		if n, err = d.Nearest(name); err == nil {
			nodes = append(nodes, n)
		}
	case q.After() != nil:
		name = q.Type().Name()
		nodes, err = d.Since(name, q.After().Name())
	default:
		name = q.Type().Name()
		if nodes, err = d.All(name); err == nil && len(nodes) == 0 && q.Type() != dag.AnyType(dag.Failure) {
			err = Fail(kindEmpty, "no %q at all", name)
		}
	}
	if err != nil && q.IsOptional() && !errors.Is(err, dag.ErrUndeclared) {
		return 0, nil
	}
	if len(nodes) > 0 && ctx != nil {
		w.saw(ctx, name)
	}
	if err != nil {
		w.mu.Lock()
		w.missed = append(w.missed, err)
		w.mu.Unlock()
	}
	for _, n := range nodes {
		h.Write([]byte(n.ID().String()))
	}
	return h.Sum32(), err
}

func (w *witness) readAll(ctx context.Context, d dag.DAG, queries []dag.Query) (sum uint32, err error) {
	for _, q := range queries {
		n, err := w.read(ctx, d, q)
		if err != nil {
			return 0, err
		}
		sum = sum*31 + n
	}
	return sum, nil
}

// grower draws trees. It keeps in mind what is probably there, so that enough of
// the trees are valid, and now and then forgets about it, so that enough are not.
type grower struct {
	*rapid.T
	*witness
	names     int
	line, all []dag.AnyType // what is probably on the line, and what there is at all
	joined    bool          // the latest node is that of some lane
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

func (g *grower) query() dag.Query {
	var q dag.Query
	switch g.upTo(11) {
	default:
		q = g.known(g.line).Query()
	case 5, 6, 7:
		q = dag.Every(g.known(g.all))
	case 8:
		q = dag.Since(g.known(g.line), g.known(g.line))
	case 9:
		if q = dag.Latest; g.joined {
			q = dag.Everything
		}
	case 10:
		q = dag.Every(dag.Failure)
	case 11:
		q = dag.Everything
	}
	if g.oneIn(8) {
		q = dag.Optional(q)
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

func declared(qs []dag.Query) Option {
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
	opts := []Option{declared(queries)}
	var judges []Ashlar
	if g.oneIn(15) {
		g.aside(func() { g.made(out); judges = []Ashlar{g.ashlar(2)} })
		opts = append(opts, Children(WalkInOrder, judges...))
	}
	a := New(name, out, func(ctx context.Context, d dag.DAG) (cell, error) {
		n, err := g.readAll(ctx, d, queries)
		for _, judge := range judges {
			draft, _ := out.Append(d, newCell(n))
			var failed *Failure
			if errors.As(RunChild(ctx, judge, draft).Cause(), &failed) && guilty(failed.Kind) {
				return cell{}, failed
			}
		}
		return newCell(n), err
	}, opts...)
	g.made(out)
	g.grown = append(g.grown, a)
	return a
}

// guilty are the kinds of failure that a valid tree does not end in.
func guilty(k string) bool {
	return k == kind.MissingInput || k == kind.UndeclaredQuery || k == kindEmpty || k == kind.Panic || k == kind.BadContent
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
	until := UntilDAG(func(d dag.DAG) (bool, error) {
		n, err := g.readAll(nil, d, queries)
		return (n+uint32(d.Len()))%3 == 0, err
	}, queriers(queries)...)
	return Loop(name, body, until, Max(1+g.upTo(3)))
}

func queriers(qs []dag.Query) (out []dag.Querier) {
	for _, q := range qs {
		out = append(out, q)
	}
	return out
}

// brittle fails now and then, though no leaf does.
func (g *grower) brittle(a Ashlar) Ashlar {
	return Match(g.name("match"), By(func(d dag.DAG) (any, error) { return newCell(uint32(d.Len())).K, nil }), Case("k0", a), Case("k1", a))
}

func (g *grower) match(depth int) Ashlar {
	name := g.name("match")
	var on Extractor
	switch queries := g.queries(2); g.upTo(2) {
	case 0:
		on = Lens("K")
	case 1:
		on = By(func(d dag.DAG) (any, error) { n, err := g.readAll(nil, d, queries); return newCell(n).K, err }, queriers(queries)...)
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
	var opts []Option
	if g.oneIn(3) {
		opts = append(opts, Lanes(1+g.upTo(3)))
	}
	whole := g.oneIn(4)
	if whole {
		opts = append(opts, AllLanes())
	}
	var fan Ashlar
	if item, queries := g.cells(), g.queries(2); g.oneIn(2) {
		g.made(item)
		items := EachDAG(item, func(d dag.DAG) ([]cell, error) {
			n, err := g.readAll(nil, d, queries)
			return []cell{newCell(n), newCell(n / 2), newCell(n)}[:n%4%3+min(1, n%9)], err
		}, queriers(queries)...)
		fan = Map(name, items, g.ashlar(depth-1), opts...)
	} else {
		lanes := make([]Ashlar, 1+g.upTo(2))
		kept := g.all
		for i := range lanes {
			g.line, g.all = line, all
			if lanes[i] = g.ashlar(depth - 1); g.oneIn(3) {
				lanes[i] = g.brittle(lanes[i])
			}
			if len(lanes) == 1 || whole || g.oneIn(6) {
				kept = append(slices.Clip(kept), g.all...)
			}
		}
		g.all = kept
		if g.oneIn(4) {
			opts = append(opts, Quorum(1+g.upTo(len(lanes)-1)))
		}
		fan = Parallel(name, lanes, opts...)
	}
	g.line, g.joined = line, true
	if g.oneIn(20) {
		return fan
	}
	reducer := Reduce(g.ashlar(min(1, depth-1)))
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
	var children []Ashlar
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
		children, blocks = append(children, b.children...), append(blocks, b)
		if b.how == apart && !g.oneIn(20) {
			g.joined = true
			reducer := Reduce(Seq(g.name("seq"), g.leaf()))
			children, blocks = append(children, reducer), append(blocks, block{inOrder, []Ashlar{reducer}})
		}
	}
	if g.oneIn(2) {
		queries = g.queries(2)
		blocks = append(blocks, block{how: reading})
	}
	walk := func(w *Walker) {
		for _, b := range blocks {
			switch b.how {
			case inOrder:
				w.InOrder(b.children...)
			case exactlyOne:
				w.OneOf(b.children...)
			case inOrderOrNot:
				w.Perhaps(b.children...)
			case again:
				w.Repeat(b.children...)
			case apart:
				w.Lanes(b.children...)
			case reading:
				w.Reads()
			}
		}
	}
	body := func(ctx context.Context, d dag.DAG) (dag.DAG, error) {
		for _, b := range blocks {
			var err error
			if b.how == reading {
				_, err = g.readAll(ctx, d, queries)
			} else {
				d, err = runBlock(ctx, b, d)
			}
			if err != nil || d.Failed() {
				return d, err
			}
		}
		return d, nil
	}
	return Scoped(name, children, walk, body, declared(queries))
}

func runBlock(ctx context.Context, b block, d dag.DAG) (dag.DAG, error) {
	chance := d.Len()
	switch {
	case b.how == exactlyOne:
		return RunChild(ctx, b.children[chance%len(b.children)], d), nil
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
			if d = RunChild(ctx, c, d); d.Failed() {
				return d, nil
			}
		}
	}
	return d, nil
}

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
		if lanes[i] = RunChild(ctx, c, lane); lanes[i].Failed() {
			return lanes[i], nil
		}
	}
	return dag.Join(base, lanes)
}

// inTurn is an executor that runs lanes one after the other: in their order, or
// in one that it draws.
type inTurn struct {
	*local
	random *rand.Rand
}

func (e inTurn) Fan(_ Task, n int, lane func(int)) {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	if e.random != nil {
		order = e.random.Perm(n)
	}
	for _, i := range order {
		lane(i)
	}
}

// listing is everything about a DAG that must not depend on who finished first.
func listing(d dag.DAG) string {
	var b strings.Builder
	for n := range d.Nodes() {
		fmt.Fprintf(&b, "%s %s %s\n", n.ID(), n.Type(), n.JSON())
	}
	return b.String()
}

// share counts what the trees of a property were like.
type share struct{ all, valid, fans, loops, lost, failures int }

func (s *share) count(d dag.DAG, p Ashlar) {
	p.each(func(sp *spec) {
		switch sp.form {
		case mapForm, parallelForm:
			s.fans++
		case loopForm:
			s.loops++
		}
	})
	failures, _ := dag.Failure.All(d)
	lost, _ := dag.Lost(d)
	s.lost += len(lost)
	s.failures += len(failures) - len(lost)
}

// TestValidNeverMissesInput draws trees of all forms. One without findings finds
// all that it reads, in every run in which no leaf fails, and gives the same DAG
// however its lanes are run. And of one with findings, an error that says that
// there is nothing to read is right: nothing is read there.
func TestValidNeverMissesInput(t *testing.T) {
	var s share
	for range 10 {
		rapid.Check(t, func(t *rapid.T) {
			w := &witness{found: map[string]bool{}}
			p := (&grower{T: t, witness: w}).tree()
			findings := slices.DeleteFunc(Validate(p, Config{}), func(f Finding) bool { return f.Type == "unused-produce" })
			s.all++
			if len(findings) > 0 {
				checkDenied(t, w, p, findings)
				return
			}
			s.valid++
			s.count(checkValid(t, w, p), p)
		})
	}
	t.Logf("of %d trees %d are valid, with %d fan-outs and %d loops; their runs lost %d lanes and had %d other failures",
		s.all, s.valid, s.fans, s.loops, s.lost, s.failures)
	if s.valid < s.all/5 || s.valid > s.all*4/5 || s.fans < s.valid/2 || s.loops < s.valid/4 || s.lost == 0 || s.failures == 0 {
		t.Errorf("the trees do not exercise the rules: %+v", s)
	}
}

func checkValid(t *rapid.T, w *witness, p Ashlar) dag.DAG {
	res, err := Run(context.Background(), p, Config{})
	if errors.As(err, new(*Invalid)) {
		t.Fatalf("valid, but refused: %v", err)
	}
	failures, _ := dag.Failure.All(res.DAG)
	for _, f := range failures {
		if guilty(f.Kind) {
			t.Fatalf("no finding, but %s: %s\n%s", f.Kind, f.Reason, sketch(p))
		}
	}
	if len(w.missed) > 0 {
		t.Fatalf("no finding, but %v\n%s", w.missed, sketch(p))
	}
	want := listing(res.DAG)
	for _, e := range []Executor{inTurn{local: new(local)}, inTurn{new(local), rand.New(rand.NewPCG(1, uint64(res.DAG.Len())))}} {
		res, _ := Run(context.Background(), p, Config{Executor: e})
		if got := listing(res.DAG); got != want {
			t.Fatalf("lanes in turn give another DAG:\n%s\nwant:\n%s", got, want)
		}
	}
	return res.DAG
}

// checkDenied runs a tree in spite of its findings.
func checkDenied(t *rapid.T, w *witness, p Ashlar, findings Findings) {
	RunUnchecked(context.Background(), p, Config{})
	for _, f := range findings.Errors() {
		switch f.Type {
		case "missing-producer", "lane-type-read-as-one":
			if f.Queried != "" && w.found[f.Path+" "+f.Queried] && !asksTwice(p, f) {
				t.Fatalf("%v: but it was found\n%s", f, sketch(p))
			}
		case "fanout-not-reduced", "invalid-lens":
		default:
			t.Fatalf("a finding that no tree of this property gives reason for: %v\n%s", f, sketch(p))
		}
	}
}

// asksTwice reports whether the ashlar of a finding asks for the type in another
// way too, which may find it.
func asksTwice(p Ashlar, f Finding) bool {
	most := 0
	p.each(func(s *spec) {
		n := 0
		for _, q := range s.queries {
			if q.Type() != nil && q.Type().Name() == f.Queried || q.After() != nil && q.After().Name() == f.Queried {
				n++
			}
		}
		if s.name == f.Ashlar {
			most = max(most, n)
		}
	})
	return most > 1
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
		fmt.Fprintf(&b, " reads %v, max %d, lanes %t %d %v\n", s.queries, s.max, s.allLanes, s.quorum, s.keys)
		for _, c := range s.children {
			draw(c, indent+"  ")
		}
	}
	draw(p, "")
	return b.String()
}
