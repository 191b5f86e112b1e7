package plan

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/schema"
)

// compiler compiles a plan to an ashlar and reports its faults.
type compiler struct {
	report
	census
	plan  *Plan
	app   *call.Applicator
	opts  Options
	depth int // nesting depth of the calls around the plan

	types   map[string]dag.AnyType
	hidden  map[string]bool           // types with nodes only in lanes, where slots are not looked up
	visible []string                  // names of the slots that expressions may use
	given   map[string]*schema.Schema // schemas of the declared inputs; a nil schema allows any value

	answers  bool            // a capability returned the plan
	withheld map[string]bool // types that the call does not pass on to a returned plan
	guards   []string        // guards that hold at the current node
	apps     map[int]*call.Applicator
	formulas map[string]call.Expression // expressions in values, by their text
	pending  map[string]laneSlot        // slots of a fan-out whose reduce follows
	fanned   bool                       // whether pending is set
	places   map[stone.Ashlar]*place
	ashlar   stone.Ashlar // zero if the plan is too large to check
}

// result is the type of nodes without a name.
var result = dag.NewType[json.RawMessage]("stone/result")

// A beginning is the content of the node that identifies the plan when it starts. The plan's digest is in the node's meta, not in
// its content, so it does not change the node's ID. Therefore an edited plan can continue a run, and a fork of the run reuses
// unchanged nodes.
type beginning struct {
	ID string `json:"id,omitempty"`
}

// A passing is the content of a node that records a guard that did not hold.
type passing struct {
	Node string `json:"node"`
}

var (
	start  = dag.NewType[beginning]("stone/plan")
	passed = dag.NewType[passing]("stone/passed")
)

func newCompiler(p *Plan, app *call.Applicator, opts Options, hidden map[string]bool, depth int) *compiler {
	c := &compiler{
		plan: p, app: app, opts: opts, hidden: hidden, depth: depth,
		census: census{definers: make(map[string][]*node, p.size), used: make(map[string]bool, p.size)},
		types:  make(map[string]dag.AnyType, p.size), apps: map[int]*call.Applicator{}, formulas: map[string]call.Expression{}, places: make(map[stone.Ashlar]*place, p.size),
	}
	c.findings = slices.Clone(p.faults)
	c.take(p.nodes)
	c.visible = append(slices.Clone(opts.Slots), c.names...)
	return c
}

// compile sets c.ashlar. The ashlar may be used only if c.findings contains no errors.
func (c *compiler) compile() {
	if !c.measure() {
		return
	}
	known := (&scope{}).room(c.plan.size)
	c.inputs(known)
	for _, name := range c.opts.Slots {
		if !reserved(name) && !c.closed(name) {
			known.define(name, slot{sure: true, call: true, given: true})
		}
	}
	visits := weight(c.plan.nodes)
	begin := stone.Leaf("begin", start, func(ctx context.Context, d dag.DAG) (*dag.Node, error) {
		if err := c.meter(ctx).visit(visits); err != nil {
			return nil, err
		}
		return dag.NewNode(dag.Spec{Type: start.Name(), Content: beginning{c.plan.id}, Parents: d.Next(), Meta: map[string]string{"digest": c.plan.digest}})
	}).Glue()
	c.ashlar = c.sequence(cmp.Or(c.plan.id, "plan"), c.plan.nodes, known, 1, begin)
	if len(c.plan.nodes) > 0 && !hasEmit(c.plan.nodes) {
		c.add(stone.Finding{Type: "nothing-emitted", Warning: true, Ashlar: "plan", Path: "nodes", Message: "the plan emits nothing, so its result is null: end it with {:op :emit :input {…}}"})
	}
}

// label returns the first of a node's id, as and op that is not empty.
func label(n *node) string { return cmp.Or(n.id, n.as, n.op) }

// sequence compiles nodes that run in order. The given steps run first.
func (c *compiler) sequence(name string, nodes []*node, known *scope, depth int, steps ...stone.Ashlar) stone.Ashlar {
	c.checkNames(nodes)
	taken := make(map[string]bool, len(nodes)+1)
	taken["begin"] = len(steps) > 0
	steps = slices.Grow(steps, len(nodes))
	fan := -1 // step index of a fan-out whose reduce follows
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
		// A fan-out and its reduce are one step.
		if fan >= 0 {
			steps[fan] = stone.Seq(steps[fan].Name()+" and "+called, steps[fan], a).Glue()
		} else {
			steps = append(steps, a)
		}
		if fan = -1; c.fanned {
			fan = len(steps) - 1
		}
	}
	return c.inMode(name, steps)
}

// inMode returns the composition of the steps that the plan's mode requires.
func (c *compiler) inMode(name string, steps []stone.Ashlar) stone.Ashlar {
	switch {
	case c.opts.Mode == Strict || len(steps) < 2:
		return stone.Seq(name, steps...)
	case c.opts.Mode == Lazy:
		return stone.Seq(name, batches(steps)...)
	}
	return stone.Flow(name, steps...)
}

// batches groups consecutive steps into batches, each as long as possible, such that no step waits for another step of its batch.
func batches(steps []stone.Ashlar) []stone.Ashlar {
	var out, batch []stone.Ashlar
	written := map[string]bool{}
	flush := func() {
		if len(batch) > 0 {
			out = append(out, stone.Flow(fmt.Sprintf("batch-%d", len(out)+1), batch...).Glue())
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
		// The lanes are joined whether or not the body runs.
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

// guarded returns an ashlar that runs a only if the test holds.
func (c *compiler) guarded(n *node, name string, a stone.Ashlar, t *test) stone.Ashlar {
	c.places[a] = n.at
	g := c.perhaps(name+"?", versionOf(n.when), a, t.holds, t.reads.queries())
	if t.form != expression || !n.spec.Dispatch.AllowFailure {
		return g
	}
	c.places[g] = n.at
	return stone.Rescue(name+" guarded", g, broken(name, c.typeOf(n))).Glue()
}

// perhaps returns an ashlar that runs a if holds returns true, and otherwise writes a node saying that a was skipped.
func (c *compiler) perhaps(name, version string, a stone.Ashlar, holds func(dag.DAG) (bool, error), queries []dag.Querier) stone.Ashlar {
	pass := stone.Func0("pass "+a.Name(), passed, func(context.Context) (passing, error) { return passing{a.Name()}, nil }).Glue()
	// Every plan starts with this node, so a flow need not wait to know whether the DAG is empty.
	read := versioned[bool]{dag.ReaderFunc(holds, append(queries, start)...), version}
	on := stone.On(read, func(holds bool) bool { return holds })
	return stone.Match(name, on, stone.Case(true, a), stone.Case(false, pass)).Glue()
}

// broken returns a leaf that writes the node of an allowed failure, for a guard whose evaluation failed.
func broken(name string, typ dag.AnyType) stone.Ashlar {
	return stone.New(name+" broken", call.Failed(typ), func(_ context.Context, d dag.DAG) (call.Record, error) {
		f, err := dag.Failure.From(d)
		return call.Record{Failure: string(f.Kind), Error: f.Reason}, err
	}, stone.Queries(dag.Failure)).Glue()
}

// inner compiles a node without its guard.
func (c *compiler) inner(n *node, name string, known *scope, depth int) stone.Ashlar {
	if n.op != "reduce" {
		c.pending, c.fanned = nil, false
	}
	switch n.op {
	case "let":
		return c.let(n, name, known)
	case "apply", "call", "tool":
		return c.call(n, name, known, depth)
	case "emit":
		return c.emit(n, name, known)
	case "seq":
		inside := known.inner()
		a := c.sequence(name, bodyOf(n), inside, depth+1)
		known.leave(inside, "")
		return a
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
	// An unknown op, which has already been reported.
	c.define(n, known, slot{sure: true, call: true, fails: true})
	return stone.New(name, result, unknown)
}

func unknown(context.Context, dag.DAG) (json.RawMessage, error) {
	return nil, stone.Fail(unknownOp, "the node has no known op")
}

// typeOf returns the node type that n produces.
func (c *compiler) typeOf(n *node) dag.AnyType {
	if n.as == "" || reserved(n.as) {
		return result
	}
	return c.slotType(n.as)
}

// slotType returns the node type of a slot. If exactly one call defines the slot, the type has the schema of that call.
func (c *compiler) slotType(name string) dag.AnyType {
	if t := c.types[name]; t != nil {
		return t
	}
	var t dag.AnyType
	switch by := c.definers[name]; {
	case len(by) == 0 && c.given[name] != nil:
		t = open(name).WithSchema(c.given[name])
	case len(by) == 1 && by[0].op == "ask":
		t = dag.NewType[stone.Answer](name)
	case len(by) == 1 && (by[0].op == "call" || by[0].op == "apply"):
		t = open(name).WithSchema(c.schemaOf(by[0]))
	default:
		t = open(name)
	}
	c.types[name] = t
	return t
}

func open(name string) dag.Type[json.RawMessage] { return dag.NewType[json.RawMessage](name) }

// schemaOf returns the schema of a call's answer, or nil if the answer may be any value.
func (c *compiler) schemaOf(n *node) *schema.Schema {
	if c.app == nil {
		return nil
	}
	name := n.spec.Requires.OutSchema
	if name == "" && n.op == "call" {
		name = c.app.Intents[n.spec.Intent].Out
	}
	// Built-in schemas are not used, because they are too general to check a reader in Go.
	return c.app.Schemas[name]
}

// define adds def to the scope, as the slot that n defines.
func (c *compiler) define(n *node, known *scope, def slot) {
	if n.as != "" && !reserved(n.as) {
		known.define(n.as, def)
	}
}

// leafOptions returns the options of a leaf that computes a value.
func (c *compiler) leafOptions(n *node, r reads) []stone.LeafOption {
	return []stone.LeafOption{stone.Queries(r.queries()...), stone.Version(versionOf(n.value)), stone.Effects()}
}

// versioned is a reader with a version of its computation. Packages stone and call use the version.
type versioned[T any] struct {
	dag.Reader[T]
	version string
}

func (v versioned[T]) Version() string { return v.version }

// versionOf returns the canonical text for parts of a plan, or its digest if the text is long. The ashlar's fingerprint covers
// everything else about a node.
func versionOf(parts ...any) string {
	w := &printer{}
	for i, part := range parts {
		if i > 0 {
			w.text = append(w.text, ' ')
		}
		switch part := part.(type) {
		case *guard:
			w.text = append(w.text, part.String()...)
		case *slotRef:
			w.slot(part)
		case *template:
			if part != nil { // the part is missing from the plan, which is a fault
				w.template(part, true)
			}
		}
	}
	if len(w.text) > 120 {
		sum := sha256.Sum256(w.text)
		return hex.EncodeToString(sum[:])
	}
	return string(w.text)
}
