package plan

import (
	"slices"
	"strings"

	"github.com/stonelayer/stone/finding"
)

// A scope is the slots that are known at a place of a plan, those of the sequences
// around it included.
type scope struct {
	up    *scope
	slots map[string]*slot
}

// A slot is what is known of one before anything runs.
type slot struct {
	sure  bool
	under [][]string // where it is not sure: the guards that come with it, each list enough
	fails bool       // a call that is allowed to fail: it may not be readable though the call was made
	lanes bool       // gathered from a lane, which may have been lost
	call  bool       // it has a record
	given bool       // from outside
}

func (s *scope) inner() *scope { return s.room(0) }

// room is an inner scope for that many slots.
func (s *scope) room(n int) *scope { return &scope{up: s, slots: make(map[string]*slot, n)} }

func (s *scope) find(name string) *slot {
	for ; s != nil; s = s.up {
		if found := s.slots[name]; found != nil {
			return found
		}
	}
	return nil
}

// define notes a slot, over what there is of that name.
func (s *scope) define(name string, def slot) {
	if before := s.find(name); before != nil && !def.sure {
		def.sure = before.sure
		def.under = slices.Concat(before.under, def.under)
		def.fails = def.fails || before.fails
		def.lanes = def.lanes || before.lanes
		def.call = def.call && before.call
	}
	s.slots[name] = &def
}

// within tells whether the slot is there where these guards hold.
func (s *slot) within(name string, guards []string) bool {
	if s.sure || slices.Contains(guards, isPresent+" "+name) {
		return true
	}
	return slices.ContainsFunc(s.under, func(all []string) bool {
		return !slices.ContainsFunc(all, func(g string) bool { return !slices.Contains(guards, g) })
	})
}

// guarded is what a slot is outside of something with a guard.
func (s slot) guarded(guard string) slot {
	if guard == "" {
		return s
	}
	if s.sure {
		s.sure, s.under = false, [][]string{{guard}}
		return s
	}
	under := make([][]string, len(s.under))
	for i, all := range s.under {
		under[i] = append(slices.Clone(all), guard)
	}
	s.under = under
	return s
}

// leave takes what an inner scope has over into the one around it.
func (s *scope) leave(inner *scope, guard string) {
	for name, def := range inner.slots {
		s.define(name, def.guarded(guard))
	}
}

// either takes over what there is after one of several ways: what all of them have
// is sure.
func (s *scope) either(ways []*scope) {
	all := map[string]*slot{}
	count := map[string]int{}
	for _, way := range ways {
		for name, def := range way.slots {
			count[name]++
			if before := all[name]; before == nil {
				joined := *def
				all[name] = &joined
			} else {
				before.sure = before.sure && def.sure
				before.fails = before.fails || def.fails
				before.lanes = before.lanes || def.lanes
				before.call = before.call && def.call
				before.under = nil
			}
		}
	}
	for name, def := range all {
		if count[name] < len(ways) {
			def.sure, def.under = false, nil
		}
		s.define(name, *def)
	}
}

// A laneSlot is a slot that lanes of a fan-out have.
type laneSlot struct {
	slot
	many bool // several lanes have it: it is the list of what they have
}

// A census is what a plan says of names, wherever that stands.
type census struct {
	definers map[string][]*node
	used     map[string]bool
	names    []string // all that are defined
	texts    []string // the expressions
}

// uses tells whether a slot is read, or may be.
func (c *census) uses(name string) bool {
	return c.used[name] || slices.ContainsFunc(c.texts, func(text string) bool { return strings.Contains(text, name) })
}

// reads tells whether the plan reads a slot, or may.
func (p *Plan) reads(name string) bool {
	c := census{definers: map[string][]*node{}, used: map[string]bool{}}
	c.take(p.nodes)
	return c.uses(name)
}

func (c *census) take(nodes []*node) {
	for _, n := range nodes {
		if n.as != "" {
			if c.definers[n.as] == nil {
				c.names = append(c.names, n.as)
			}
			c.definers[n.as] = append(c.definers[n.as], n)
		}
		for _, t := range []*template{n.value, n.context, n.constraints} {
			t.slots(func(r *slotRef) { c.used[r.name] = true }, func(name string, _ *place) { c.used[name] = true })
		}
		for _, g := range []*guard{n.when, n.until} {
			if g != nil && g.form == expression {
				c.texts = append(c.texts, g.text)
			} else if g != nil {
				c.used[g.name] = true
			}
		}
		for _, b := range n.bodies {
			c.take(b.nodes)
		}
	}
}

// carried calls fn for the nodes whose slots a round of a loop may leave to the
// next one.
func carried(nodes []*node, fn func(*node)) {
	for _, n := range nodes {
		if n.op != "map" {
			fn(n)
		}
		switch n.op {
		case "seq", "loop", "match", "reduce":
			for _, b := range n.bodies {
				carried(b.nodes, fn)
			}
		}
	}
}

// hasEmit tells whether a sequence emits something.
func hasEmit(nodes []*node) bool {
	return slices.ContainsFunc(nodes, func(n *node) bool {
		return n.op == "emit" || slices.ContainsFunc(n.bodies, func(b body) bool { return hasEmit(b.nodes) })
	})
}

// checkNames reports the names that two nodes of one sequence have, and those that are
// not for plans.
func (c *compiler) checkNames(nodes []*node) {
	as, ids := make(map[string]bool, len(nodes)), make(map[string]bool, len(nodes))
	for _, n := range nodes {
		if n.as != "" {
			if reserved(n.as) {
				c.findIn(n, "as", finding.Finding{Type: reservedName, Queried: n.as}, "the name %q is reserved: auth/…, roles/… and stone/… are not for plans", n.as)
			} else if as[n.as] && n.op != "map" {
				c.findIn(n, "as", finding.Finding{Type: "duplicate-name", Queried: n.as}, "another node of the sequence has the name %q: rename one", n.as)
			}
			as[n.as] = as[n.as] || n.op != "map" // whose name is that of the item
		}
		if n.id != "" {
			if ids[n.id] {
				c.findIn(n, "id", finding.Finding{Type: "duplicate-name", Queried: n.id}, "another node of the sequence has the id %q: rename one", n.id)
			}
			ids[n.id] = true
		}
	}
}

// findIn reports something at a field of a node.
func (c *compiler) findIn(n *node, key string, f finding.Finding, format string, args ...any) {
	at := n.at
	if v, ok := at.value.Field(key); ok {
		at = at.field(key, v)
	}
	f.Ashlar = label(n)
	c.find(at, f, format, args...)
}
