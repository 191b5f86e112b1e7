package plan

import (
	"encoding/json"
	"strings"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/form"
)

// This file is about capabilities as values: calls that read from slots who is asked.

// A handle names a capability, or a slot that holds the name of one.
type handle struct {
	name string
	slot *slotRef
}

// readHandles reads who is asked: cap/id, and the candidates of dispatch. Where there is
// no slot among them, they are part of the spec of the call.
func (r *reading) readHandles(n *node, f fields) {
	if at := f.place("cap/id"); at != nil && slotKey(at.value) != "" {
		n.pin = r.slot(at, slotKey(at.value))
	} else {
		f.Name("cap/id", &n.spec.Cap)
	}
	f.Map.Map("dispatch", func(m *form.Map) {
		m.AllowRest() // for form.Into
		v, ok := m.Field("candidates")
		if !ok {
			return
		}
		at := f.place("dispatch").field("candidates", v.EDN())
		if !hasSlot(at) {
			v.NameList(&n.spec.Dispatch.Candidates)
			return
		}
		v.Each(func(i int, v form.Value) {
			var h handle
			if key := slotKey(v.EDN()); key != "" {
				h.slot = r.slot(at.item(i, v.EDN()), key)
			} else {
				v.Name(&h.name)
			}
			n.candidates = append(n.candidates, h)
		})
	})
}

func hasSlot(list *place) bool {
	for _, e := range list.value.Elements() {
		if slotKey(e) != "" {
			return true
		}
	}
	return false
}

// handleSchema is that of a slot which holds capabilities: an id, or a map that has one,
// or a list of those.
var handleSchema = mustParse(`{"$defs": {"cap": {"anyOf": [{"type": "string"},
	{"type": "object", "required": ["cap/id"], "properties": {"cap/id": {"type": "string"}}}]}},
	"anyOf": [{"$ref": "#/$defs/cap"}, {"type": "array", "items": {"$ref": "#/$defs/cap"}}]}`)

// candidates says in the spec of a call who is asked. A slot that holds the same in every run is
// read here, so that the call is checked like one that names its capabilities.
func (c *compiler) candidates(n *node, spec *call.Spec, r reads, known *scope) {
	if n.pin != nil {
		if ids, ok := c.constant(n, n.pin, known); ok && len(ids) == 1 {
			spec.Cap = ids[0]
		} else {
			spec.CapFrom = dag.ReaderFunc(func(d dag.DAG) (string, error) { return view{r, d}.capability(n.pin) }, r.queries()...)
		}
	}
	if n.candidates == nil {
		return
	}
	open, listed := false, []string{}
	for _, h := range n.candidates {
		if h.slot == nil {
			listed = append(listed, h.name)
			continue
		}
		ids, constant := c.constant(n, h.slot, known)
		listed, open = append(listed, ids...), open || !constant
	}
	if !open {
		spec.Dispatch.Candidates = listed
		return
	}
	spec.CandidatesFrom = dag.ReaderFunc(func(d dag.DAG) ([]string, error) { return view{r, d}.listed(n.candidates) }, r.queries()...)
}

// capability reads the one capability of a slot.
func (v view) capability(ref *slotRef) (string, error) {
	ids, err := v.capabilities(ref)
	switch {
	case err != nil:
		return "", err
	case len(ids) != 1:
		return "", noCapability(ref, "a list, where one capability is wanted")
	}
	return ids[0], nil
}

// listed reads the capabilities of a list of names and slots.
func (v view) listed(handles []handle) (all []string, _ error) {
	for _, h := range handles {
		if h.slot == nil {
			all = append(all, h.name)
			continue
		}
		ids, err := v.capabilities(h.slot)
		if err != nil {
			return nil, err
		}
		all = append(all, ids...)
	}
	return all, nil
}

// constant returns the capabilities in a slot that holds the same in every run. It reports
// slots that cannot hold capabilities.
func (c *compiler) constant(n *node, ref *slotRef, known *scope) (ids []string, ok bool) {
	value, ok := c.holds(n, ref, known, handleSchema, "capability: want a cap/id, or a map that has one")
	if !ok {
		return nil, false
	}
	ids, ok = capabilities(value)
	return ids, ok && len(ids) > 0
}

// capabilities reads who is asked from a slot.
func (v view) capabilities(ref *slotRef) ([]string, error) {
	value, err := v.slot(ref)
	if err != nil {
		return nil, err
	}
	ids, ok := capabilities(value)
	if !ok {
		return nil, noCapability(ref, string(value))
	}
	return ids, nil
}

func noCapability(ref *slotRef, found string) error {
	return &call.Error{Type: call.InputInvalid, Where: "cap/id",
		Message: ref.String() + " is no capability: want a cap/id, or a map that has one, found " + shortened(found)}
}

func shortened(text string) string {
	if len(text) > 40 {
		return strings.ToValidUTF8(text[:40], "") + "…"
	}
	return text
}

// capabilities returns the ids of the capabilities that a value names.
func capabilities(value json.RawMessage) (ids []string, ok bool) {
	var list []json.RawMessage
	if len(value) == 0 || value[0] != '[' {
		list = []json.RawMessage{value}
	} else if json.Unmarshal(value, &list) != nil {
		return nil, false
	}
	for _, one := range list {
		var id string
		if json.Unmarshal(one, &id) != nil || string(one) == "null" {
			var object struct {
				Cap string `json:"cap/id"`
			}
			if json.Unmarshal(one, &object) != nil {
				return nil, false
			}
			id = object.Cap
		}
		if id = strings.TrimPrefix(id, ":"); id == "" {
			return nil, false
		}
		ids = append(ids, id)
	}
	return ids, true
}
