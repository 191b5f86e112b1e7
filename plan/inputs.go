package plan

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/schema"
)

// This file implements :inputs, the declaration of a plan's inputs. A plan with such a declaration cannot read other slots from
// outside.

// An input is a slot that a plan declares as an input.
type input struct {
	name   string
	of     *template // the declaration: a schema, or the name of a schema
	schema *schema.Schema
	named  string // the name of a schema that the applicator has
}

// readInputs reads the declared inputs of a plan, and returns them sorted by name.
func (r *reading) readInputs(at *place) []input {
	if kind := at.value.Kind(); kind != edn.KindMap {
		r.find(at, stone.Finding{Type: badValue}, "expected a map with a schema for each input, found a %s", kind)
		return nil
	}
	var inputs []input
	for k, v := range at.value.Entries() {
		name, ok := k.Name()
		if !ok {
			name, ok = k.Text(), k.IsJSON()
		}
		in := input{name: name, of: r.template(*at.field(name, v), false)}
		switch {
		case !ok || name == "":
			r.find(at, stone.Finding{Type: badValue}, "expected names of slots as keys, such as :text")
			continue
		case reserved(name):
			r.find(&in.of.at, stone.Finding{Type: reservedName, Queried: name}, "the name %q is reserved: auth/…, roles/… and stone/… are not for plans", name)
			continue
		}
		r.readSchema(&in)
		inputs = append(inputs, in)
	}
	slices.SortFunc(inputs, func(a, b input) int { return strings.Compare(a.name, b.name) })
	return inputs
}

// readSchema reads an input's schema: either a JSON Schema as data, or the name of a schema that the applicator has.
func (r *reading) readSchema(in *input) {
	raw := in.of.constant
	if raw == nil {
		r.find(&in.of.at, stone.Finding{Type: badValue}, "expected a schema, which has no slots")
		return
	}
	if json.Unmarshal(raw, &in.named) == nil {
		return
	}
	var err error
	if in.schema, err = schema.Parse(raw); err != nil {
		r.find(&in.of.at, stone.Finding{Type: badValue}, "expected the name of a schema, or a JSON Schema: %v", err)
	}
}

// Inputs returns the sorted names of the plan's declared inputs, or nil if it declares none.
func (p *Plan) Inputs() []string {
	if !p.stated {
		return nil
	}
	names := make([]string, len(p.inputs))
	for i, in := range p.inputs {
		names[i] = in.name
	}
	return names
}

// inputs adds the slots of the plan's declared inputs to the scope.
func (c *compiler) inputs(known *scope) {
	c.given = make(map[string]*schema.Schema, len(c.plan.inputs))
	for _, in := range c.plan.inputs {
		s := in.schema
		if in.named != "" && c.app != nil {
			if s = c.app.Schemas[in.named]; s == nil {
				c.find(&in.of.at, stone.Finding{Type: "unknown-schema", Queried: in.named}, "unknown schema %q for the input %q: %s", in.named, in.name, schemaHint(in.named))
			}
		}
		c.given[in.name] = s
		if !slices.Contains(c.visible, in.name) {
			c.visible = append(c.visible, in.name)
		}
		known.define(in.name, slot{sure: true, call: true, given: true})
	}
}

// schemaHint returns advice on how to declare a schema, for an unknown schema name.
func schemaHint(named string) string {
	if slices.Contains([]string{"string", "integer", "number", "boolean", "array", "object"}, named) {
		return fmt.Sprintf("a schema is a map: {:type %q}", named)
	}
	return "register it, or write the schema itself"
}

// closed reports whether the plan declares its inputs and name is not one of them.
func (c *compiler) closed(name string) bool {
	_, stated := c.given[name]
	return c.plan.stated && !stated
}

// unstated adds a finding for a slot that is neither defined nor declared as an input.
func (c *compiler) unstated(n *node, at *place, name string, known *scope) {
	near := suggest.Closest(name, slices.Values(slices.Sorted(known.names())))
	c.find(at, stone.Finding{Type: "missing-producer", Ashlar: label(n), Queried: name, Suggestion: near},
		"no node before this one defines %q, and it is none of the plan's :inputs: add it there, or define it", name)
}

// misfits adds a finding to r for each declared input whose value in given does not match its schema.
func (c *compiler) misfits(r *report, given dag.DAG) {
	for _, in := range c.plan.inputs {
		n, s := nearest(given, open(in.name)), c.given[in.name]
		if n == nil || s == nil {
			continue
		}
		if err := s.Validate(context.Background(), []byte(n.JSON())); err != nil {
			r.find(&in.of.at, stone.Finding{Type: "schema-mismatch", Queried: in.name}, "the input %q: %v", in.name, err)
		}
	}
}
