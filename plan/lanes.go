package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/kind"
)

// This file compiles fan-outs and reduces. Within and after a reduce, the slots of lanes are read like any others.

func (c *compiler) mapOver(n *node, name string, known *scope, depth int) stone.Ashlar {
	r := c.reads(n, known, n.value)
	lane := known.inner()
	c.define(n, lane, slot{sure: true})
	inside := lane.inner()
	a := c.sequence("body", bodyOf(n), inside, depth+1).Glue()
	visits := weight(bodyOf(n))
	c.open(n, []*scope{inside}, true)
	item, ok := c.typeOf(n).(dag.Type[json.RawMessage])
	if !ok {
		item = open(n.as)
	}
	over := dag.ReaderFunc(func(d dag.DAG) ([]json.RawMessage, error) {
		value, err := c.render(n.value, r, d)
		if err != nil {
			return nil, err
		}
		items, err := list(value)
		if err != nil {
			return nil, err
		}
		if len(items) == 0 && !n.loss.allowEmpty {
			return nil, stone.Fail(kind.MapEmpty, "the list to map over is empty: to allow this, add allow-empty")
		}
		return items, c.visit(d, len(items)*max(visits, 1))
	}, r.queries()...)
	return stone.Map(name, versioned[[]json.RawMessage]{over, versionOf(n.value)}, item, a, n.loss.options()...)
}

func (l loss) options() (opts []stone.FanOption) {
	if l.all {
		opts = append(opts, stone.AllLanes())
	}
	if l.quorum > 0 {
		opts = append(opts, stone.Quorum(l.quorum))
	}
	if l.allowEmpty {
		opts = append(opts, stone.AllowEmpty())
	}
	return opts
}

func (c *compiler) parallel(n *node, name string, known *scope, depth int) stone.Ashlar {
	lanes := make([]stone.FanPart, len(n.bodies))
	scopes := make([]*scope, len(n.bodies))
	for i, b := range n.bodies {
		c.pending, c.fanned = nil, false
		scopes[i] = known.inner()
		lane := c.sequence(fmt.Sprintf("lane-%d", i+1), b.nodes, scopes[i], depth+1).Glue()
		lanes[i], c.places[lane] = lane, b.at
	}
	c.open(n, scopes, false)
	for _, o := range n.loss.options() {
		lanes = append(lanes, o)
	}
	return stone.Parallel(name, lanes...)
}

// open stores in c.pending the slots that the lanes of a fan-out define.
func (c *compiler) open(n *node, lanes []*scope, many bool) {
	c.pending, c.fanned = map[string]laneSlot{}, true
	for _, lane := range lanes {
		for name, def := range lane.slots {
			before, known := c.pending[name]
			l := laneSlot{slot: *def, many: many || known}
			l.call = l.call && !l.many
			l.fails = l.fails || known && before.fails
			c.pending[name] = l
		}
	}
	if slices.ContainsFunc(n.bodies, func(b body) bool { return hasEmit(b.nodes) }) {
		c.pending[terms.Emit] = laneSlot{}
	}
}

// reduce compiles a reduce: first the steps that gather the slots of the lanes, then its body. If t is not nil, the body runs only
// if the test holds.
func (c *compiler) reduce(n *node, name string, known, inside *scope, depth int, t *test) stone.Ashlar {
	pending := c.pending
	c.pending, c.fanned = nil, false
	var steps []stone.Ashlar
	for _, slot := range slices.Sorted(maps.Keys(pending)) {
		if slot == terms.Emit || c.uses(slot) {
			steps = append(steps, c.gather(slot, pending[slot], known)...)
		}
	}
	within := inside.inner()
	body := c.sequence("body", bodyOf(n), within, depth+1).Glue()
	inside.leave(within, "")
	if t != nil {
		c.guards = c.guards[:len(c.guards)-1]
		known.leave(inside, n.when.String())
		body = c.guarded(n, "body", body, t)
	}
	return stone.Reduce(stone.Seq(name, append(steps, body)...))
}

// gather returns the steps that define the slot name after a fan-out. Its value is the value in the one lane that defines it, or
// the list of the values in all lanes.
func (c *compiler) gather(name string, l laneSlot, known *scope) []stone.Ashlar {
	if name == terms.Emit {
		read := []dag.Querier{Emission.Query().Lanes().Optional()}
		last := func(d dag.DAG) *dag.Node { return lastOf(inLanes(d, name)) }
		return []stone.Ashlar{c.copied("emission", Emission, last, read)}
	}
	typ := c.slotType(name)
	failed := call.Failed(typ)
	read := []dag.Querier{typ.Query().Lanes().Optional(), failed.Query().Lanes().Optional()}
	if l.many {
		known.define(name, slot{sure: true})
		return []stone.Ashlar{stone.Leaf(name, typ, func(_ context.Context, d dag.DAG) (*dag.Node, error) {
			values := []json.RawMessage{}
			for _, n := range inLanes(d, name, failed.Name()) {
				if n.Type() == name {
					values = append(values, json.RawMessage(n.JSON()))
				}
			}
			return dag.NewNode(dag.Spec{Type: name, Content: values, Parents: d.Next()})
		}, stone.Queries(read...)).Glue()}
	}
	l.lanes = true
	known.define(name, l.slot)
	one := func(want string) func(dag.DAG) *dag.Node {
		return func(d dag.DAG) *dag.Node {
			if n := lastOf(inLanes(d, name, failed.Name())); n != nil && n.Type() == want {
				return n
			}
			return nil
		}
	}
	steps := []stone.Ashlar{c.copied(name, typ, one(name), read)}
	if l.fails {
		steps = append(steps, c.copied(name+" failed", failed, one(failed.Name()), read))
	}
	return steps
}

// copied returns a step that writes a copy, including the meta, of the node that find returns. If find returns nil, nothing is
// written.
func (c *compiler) copied(name string, typ dag.AnyType, find func(dag.DAG) *dag.Node, read []dag.Querier) stone.Ashlar {
	leaf := stone.Leaf(name, typ, func(_ context.Context, d dag.DAG) (*dag.Node, error) {
		n := find(d)
		if n == nil {
			return nil, stone.Fail(kind.MissingInput, "no lane has %q", typ.Name())
		}
		return dag.NewNode(dag.Spec{Type: typ.Name(), Content: n.Content(), Parents: d.Next(), Meta: n.Meta()})
	}, stone.Queries(read...)).Glue()
	return c.perhaps(name+"?", "", leaf, func(d dag.DAG) (bool, error) { return find(d) != nil, nil }, read)
}

func lastOf(nodes []*dag.Node) *dag.Node {
	if len(nodes) == 0 {
		return nil
	}
	return nodes[len(nodes)-1]
}

// inLanes returns, from every surviving lane in lane order, the nearest node that has one of the types, if there is one. If the
// fan-out was skipped, inLanes returns no nodes.
func inLanes(d dag.DAG, types ...string) []*dag.Node {
	nodes, _ := d.Lanes(types...)
	return slices.DeleteFunc(nodes, func(n *dag.Node) bool { return n == nil })
}

// list returns the items in value, the list that a map ranges over.
func list(value json.RawMessage) ([]json.RawMessage, error) {
	items := []json.RawMessage{}
	if len(value) == 0 || value[0] != '[' || json.Unmarshal(value, &items) != nil {
		return nil, stone.Fail(kind.BadContent, "expected a list to map over, found %.40s", value)
	}
	return items, nil
}
