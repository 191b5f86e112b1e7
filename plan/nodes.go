package plan

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/schema"
)

// This file compiles the nodes of every op except fan-outs, for which see lanes.go.

func (c *compiler) let(n *node, name string, known *scope) stone.Ashlar {
	r := c.reads(n, known, n.value)
	c.define(n, known, slot{sure: true})
	typ, ok := c.typeOf(n).(dag.Type[json.RawMessage])
	if !ok {
		typ = open(n.as)
	}
	return stone.New(name, typ, func(_ context.Context, d dag.DAG) (json.RawMessage, error) {
		return c.render(n.value, r, d)
	}, c.leafOptions(n, r)...)
}

// render returns the value of a node's template, or an error if it exceeds a limit of the plan.
func (c *compiler) render(t *template, r reads, d dag.DAG) (json.RawMessage, error) {
	value, err := t.render(view{r, d, c.formulas}, or(c.opts.Limits.NodeBytes, defaultNodeBytes))
	if err != nil {
		return nil, err
	}
	return value, c.meter(d.Context()).take(len(value))
}

func (c *compiler) emit(n *node, name string, known *scope) stone.Ashlar {
	r := c.reads(n, known, n.value)
	return stone.New(name, Emission, func(_ context.Context, d dag.DAG) (json.RawMessage, error) {
		return c.render(n.value, r, d)
	}, append(c.leafOptions(n, r), stone.Detail{Value: emission{c, n.value}})...)
}

// An emission is the Detail of an emit. It is a kinds.Emitter.
type emission struct {
	*compiler
	value *template
}

// Emits returns the known schemas of the emission and its fields, by path.
func (e emission) Emits() map[string]*schema.Schema {
	all := map[string]*schema.Schema{}
	e.shape(all, "", e.value)
	return all
}

func (c *compiler) shape(all map[string]*schema.Schema, path string, t *template) {
	switch {
	case t.slot != nil && !t.slot.record:
		var names []string
		for _, s := range t.slot.path {
			names = append(names, s.String())
		}
		all[path], _ = c.slotType(t.slot.name).Schema().At(names...)
	case t.word != "" && c.definers[t.word] != nil:
		all[path] = c.slotType(t.word).Schema()
	case len(t.fields) > 0:
		properties := map[string]any{}
		for _, f := range t.fields {
			properties[f.name] = true
			c.shape(all, path+"."+f.name, f.value)
		}
		text, err := json.Marshal(map[string]any{"type": "object", "properties": properties, "additionalProperties": false})
		if err == nil {
			all[path], _ = schema.Parse(text) // a schema of field names is always valid
		}
	}
}

func (c *compiler) call(n *node, name string, known *scope, depth int) stone.Ashlar {
	r := c.reads(n, known, n.value, n.context, n.constraints)
	n.meant(func(ref *slotRef) { c.read(r, n, known, ref) })
	c.takes(n)
	fails := n.spec.Dispatch.AllowFailure
	spec := n.spec
	spec.Applicator = c.appAt(depth)
	c.candidates(n, &spec, r, known)
	c.define(n, known, slot{sure: true, fails: fails, call: true})
	spec.Input = c.part(r, n.value)
	if n.op == "apply" {
		spec.Tool, spec.Input = call.Apply, c.applied(n, r, known)
	}
	spec.Context, spec.Constraints = c.part(r, n.context), c.part(r, n.constraints)
	return call.New(name, c.typeOf(n), spec)
}

// part returns a reader for the value of t, or nil if t is nil.
func (c *compiler) part(r reads, t *template) dag.Reader[any] {
	if t == nil {
		return nil
	}
	return versioned[any]{dag.ReaderFunc(func(d dag.DAG) (any, error) { return c.render(t, r, d) }, r.queries()...), versionOf(t)}
}

// appAt returns the applicator for calls at the given depth of the plan. A plan that such a call returns is nested one level
// deeper.
func (c *compiler) appAt(depth int) *call.Applicator {
	if c.apps[depth] != nil || c.app == nil {
		return c.apps[depth]
	}
	app := *c.app
	if _, other := app.Plans.(planner); app.Plans == nil || other {
		app.Plans = planner{opts: c.opts, depth: c.depth + depth, within: c}
	}
	c.apps[depth] = &app
	return &app
}

// readable returns the names of the slots that the plan reads or defines, and of Options.Slots. Plans that its calls return can
// read these slots, too.
func (c *compiler) readable() map[string]bool {
	all := maps.Clone(c.used)
	for _, name := range c.visible {
		all[name] = true
	}
	return all
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
		carried(bodyOf(n), func(b *node) { // the slot may remain from an earlier round
			if known.find(b.as) == nil {
				c.define(b, inside, slot{call: b.asks()})
			}
		})
	}
	round := inside.inner()
	a := c.sequence("body", bodyOf(n), round, depth+1).Glue()
	if n.until == nil || n.max < 1 { // already reported as a fault of the form
		return a
	}
	c.fanned = false
	t := c.test(n.until, n, round)
	c.neverHolds(n, t)
	known.leave(round, "")
	visits := weight(bodyOf(n))
	holds := func(d dag.DAG) (bool, error) {
		if err := c.visit(d, visits); err != nil {
			return false, err
		}
		return t.holds(d)
	}
	return stone.Loop(name, a, versioned[bool]{dag.ReaderFunc(holds, t.reads.queries()...), versionOf(n.until)}, n.max)
}

// neverHolds adds a warning if the condition of a loop can never hold, because such a loop always fails after its last round.
func (c *compiler) neverHolds(n *node, t *test) {
	never := n.until.form == never
	if t.form == expression && len(t.program.Variables()) == 0 {
		holds, err := isTrue(context.Background(), t.program, nil)
		never = err == nil && !holds
	}
	if never {
		c.find(n.until.at, stone.Finding{Type: "guard-never-holds", Ashlar: label(n), Warning: true},
			"the condition of the loop never holds, so the loop fails after %d rounds: set a condition that can hold", n.max)
	}
}

func (c *compiler) match(n *node, name string, known *scope, depth int) stone.Ashlar {
	r := c.reads(n, known, n.value)
	c.unreachable(n, known)
	var cases []stone.Branch
	var ways []*scope
	visits := map[string]int{}
	pending := map[string]laneSlot{}
	fanned := false
	for _, b := range n.bodies {
		c.pending, c.fanned = nil, false
		inside := known.inner()
		a := c.sequence(cmp.Or(b.key, "empty"), b.nodes, inside, depth+1).Glue()
		c.places[a] = b.at
		cases = append(cases, stone.Case(b.key, a))
		visits[b.key] = weight(b.nodes)
		ways = append(ways, inside)
		for slot, l := range c.pending {
			pending[slot] = l
		}
		fanned = fanned || c.fanned
	}
	c.pending, c.fanned = pending, fanned
	known.either(ways)
	on := dag.ReaderFunc(func(d dag.DAG) (string, error) {
		value, err := c.render(n.value, r, d)
		if err != nil {
			return "", err
		}
		key, err := selector(value)
		if err != nil {
			return "", err
		}
		return key, c.visit(d, visits[key])
	}, append(r.queries(), start)...)
	return stone.Match(name, stone.On(versioned[string]{on, versionOf(n.value)}, func(key string) string { return key }), cases...)
}

// selector returns the text that is compared with the keys of branches: value itself if it is a string, otherwise its canonical
// JSON.
func selector(value json.RawMessage) (string, error) {
	var text string
	if json.Unmarshal(value, &text) == nil && string(value) != "null" {
		return text, nil
	}
	canonical, err := canon.AppendJSON(nil, value)
	return string(canonical), err
}

// fieldsOf returns the path of ref in the form that package schema expects.
func fieldsOf(ref *slotRef) (path []string) {
	for _, s := range ref.path {
		path = append(path, s.String())
	}
	return path
}

// unreachable adds a finding for each branch that no value of the slot selects. It requires that the slot's schema is a closed list
// of values.
func (c *compiler) unreachable(n *node, known *scope) {
	ref := n.value
	if ref == nil || ref.slot == nil || ref.slot.record || known.find(ref.slot.name) == nil || len(c.definers[ref.slot.name]) != 1 {
		return
	}
	at, ok := c.slotType(ref.slot.name).Schema().At(fieldsOf(ref.slot)...)
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
	opts := []stone.AskOption{stone.Version(versionOf(n.value))}
	if c.answers { // only a user's own plan may ask its user
		opts = append(opts, stone.Effects(effect.Ask))
	}
	if n.choices != nil {
		opts = append(opts, stone.Choices(n.choices...))
	}
	typ, ok := c.typeOf(n).(dag.Type[stone.Answer])
	if !ok {
		typ = dag.NewType[stone.Answer](cmp.Or(n.as, "answer"))
	}
	text := dag.ReaderFunc(func(d dag.DAG) (string, error) {
		value, err := c.render(n.value, r, d)
		if err != nil {
			return "", err
		}
		return selector(value)
	}, r.queries()...)
	return stone.Ask(name, text, typ, func(text string) string { return text }, opts...)
}
