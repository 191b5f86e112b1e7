package plan

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/expr"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/schema"
)

// compiler makes an ashlar of a plan, and reports what is wrong with it.
type compiler struct {
	report
	census
	plan    *Plan
	app     *call.Applicator
	opts    Options
	planner planner
	depth   int // of what is around the plan

	types   map[string]dag.AnyType
	visible []string // in expressions
	guards  []string // that hold where the compiler is
	apps    map[int]*call.Applicator
	pending map[string]laneSlot // of a fan-out that is not reduced yet
	fanned  bool                // there is one
	places  map[stone.Ashlar]*place
	ashlar  stone.Ashlar // what it all comes to; zero if the plan is too large to look at
}

// result is the type of what has no name.
var result = dag.NewType[json.RawMessage]("stone/result")

// A beginning notes which plan it is that begins.
type beginning struct {
	ID     string `json:"id,omitempty"`
	Digest string `json:"digest"`
}

// A passing notes that the guard of a node did not hold.
type passing struct {
	Node string `json:"node"`
}

// own are the types that plans write of their own accord.
var own = []dag.Querier{dag.Optional(begun), dag.Optional(passed), dag.Optional(closing), dag.Optional(result), dag.Optional(Emission)}

var (
	begun  = dag.NewType[beginning]("stone/plan")
	passed = dag.NewType[passing]("stone/passed")
)

func newCompiler(p *Plan, app *call.Applicator, opts Options, depth int) *compiler {
	c := &compiler{
		plan: p, app: app, opts: opts, depth: depth,
		census: census{definers: make(map[string][]*node, p.size), used: make(map[string]bool, p.size)},
		types:  make(map[string]dag.AnyType, p.size), apps: map[int]*call.Applicator{}, places: make(map[stone.Ashlar]*place, p.size),
	}
	c.findings = slices.Clone(p.faults)
	c.take(p.nodes)
	c.visible = append(slices.Clone(opts.Slots), c.names...)
	return c
}

// compile makes the ashlar. It is of use only if there are no errors among the
// findings.
func (c *compiler) compile() {
	if !c.measure() {
		return
	}
	known := (&scope{}).room(c.plan.size)
	for _, name := range c.opts.Slots {
		if !reserved(name) {
			known.define(name, slot{sure: true, call: true, given: true})
		}
	}
	// It reads nothing. But what a plan writes of its own accord is not unused, so it
	// says that it may.
	begin := stone.Func0("begin", begun, func(context.Context) (beginning, error) {
		return beginning{c.plan.id, c.plan.digest}, nil
	}, stone.Queries(own...), stone.Version(c.plan.digest))
	c.ashlar = c.sequence(cmp.Or(c.plan.id, "plan"), c.plan.nodes, known, 1, begin)
}

// label is how a node is called where it has no name of its own.
func label(n *node) string { return cmp.Or(n.id, n.as, n.op) }

// sequence compiles nodes that follow each other, and some steps.
func (c *compiler) sequence(name string, nodes []*node, known *scope, depth int, steps ...stone.Ashlar) stone.Ashlar {
	c.checkNames(nodes)
	taken := make(map[string]bool, len(nodes)+1)
	taken["begin"] = len(steps) > 0
	steps = slices.Grow(steps, len(nodes))
	fan := -1 // the step with the fan-out that is not reduced yet
	for i, n := range nodes {
		own := label(n)
		if taken[own] || n.id == "" && n.as == "" {
			own += "-" + strconv.Itoa(i+1)
		}
		for taken[own] {
			own += "'"
		}
		taken[own] = true
		a := c.node(n, own, known, depth)
		c.places[a] = n.at
		// What a fan-out leaves is one thing with what closes it.
		if fan >= 0 {
			steps[fan] = stone.Seq(steps[fan].Name()+" and "+own, steps[fan], a)
		} else {
			steps = append(steps, a)
		}
		if fan = -1; c.fanned {
			fan = len(steps) - 1
		}
	}
	return c.inMode(name, steps)
}

// inMode composes steps as the mode says.
func (c *compiler) inMode(name string, steps []stone.Ashlar) stone.Ashlar {
	switch {
	case c.opts.Mode == Strict || len(steps) < 2:
		return stone.Seq(name, steps...)
	case c.opts.Mode == Lazy:
		return stone.Seq(name, batches(steps)...)
	}
	return stone.Flow(name, steps...)
}

// batches puts together, as long as possible, steps of which none waits for
// another one.
func batches(steps []stone.Ashlar) []stone.Ashlar {
	var out, batch []stone.Ashlar
	written := map[string]bool{}
	flush := func() {
		if len(batch) > 0 {
			out = append(out, stone.Flow(fmt.Sprintf("batch-%d", len(out)+1), batch...))
		}
		batch = nil
		clear(written)
	}
	for _, s := range steps {
		if slices.ContainsFunc(s.QueriesAll(), func(q dag.Query) bool { return q.Type() != nil && written[q.Type().Name()] }) {
			flush()
		}
		batch = append(batch, s)
		for _, t := range s.ProducesAll() {
			written[t.Name()] = true
		}
	}
	flush()
	return out
}

// node compiles a node with its guard.
func (c *compiler) node(n *node, name string, known *scope, depth int) stone.Ashlar {
	if n.when == nil || n.when.form == always {
		return c.inner(n, name, known, depth)
	}
	t := c.test(n.when, n, known)
	guard := n.when.String()
	c.guards = append(c.guards, guard)
	inside := known.inner()
	if n.op == "reduce" {
		// The lanes are brought together whether or not the body runs.
		return c.reduce(n, name, known, inside, depth, t)
	}
	a := c.inner(n, name, inside, depth)
	c.guards = c.guards[:len(c.guards)-1]
	known.leave(inside, guard)
	for slot, l := range c.pending {
		l.slot = l.slot.guarded(guard)
		c.pending[slot] = l
	}
	return c.guarded(n, name, a, t)
}

// guarded runs a only where the test holds.
func (c *compiler) guarded(n *node, name string, a stone.Ashlar, t *test) stone.Ashlar {
	c.places[a] = n.at
	g := c.perhaps(name+"?", a, t.holds, t.reads.queries())
	if t.form != expression || !n.spec.Dispatch.AllowFailure {
		return g
	}
	c.places[g] = n.at
	return stone.Rescue(name+" guarded", g, broken(name, c.typeOf(n)))
}

// perhaps runs a only where something holds, and notes where it does not.
func (c *compiler) perhaps(name string, a stone.Ashlar, holds func(dag.DAG) (bool, error), queries []dag.Querier) stone.Ashlar {
	pass := stone.Func0("pass "+a.Name(), passed, func(context.Context) (passing, error) { return passing{a.Name()}, nil })
	// With a query of what every plan begins with, a flow need not ask whether there
	// is a node at all, which would have to wait.
	on := stone.By(func(d dag.DAG) (any, error) { return holds(d) }, append(queries, begun)...)
	return stone.Match(name, on, stone.Case(true, a), stone.Case(false, pass))
}

// broken makes the node of an allowed failure where the guard is what failed.
func broken(name string, typ dag.AnyType) stone.Ashlar {
	return stone.New(name+" broken", call.Failed(typ), func(_ context.Context, d dag.DAG) (call.Record, error) {
		f, err := dag.Failure.Nearest(d)
		return call.Record{Failure: f.Kind, Error: f.Reason}, err
	}, stone.Queries(dag.Failure))
}

// inner compiles a node without its guard.
func (c *compiler) inner(n *node, name string, known *scope, depth int) stone.Ashlar {
	if n.op != "reduce" {
		c.pending, c.fanned = nil, false
	}
	switch n.op {
	case "let":
		return c.let(n, name, known)
	case "call", "tool":
		return c.call(n, name, known, depth)
	case "emit":
		return c.emit(n, name, known)
	case "seq":
		return c.body(n, name, known, depth)
	case "loop":
		return c.loop(n, name, known, depth)
	case "match":
		return c.match(n, name, known, depth)
	case "map":
		return c.mapOver(n, name, known, depth)
	case "parallel":
		return c.parallel(n, name, known, depth)
	case "reduce":
		return c.reduce(n, name, known, known, depth, nil)
	case "ask":
		return c.ask(n, name, known)
	}
	// An op that nobody knows, which is reported already.
	c.define(n, known, slot{sure: true, call: true, fails: true})
	return stone.New(name, result, unknown)
}

func unknown(context.Context, dag.DAG) (json.RawMessage, error) {
	return nil, stone.Fail(unknownOp, "the node has no op that is known")
}

// typeOf is the type of what a node produces.
func (c *compiler) typeOf(n *node) dag.AnyType {
	if n.as == "" || reserved(n.as) {
		return result
	}
	return c.slotType(n.as)
}

// slotType is the type of the nodes that hold a slot. Its schema is that of the
// call which alone defines it.
func (c *compiler) slotType(name string) dag.AnyType {
	if t := c.types[name]; t != nil {
		return t
	}
	var t dag.AnyType
	switch by := c.definers[name]; {
	case len(by) == 1 && by[0].op == "ask":
		t = dag.NewType[stone.Answer](name)
	case len(by) == 1 && by[0].op == "call":
		t = open(name).WithSchema(c.schemaOf(by[0]))
	default:
		t = open(name)
	}
	c.types[name] = t
	return t
}

func open(name string) dag.Type[json.RawMessage] { return dag.NewType[json.RawMessage](name) }

// schemaOf is the schema of what a call answers, nil if that can be anything.
func (c *compiler) schemaOf(n *node) *schema.Schema {
	if c.app == nil {
		return nil
	}
	// What is built in says too little to hold a reader in Go to it.
	return c.app.Schemas[cmp.Or(n.spec.Requires.OutSchema, c.app.Intents[n.spec.Intent].Out)]
}

// define notes the slot of a node.
func (c *compiler) define(n *node, known *scope, def slot) {
	if n.as != "" && !reserved(n.as) {
		known.define(n.as, def)
	}
}

// leafOptions are what leaves of a plan have in common.
func (c *compiler) leafOptions(r reads) []stone.Option {
	return []stone.Option{stone.Queries(r.queries()...), stone.Version(c.plan.digest)}
}

func (c *compiler) let(n *node, name string, known *scope) stone.Ashlar {
	r := c.reads(n, known, n.value)
	c.define(n, known, slot{sure: true})
	typ, ok := c.typeOf(n).(dag.Type[json.RawMessage])
	if !ok {
		typ = open(n.as)
	}
	return stone.New(name, typ, func(_ context.Context, d dag.DAG) (json.RawMessage, error) {
		return n.value.render(view{r, d})
	}, c.leafOptions(r)...)
}

func (c *compiler) emit(n *node, name string, known *scope) stone.Ashlar {
	r := c.reads(n, known, n.value)
	return stone.New(name, Emission, func(_ context.Context, d dag.DAG) (json.RawMessage, error) {
		return n.value.render(view{r, d})
	}, c.leafOptions(r)...)
}

func (c *compiler) call(n *node, name string, known *scope, depth int) stone.Ashlar {
	r := c.reads(n, known, n.value, n.context, n.constraints)
	fails := n.spec.Dispatch.AllowFailure
	c.define(n, known, slot{sure: true, fails: fails, call: true})
	spec := n.spec
	spec.Applicator = c.appAt(depth)
	spec.Queries = dag.Types(r.queries()...)
	spec.Input = r.maker(n.value)
	spec.Context, spec.Constraints = r.maker(n.context), r.maker(n.constraints)
	return call.New(name, c.typeOf(n), spec)
}

// maker makes the function that fills a template; nil if there is none.
func (r reads) maker(t *template) func(dag.DAG) (any, error) {
	if t == nil {
		return nil
	}
	return func(d dag.DAG) (any, error) { return t.render(view{r, d}) }
}

// appAt is the applicator of calls that are nested so deep: what they answer with
// plans stands deeper.
func (c *compiler) appAt(depth int) *call.Applicator {
	if c.apps[depth] != nil || c.app == nil {
		return c.apps[depth]
	}
	app := *c.app
	if _, other := app.Plans.(planner); app.Plans == nil || other {
		app.Plans = planner{opts: c.opts, depth: c.depth + depth}
	}
	c.apps[depth] = &app
	return &app
}

// body compiles the one body of a node.
func (c *compiler) body(n *node, name string, known *scope, depth int) stone.Ashlar {
	inside := known.inner()
	a := c.sequence(name, bodyOf(n), inside, depth+1)
	known.leave(inside, "")
	return a
}

func bodyOf(n *node) []*node {
	if len(n.bodies) == 0 {
		return nil
	}
	return n.bodies[0].nodes
}

func (c *compiler) loop(n *node, name string, known *scope, depth int) stone.Ashlar {
	inside := known.inner()
	if n.max > 1 {
		carried(bodyOf(n), func(b *node) { // what a round before may have left
			if known.find(b.as) == nil {
				c.define(b, inside, slot{call: b.op == "call" || b.op == "tool"})
			}
		})
	}
	round := inside.inner()
	a := c.sequence("body", bodyOf(n), round, depth+1)
	if n.until == nil {
		return a
	}
	c.fanned = false
	t := c.test(n.until, n, round)
	known.leave(round, "")
	return stone.Loop(name, a, stone.UntilDAG(t.holds, t.reads.queries()...), stone.Max(n.max))
}

func (c *compiler) match(n *node, name string, known *scope, depth int) stone.Ashlar {
	r := c.reads(n, known, n.value)
	c.unreachable(n, known)
	var cases []stone.Branch
	var ways []*scope
	pending := map[string]laneSlot{}
	fanned := false
	for _, b := range n.bodies {
		c.pending, c.fanned = nil, false
		inside := known.inner()
		a := c.sequence(cmp.Or(b.key, "empty"), b.nodes, inside, depth+1)
		c.places[a] = b.at
		cases = append(cases, stone.Case(b.key, a))
		ways = append(ways, inside)
		for slot, l := range c.pending {
			pending[slot] = l
		}
		fanned = fanned || c.fanned
	}
	c.pending, c.fanned = pending, fanned
	known.either(ways)
	on := stone.By(func(d dag.DAG) (any, error) {
		value, err := n.value.render(view{r, d})
		if err != nil {
			return nil, err
		}
		return selector(value)
	}, append(r.queries(), begun)...)
	return stone.Match(name, on, cases...)
}

// selector is the text by which a value selects a branch.
func selector(value json.RawMessage) (string, error) {
	var text string
	if json.Unmarshal(value, &text) == nil && string(value) != "null" {
		return text, nil
	}
	canonical, err := canon.AppendJSON(nil, value)
	return string(canonical), err
}

// unreachable reports the branches that no value of a slot selects whose schema
// has a closed list of values.
func (c *compiler) unreachable(n *node, known *scope) {
	ref := n.value
	if ref == nil || ref.slot == nil || ref.slot.record || known.find(ref.slot.name) == nil || len(c.definers[ref.slot.name]) != 1 {
		return
	}
	var path []string
	for _, s := range ref.slot.path {
		path = append(path, s.String())
	}
	at, ok := c.slotType(ref.slot.name).Schema().At(path...)
	if !ok {
		return
	}
	values, closed := at.Enum()
	if !closed {
		return
	}
	var keys []string
	for _, v := range values {
		value, err := canon.Append(nil, v)
		if err != nil {
			return
		}
		key, err := selector(value)
		if err != nil {
			return
		}
		keys = append(keys, key)
	}
	for _, b := range n.bodies {
		if !slices.Contains(keys, b.key) {
			c.find(b.at, stone.Finding{Type: "unreachable-branch", Ashlar: label(n), Queried: b.key},
				"no value of %s selects the branch %q: the values are %q", ref.slot, b.key, keys)
		}
	}
}

func (c *compiler) ask(n *node, name string, known *scope) stone.Ashlar {
	r := c.reads(n, known, n.value)
	c.define(n, known, slot{sure: true})
	opts := []stone.Option{stone.Queries(r.queries()...), stone.Version(c.plan.digest)}
	if n.choices != nil {
		opts = append(opts, stone.Choices(n.choices...))
	}
	typ, ok := c.typeOf(n).(dag.Type[stone.Answer])
	if !ok {
		typ = dag.NewType[stone.Answer](cmp.Or(n.as, "answer"))
	}
	return stone.Ask(name, typ, func(d dag.DAG) (string, error) {
		value, err := n.value.render(view{r, d})
		if err != nil {
			return "", err
		}
		return selector(value)
	}, opts...)
}

// test compiles a guard.
func (c *compiler) test(g *guard, n *node, known *scope) *test {
	t := &test{guard: g, reads: reads{}}
	switch g.form {
	case present, failed:
		if reserved(g.name) {
			t.guard = &guard{form: never, at: g.at}
			return t
		}
		c.probe(t.reads, g.name)
	case expression:
		program, err := expr.Compile(g.text, c.visible, expr.Bool)
		if err != nil {
			c.find(g.at, stone.Finding{Type: badExpression, Ashlar: label(n)}, "%.200q: %v", g.text, err)
			t.guard = &guard{form: never, at: g.at}
			return t
		}
		t.program = program
		for _, name := range program.Variables() {
			c.read(t.reads, n, known, &slotRef{name: name, at: g.at})
		}
	}
	return t
}

// reads finds out what the templates of a node read.
func (c *compiler) reads(n *node, known *scope, templates ...*template) reads {
	r := reads{}
	for _, t := range templates {
		t.slots(func(ref *slotRef) { c.read(r, n, known, ref) }, func(name string, at *place) { c.word(r, n, known, name, at) })
	}
	return r
}

// access returns how a slot is read, which several places of a node share.
func (c *compiler) access(r reads, name string) *access {
	a := r[name]
	if a == nil {
		a = &access{typ: c.slotType(name)}
		r[name] = a
	}
	return a
}

// probe notes that a node asks whether there is a slot.
func (c *compiler) probe(r reads, name string) {
	a := c.access(r, name)
	a.failed = call.Failed(a.typ)
}

// word notes that a keyword stands for a slot, if there is one.
func (c *compiler) word(r reads, n *node, known *scope, name string, at *place) {
	if reserved(name) {
		return
	}
	if known.find(name) != nil {
		c.read(r, n, known, &slotRef{name: name, at: at})
		return
	}
	c.probe(r, name)
	r[name].loose = true
}

// read notes that a node needs a slot.
func (c *compiler) read(r reads, n *node, known *scope, ref *slotRef) {
	if ref.name == "" { // which is reported already
		r[""] = &access{typ: result}
		return
	}
	a := c.access(r, ref.name)
	def := known.find(ref.name)
	switch {
	case reserved(ref.name):
		c.find(ref.at, stone.Finding{Type: "missing-producer", Ashlar: label(n), Queried: ref.name}, "%q is reserved: auth/…, roles/… and stone/… are not for plans", ref.name)
		return
	case def == nil || def.given: // from outside, as the validator will see
		a.needed = true
		a.failed = call.Failed(a.typ)
		return
	case !def.within(ref.name, c.guards):
		c.find(ref.at, stone.Finding{Type: "maybe-unavailable", Ashlar: label(n), Queried: ref.name},
			"%q is not there on every way to here: read it under {:present? :%[1]s}, or under the guard of what defines it", ref.name)
	case ref.record && !def.call:
		c.find(ref.at, stone.Finding{Type: "missing-producer", Ashlar: label(n), Queried: ref.name}, "%q is no call: it has no record", ref.name)
	case def.fails && !ref.record && !slices.Contains(c.guards, isPresent+" "+ref.name):
		c.find(ref.at, stone.Finding{Type: "maybe-unavailable", Warning: true, Ashlar: label(n), Queried: ref.name},
			"%q is not readable after a failure that is allowed: read it under {:present? :%[1]s}", ref.name)
	}
	if def.fails || ref.record {
		a.failed = call.Failed(a.typ)
	}
	a.needed = a.needed || def.sure && !def.fails && !def.lanes && !ref.record
}

// list reads the items of a map.
func list(value json.RawMessage) ([]json.RawMessage, error) {
	items := []json.RawMessage{}
	if len(value) == 0 || value[0] != '[' || json.Unmarshal(value, &items) != nil {
		return nil, stone.Fail(kind.BadContent, "expected a list to map over, found %.40s", value)
	}
	return items, nil
}
