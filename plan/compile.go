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
	"github.com/stonelayer/stone/schema"
)

// compiler makes an ashlar of a plan, and reports what is wrong with it.
type compiler struct {
	report
	census
	plan  *Plan
	app   *call.Applicator
	opts  Options
	depth int // of what is around the plan

	types   map[string]dag.AnyType
	hidden  map[string]bool // types that are there, but only in lanes, where a slot does not look
	visible []string        // in expressions

	answers  bool            // a capability answered with the plan
	withheld map[string]bool // types that its call did not pass on
	guards   []string        // that hold where the compiler is
	apps     map[int]*call.Applicator
	pending  map[string]laneSlot // of a fan-out that is not reduced yet
	fanned   bool                // there is one
	places   map[stone.Ashlar]*place
	ashlar   stone.Ashlar // what it all comes to; zero if the plan is too large to look at
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

// own asks for all that plans write of their own accord.
var own = every(begun, passed, closing, result, Emission)

func every(types ...dag.AnyType) (all []dag.Querier) {
	for _, t := range types {
		all = append(all, t.Query().All().Optional())
	}
	return all
}

var (
	begun  = dag.NewType[beginning]("stone/plan")
	passed = dag.NewType[passing]("stone/passed")
)

func newCompiler(p *Plan, app *call.Applicator, opts Options, hidden map[string]bool, depth int) *compiler {
	c := &compiler{
		plan: p, app: app, opts: opts, hidden: hidden, depth: depth,
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
	visits := weight(c.plan.nodes)
	begin := stone.Func0("begin", begun, func(ctx context.Context) (beginning, error) {
		return beginning{c.plan.id, c.plan.digest}, c.meter(ctx).visit(visits)
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
		called := label(n)
		if taken[called] || n.id == "" && n.as == "" {
			called += "-" + strconv.Itoa(i+1)
		}
		for taken[called] {
			called += "'"
		}
		taken[called] = true
		a := c.node(n, called, known, depth)
		c.places[a] = n.at
		// What a fan-out leaves is one thing with what closes it.
		if fan >= 0 {
			steps[fan] = stone.Seq(steps[fan].Name()+" and "+called, steps[fan], a)
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
	on := stone.On(dag.ReaderFunc(holds, append(queries, begun)...), func(holds bool) bool { return holds })
	return stone.Match(name, on, stone.Case(true, a), stone.Case(false, pass))
}

// broken makes the node of an allowed failure where the guard is what failed.
func broken(name string, typ dag.AnyType) stone.Ashlar {
	return stone.New(name+" broken", call.Failed(typ), func(_ context.Context, d dag.DAG) (call.Record, error) {
		f, err := dag.Failure.From(d)
		return call.Record{Failure: string(f.Kind), Error: f.Reason}, err
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
func (c *compiler) leafOptions(r reads) []stone.LeafOption {
	return []stone.LeafOption{stone.Queries(r.queries()...), stone.Version(c.plan.digest)}
}
