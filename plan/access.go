package plan

import (
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/internal/suggest"
)

// This file finds the slots that nodes read, and checks that they are defined.

// test compiles a guard.
func (c *compiler) test(g *guard, n *node, known *scope) *test {
	t := &test{guard: g, reads: reads{}}
	switch g.form {
	case present, failed:
		if reserved(g.name) {
			t.guard = &guard{form: never, at: g.at}
			return t
		}
		if known.find(g.name) == nil && c.closed(g.name) {
			c.unstated(n, g.at, g.name, known)
		}
		c.probe(t.reads, known, g.name)
	case expression:
		program, err := c.expression(g.text)
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

// expression compiles text, the expression of a guard.
func (c *compiler) expression(text string) (call.Expression, error) {
	language, err := kinds.Language(c.app)
	if err != nil {
		return nil, err
	}
	return language.Guard(text, c.visible)
}

// reads returns the accesses to the slots that the given templates of a node read.
func (c *compiler) reads(n *node, known *scope, templates ...*template) reads {
	r := reads{}
	for _, t := range templates {
		t.slots(func(ref *slotRef) { c.read(r, n, known, ref) }, func(name string, at *place) { c.word(r, n, known, name, at) })
		t.formulas(func(text string, at *place) { c.formula(r, n, known, text, at) })
		if t != nil {
			c.misread(n, known, &t.at, n.op == "emit")
		}
	}
	return r
}

// formula compiles text, an expression used as a value, and adds the slots that the expression reads to r.
func (c *compiler) formula(r reads, n *node, known *scope, text string, at *place) {
	program := c.formulas[text]
	if program == nil {
		language, err := kinds.Language(c.app)
		if err == nil {
			program, err = language.Formula(text, c.visible)
		}
		if err != nil {
			c.find(at, stone.Finding{Type: badExpression, Ashlar: label(n)}, "%.200q: %v", text, err)
			return
		}
		c.formulas[text] = program
	}
	for _, name := range program.Variables() {
		c.read(r, n, known, &slotRef{name: name, at: at})
	}
}

// dotted adds a finding if ref has a name such as "x.text", which means a path into a slot in other languages. It returns true if
// so.
func (c *compiler) dotted(n *node, known *scope, ref *slotRef) bool {
	slot, rest, ok := strings.Cut(ref.name, ".")
	if !ok || known.find(slot) == nil {
		return false
	}
	c.find(ref.at, stone.Finding{Type: "missing-producer", Ashlar: label(n), Queried: ref.name},
		"no slot is named %q: write {:slot/id [:%s :%s]} for a part of a slot", ref.name, slot, strings.ReplaceAll(rest, ".", " :"))
	return true
}

// access returns the access in r to the named slot, which all reads of a node share. It creates the access if necessary.
func (c *compiler) access(r reads, name string) *access {
	a := r[name]
	if a == nil {
		a = &access{typ: c.slotType(name)}
		r[name] = a
	}
	return a
}

// probe records in r that a node tests whether the named slot exists.
func (c *compiler) probe(r reads, known *scope, name string) {
	a, def := c.access(r, name), known.find(name)
	a.absent = def == nil && c.hidden[name]
	c.mayFail(a, def)
}

// mayFail records that the slot may have an allowed failure in place of a value, unless that is impossible.
func (c *compiler) mayFail(a *access, def *slot) {
	failed := call.Failed(a.typ)
	if def != nil && def.fails || !c.hidden[failed.Name()] {
		a.failed = failed
	}
}

// word handles a keyword, which refers to the slot with its name if that slot is defined.
func (c *compiler) word(r reads, n *node, known *scope, name string, at *place) {
	if reserved(name) {
		return
	}
	if known.find(name) != nil {
		c.read(r, n, known, &slotRef{name: name, at: at})
		return
	}
	if !c.closed(name) {
		c.probe(r, known, name)
		r[name].loose = true
	}
	if near := suggest.Closest(name, slices.Values(slices.Sorted(known.names()))); near != "" && len(name) > 2 {
		c.find(at, stone.Finding{Type: "missing-producer", Ashlar: label(n), Queried: name, Suggestion: near}, "no slot is named %q: use the name of a slot, or write a text as %[1]q", name)
	}
}

// path checks the path of ref against the schema of the slot, if the slot has one.
func (c *compiler) path(n *node, ref *slotRef) {
	s, ok := c.slotType(ref.name).Schema(), true
	for i, step := range ref.path {
		if s == nil {
			return
		}
		up := s
		if s, ok = up.At(step.String()); !ok {
			c.find(ref.at, stone.Finding{Type: "schema-mismatch", Ashlar: label(n), Queried: ref.name, Suggestion: suggest.Closest(step.String(), slices.Values(up.Properties()))},
				"%s has no %q", &slotRef{name: ref.name, path: ref.path[:i]}, step)
			return
		}
	}
}

// read records that a node needs the slot of ref, and adds a finding if the slot may not be defined.
func (c *compiler) read(r reads, n *node, known *scope, ref *slotRef) {
	if ref.name == "" { // already reported
		r[""] = &access{typ: result}
		return
	}
	a := c.access(r, ref.name)
	def := known.find(ref.name)
	switch {
	case def == nil && c.withheld[ref.name]:
		c.find(ref.at, stone.Finding{Type: "missing-producer", Ashlar: label(n), Queried: ref.name}, "the call did not pass on %q: declare it in the call, or do not read it", ref.name)
		return
	case def == nil && c.closed(ref.name):
		c.unstated(n, ref.at, ref.name, known)
		return
	case reserved(ref.name):
		c.find(ref.at, stone.Finding{Type: "missing-producer", Ashlar: label(n), Queried: ref.name}, "%q is reserved: auth/…, roles/… and stone/… are not for plans", ref.name)
		return
	case def == nil && c.dotted(n, known, ref):
		return
	case def == nil || def.given: // the slot comes from outside the plan; the validator checks it
		if def != nil && !ref.record {
			c.path(n, ref)
		}
		a.needed = def != nil || !slices.Contains(c.guards, isPresent+" "+ref.name)
		c.mayFail(a, def)
		return
	case ref.record && def.call && slices.Contains(c.guards, isFailed+" "+ref.name): // the guard ensures that the record exists
	case !def.within(ref.name, c.guards):
		c.find(ref.at, stone.Finding{Type: "maybe-unavailable", Ashlar: label(n), Queried: ref.name},
			"%q is not defined on every path to this node: read it under {:present? :%[1]s}, or under the guard of the node that defines it", ref.name)
	case ref.record && !def.call:
		c.find(ref.at, stone.Finding{Type: "missing-producer", Ashlar: label(n), Queried: ref.name}, "%q is not a call: it has no record", ref.name)
	case def.fails && !ref.record && !slices.Contains(c.guards, isPresent+" "+ref.name):
		c.find(ref.at, stone.Finding{Type: "maybe-unavailable", Warning: true, Ashlar: label(n), Queried: ref.name},
			"%q cannot be read after an allowed failure: read it under {:present? :%[1]s}", ref.name)
	}
	if def.fails || ref.record {
		c.mayFail(a, def)
	}
	if !ref.record && def.call {
		c.path(n, ref)
	}
	a.needed = a.needed || def.sure && !def.fails && !def.lanes && !ref.record
}
