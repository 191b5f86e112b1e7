package plan

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/schema"
)

// This file compares the input of a call with the schema of its intent, as far as the plan determines the input: constant names,
// texts and numbers, and slots whose schema is known.

// takes adds findings for faults in a call's input that are certain to make the call fail.
func (c *compiler) takes(n *node) {
	if c.app == nil || n.op != "call" || n.value == nil {
		return
	}
	in := c.app.Schemas[c.app.Intents[n.spec.Intent].In]
	if in == nil {
		return
	}
	data, err := json.Marshal(c.form(n.value))
	if err != nil {
		return
	}
	made, err := schema.Parse(data)
	if err != nil {
		return // the call checks its input itself
	}
	for _, p := range schema.Compatible(made, in) {
		p.Message = roles.Replace(p.Message)
		f := stone.Finding{Type: "schema-mismatch", Ashlar: label(n), Queried: p.Path}
		if v, ok := n.value.at.value.Field(p.Path); ok {
			known := slices.DeleteFunc(in.Properties(), func(name string) bool { _, has := n.value.at.value.Field(name); return has })
			f.Suggestion = suggest.Closest(p.Path, slices.Values(known))
			c.find(n.value.at.field(p.Path, v), f, "the input of %s: %s", n.spec.Intent, p)
			continue
		}
		c.find(&n.value.at, f, "the input of %s: %s", n.spec.Intent, p)
	}
}

// roles replaces the names of the two compared schemas in messages.
var roles = strings.NewReplacer("the producer", "the plan", "the consumer", "the intent")

// form returns a schema that describes all values of a template, as a decoded JSON value.
func (c *compiler) form(t *template) any {
	switch {
	case t.constant != nil:
		var value any
		if json.Unmarshal(t.constant, &value) != nil {
			return true
		}
		return formOfValue(value)
	case t.text:
		return map[string]any{"type": "string"}
	case t.slot != nil && !t.slot.record && t.slot.name != "":
		s, ok := c.slotType(t.slot.name).Schema().At(fieldsOf(t.slot)...)
		if !ok || s == nil || bytes.Contains(s.JSON(), []byte(`"$`)) {
			return true // a $ref cannot be resolved within another schema
		}
		return json.RawMessage(s.JSON())
	case t.fields != nil:
		properties := map[string]any{}
		for _, f := range t.fields {
			properties[f.name] = c.form(f.value)
		}
		return object(properties)
	case t.items != nil:
		var forms []any
		for _, item := range t.items {
			forms = append(forms, c.form(item))
		}
		return map[string]any{"type": "array", "items": map[string]any{"anyOf": forms}}
	}
	return true
}

func object(properties map[string]any) any {
	return map[string]any{"type": "object", "properties": properties, "required": slices.Sorted(maps.Keys(properties)), "additionalProperties": false}
}

func formOfValue(value any) any {
	switch value := value.(type) {
	case map[string]any:
		properties := map[string]any{}
		for name, v := range value {
			properties[name] = formOfValue(v)
		}
		return object(properties)
	case []any:
		if len(value) == 0 {
			return map[string]any{"type": "array"}
		}
		var forms []any
		for _, v := range value {
			forms = append(forms, formOfValue(v))
		}
		return map[string]any{"type": "array", "items": map[string]any{"anyOf": forms}}
	case nil:
		return map[string]any{"type": "null"}
	}
	return map[string]any{"enum": []any{value}}
}
