package plan

import (
	"context"
	"encoding/json"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/schema"
)

// This file handles slots that hold plans to apply, and what they share with slots that hold capabilities; see handles.go.

// meant calls fn for every slot that determines what the node runs, as opposed to its input.
func (n *node) meant(fn func(*slotRef)) {
	for _, ref := range []*slotRef{n.pin, n.program} {
		if ref != nil {
			fn(ref)
		}
	}
	for _, h := range n.candidates {
		if h.slot != nil {
			fn(h.slot)
		}
	}
}

// holds returns the value of a slot that is defined only by a let with a constant value. If the slot's value cannot match the
// schema as, holds adds a finding.
func (c *compiler) holds(n *node, ref *slotRef, known *scope, as *schema.Schema, what string) (value json.RawMessage, ok bool) {
	by, def := c.definers[ref.name], known.find(ref.name)
	if ref.record || len(by) != 1 || def == nil || def.given || !def.sure {
		return nil, false
	}
	wrong := stone.Finding{Type: "schema-mismatch", Ashlar: label(n), Queried: ref.name}
	if by[0].op != "let" || by[0].value.constant == nil {
		if at, ok := c.slotType(ref.name).Schema().At(fieldsOf(ref)...); ok {
			if problems := schema.Compatible(at, as); len(problems) > 0 {
				c.find(ref.at, wrong, "%s is no %s: %s", ref, what, problems[0])
			}
		}
		return nil, false
	}
	value, ok = walk(by[0].value.constant, ref.path)
	if ok && as.Validate(context.Background(), value) != nil {
		c.find(ref.at, wrong, "%s is no %s", ref, what)
		return nil, false
	}
	return value, ok
}

// readApply reads a node that applies a plan.
func (r *reading) readApply(n *node, f fields) {
	f.Need("plan")
	if at := f.place("plan"); at != nil {
		if key := slotKey(at.value); key != "" {
			n.program = r.slot(at, key)
		} else {
			r.find(at, stone.Finding{Type: badValue}, "expected the slot of a plan, as {:slot/id :x}; write the nodes of a known plan in a seq")
		}
	}
	n.value = r.field(f, "input", false)
	readOutput(f.Map, n)
	f.At("dispatch").Map(func(m *form.Map) { m.At("allow-failure?").Bool(&n.spec.Dispatch.AllowFailure) })
	form.Into(f.Map, &n.spec, "done", "budget", "effects")
	f.At("as").Name(&n.as)
}

// planSchema is the schema of a slot that holds a plan: its text, or its data.
var planSchema = mustParse(`{"anyOf": [{"type": "string"}, {"type": "object", "required": ["nodes"]}]}`)

func mustParse(text string) *schema.Schema {
	s, err := schema.Parse([]byte(text))
	if err != nil {
		panic(err)
	}
	return s
}

// applied returns the reader for the input of the tool that applies plans. If the plan is constant, applied reads it immediately,
// and adds findings for faults in its form.
func (c *compiler) applied(n *node, r reads, known *scope) dag.Reader[any] {
	if n.program == nil { // already reported
		return nil
	}
	if value, ok := c.holds(n, n.program, known, planSchema, "plan: want its text, or a map with nodes"); ok {
		for _, f := range formOf(value, c.opts.Limits.nodes()) {
			c.find(n.program.at, stone.Finding{Type: f.Type, Ashlar: label(n), Queried: f.Queried, Suggestion: f.Suggestion}, "the plan in %s: %s", n.program, f)
		}
	}
	read := dag.ReaderFunc(func(d dag.DAG) (any, error) {
		program, err := view{r, d, nil}.slot(n.program)
		if err != nil {
			return nil, err
		}
		bindings, err := c.render(n.value, r, d)
		if err != nil {
			return nil, err
		}
		data, err := canon.Append(nil, map[string]json.RawMessage{"plan": program, "bindings": bindings})
		return json.RawMessage(data), err
	}, r.queries()...)
	return versioned[any]{read, versionOf(n.program, n.value)}
}

// formOf returns the findings about the form of the plan in value.
func formOf(value json.RawMessage, most int) stone.Findings {
	text := []byte(value)
	if s := ""; json.Unmarshal(value, &s) == nil {
		text = []byte(s)
	}
	p, err := read(text, most)
	if err != nil {
		return asInvalid(err)
	}
	return p.faults
}
