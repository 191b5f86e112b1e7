package plan

import (
	"iter"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
)

// A scope contains the slots known at a place in a plan. Through up, it includes the slots known in the enclosing sequences.
type scope struct {
	up    *scope
	slots map[string]*slot
}

// A slot describes what is known about a slot before a run.
type slot struct {
	sure  bool
	under [][]string // lists of guards; if not sure, the slot is defined if all guards of one list hold
	fails bool       // a call that may fail defines the slot, so it may have no value
	lanes bool       // the value comes from a lane, which may be lost
	call  bool       // the slot has a record
	given bool       // the slot comes from outside the plan
}

func (s *scope) inner() *scope { return s.room(0) }

// room returns a scope within s, with capacity for n slots.
func (s *scope) room(n int) *scope { return &scope{up: s, slots: make(map[string]*slot, n)} }

func (s *scope) find(name string) *slot {
	for ; s != nil; s = s.up {
		if found := s.slots[name]; found != nil {
			return found
		}
	}
	return nil
}

// names yields the names of all slots in s and the scopes around it, innermost first.
func (s *scope) names() iter.Seq[string] {
	return func(yield func(string) bool) {
		for ; s != nil; s = s.up {
			for name := range s.slots {
				if !yield(name) {
					return
				}
			}
		}
	}
}

// define adds a slot to the scope. If the slot is not sure and is already defined, the two definitions are merged.
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

// within reports whether the slot is certain to be defined if all of the guards hold.
func (s *slot) within(name string, guards []string) bool {
	if s.sure || slices.Contains(guards, isPresent+" "+name) {
		return true
	}
	return slices.ContainsFunc(s.under, func(all []string) bool {
		return !slices.ContainsFunc(all, func(g string) bool { return !slices.Contains(guards, g) })
	})
}

// guarded returns the slot as it is known after a node with the given guard.
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

// leave adds the slots of inner to s, as known after a node with the given guard.
func (s *scope) leave(inner *scope, guard string) {
	for name, def := range inner.slots {
		s.define(name, def.guarded(guard))
	}
}

// either adds the slots of several branches to s. A slot is sure only if it is sure in all branches.
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

// A laneSlot is a slot that one or more lanes of a fan-out define.
type laneSlot struct {
	slot
	many bool // several lanes define the slot, so its value is a list of their values
}

// A census contains the names that a plan uses, at any depth.
type census struct {
	definers map[string][]*node
	used     map[string]bool
	names    []string // names of all slots that the plan defines
	texts    []string // texts of all expressions
}

// uses reports whether the plan may read the slot name.
func (c *census) uses(name string) bool {
	return c.used[name] || slices.ContainsFunc(c.texts, func(text string) bool { return strings.Contains(text, name) })
}

// reads reports whether the plan may read the slot name.
func (p *Plan) reads(name string) bool {
	c := census{definers: map[string][]*node{}, used: map[string]bool{}}
	c.take(p.nodes)
	return c.uses(name)
}

func (c *census) take(nodes []*node) {
	for _, n := range nodes {
		n.meant(func(r *slotRef) { c.used[r.name] = true })
		if n.as != "" {
			if c.definers[n.as] == nil {
				c.names = append(c.names, n.as)
			}
			c.definers[n.as] = append(c.definers[n.as], n)
		}
		for _, t := range []*template{n.value, n.context, n.constraints} {
			t.slots(func(r *slotRef) { c.used[r.name] = true }, func(name string, _ *place) { c.used[name] = true })
			t.formulas(func(text string, _ *place) { c.texts = append(c.texts, text) })
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

// carried calls fn for each node whose slot may remain from one round of a loop to the next.
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

// hasEmit reports whether a sequence contains an emit.
func hasEmit(nodes []*node) bool {
	return slices.ContainsFunc(nodes, func(n *node) bool {
		return n.op == "emit" || slices.ContainsFunc(n.bodies, func(b body) bool { return hasEmit(b.nodes) })
	})
}

// checkNames adds findings for names that two nodes of a sequence share, and for reserved names.
func (c *compiler) checkNames(nodes []*node) {
	as, ids := make(map[string]bool, len(nodes)), make(map[string]bool, len(nodes))
	for _, n := range nodes {
		if n.as != "" {
			if reserved(n.as) {
				c.findIn(n, "as", stone.Finding{Type: reservedName, Queried: n.as}, "the name %q is reserved: auth/…, roles/… and stone/… are not for plans", n.as)
			} else if as[n.as] && n.op != "map" {
				c.findIn(n, "as", stone.Finding{Type: "duplicate-name", Queried: n.as}, "another node of the sequence has the name %q: rename one", n.as)
			}
			as[n.as] = as[n.as] || n.op != "map" // the "as" of a map names the item, not the node
		}
		if n.id != "" {
			if ids[n.id] {
				c.findIn(n, "id", stone.Finding{Type: "duplicate-name", Queried: n.id}, "another node of the sequence has the id %q: rename one", n.id)
			}
			ids[n.id] = true
		}
	}
}

// findIn adds a finding at the field key of n or, if that is not set, at n itself.
func (c *compiler) findIn(n *node, key string, f stone.Finding, format string, args ...any) {
	at := n.at
	if v, ok := at.value.Field(key); ok {
		at = at.field(key, v)
	}
	f.Ashlar = label(n)
	c.find(at, f, format, args...)
}
