package plan

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/reasons"
)

// This file implements capabilities as values: calls that read their capabilities from slots.

// A handle names a capability, or a slot that holds a capability's name.
type handle struct {
	name string
	slot *slotRef
}

// readHandles reads cap/id and the candidates of dispatch. If it finds no slot among them, it stores them in the call's spec.
func (r *reading) readHandles(n *node, f fields) {
	if at := f.place("cap/id"); at != nil && slotKey(at.value) != "" {
		n.pin = r.slot(at, slotKey(at.value))
	} else {
		f.At("cap/id").Name(&n.spec.Cap)
	}
	f.At("dispatch").Map(func(m *form.Map) {
		m.AllowRest() // form.Into reads the other fields
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

// handleSchema is the schema of a slot that holds capabilities: an ID, a map with an ID, or a list of these.
var handleSchema = mustParse(`{"$defs": {"cap": {"anyOf": [{"type": "string"},
	{"type": "object", "required": ["cap/id"], "properties": {"cap/id": {"type": "string"}}}]}},
	"anyOf": [{"$ref": "#/$defs/cap"}, {"type": "array", "items": {"$ref": "#/$defs/cap"}}]}`)

// candidates sets the capabilities in spec, the spec of a call. It reads slots with constant values immediately, so that the call
// is checked like a call that names its capabilities.
func (c *compiler) candidates(n *node, spec *call.Spec, r reads, known *scope) {
	if n.pin != nil {
		if handles, ok := c.constant(n, n.pin, known); ok && len(handles) == 1 && handles[0].bare {
			spec.Cap = handles[0].Cap
		} else {
			read := dag.ReaderFunc(func(d dag.DAG) (call.Handle, error) { return view{r, d, nil}.capability(n.pin) }, r.queries()...)
			spec.CapFrom = versioned[call.Handle]{read, versionOf(n.pin)}
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
		held, constant := c.constant(n, h.slot, known)
		listed, open = append(listed, ids(held)...), open || !constant
	}
	if !open {
		spec.Dispatch.Candidates = listed
		return
	}
	spec.CandidatesFrom = dag.ReaderFunc(func(d dag.DAG) ([]string, error) { return view{r, d, nil}.listed(n.candidates) }, r.queries()...)
}

// capability returns the capability in a slot. It returns an error unless the slot contains exactly one.
func (v view) capability(ref *slotRef) (h call.Handle, err error) {
	held, err := v.capabilities(ref)
	switch {
	case err != nil:
		return h, err
	case len(held) != 1:
		return h, noCapability(ref, "a list, where one capability is wanted")
	}
	return held[0].Handle, nil
}

// listed returns the IDs of the capabilities that the handles name, directly or through slots.
func (v view) listed(handles []handle) (all []string, _ error) {
	for _, h := range handles {
		if h.slot == nil {
			all = append(all, h.name)
			continue
		}
		held, err := v.capabilities(h.slot)
		if err != nil {
			return nil, err
		}
		for _, one := range held {
			if !one.bare {
				return nil, noCapability(h.slot, "a contract, which holds for a single capability: ask it with :cap/id")
			}
		}
		all = append(all, ids(held)...)
	}
	return all, nil
}

// held is a capability in a slot. It is bare if the slot contains only its ID, without a contract.
type held struct {
	call.Handle
	bare bool
}

func ids(all []held) []string {
	out := make([]string, len(all))
	for i := range all {
		out[i] = all[i].Cap
	}
	return out
}

// constant returns the capabilities in a slot whose value is constant. If the slot cannot contain capabilities, constant adds a
// finding.
func (c *compiler) constant(n *node, ref *slotRef, known *scope) (all []held, ok bool) {
	value, ok := c.holds(n, ref, known, handleSchema, "capability: want a cap/id, or a map that has one")
	if !ok {
		return nil, false
	}
	all, err := capabilities(value)
	if err != nil {
		c.find(ref.at, stone.Finding{Type: "schema-mismatch", Ashlar: label(n), Queried: ref.name}, "%s: %v", ref, err)
	}
	return all, err == nil && len(all) > 0
}

// capabilities returns the capabilities in a slot.
func (v view) capabilities(ref *slotRef) ([]held, error) {
	value, err := v.slot(ref)
	if err != nil {
		return nil, err
	}
	all, err := capabilities(value)
	if err != nil {
		return nil, noCapability(ref, err.Error())
	}
	return all, nil
}

func noCapability(ref *slotRef, found string) error {
	return &call.Error{Type: reasons.InputInvalid, Where: "cap/id",
		Message: ref.String() + " is no capability: want a cap/id, or a map that has one, found " + found}
}

// capabilities returns the capabilities that value contains: a single one or a list.
func capabilities(value json.RawMessage) (all []held, err error) {
	list := []json.RawMessage{value}
	if len(value) > 0 && value[0] == '[' {
		if err := json.Unmarshal(value, &list); err != nil {
			return nil, err
		}
	}
	for _, one := range list {
		h, err := capabilityOf(one)
		if err != nil {
			return nil, err
		}
		all = append(all, h)
	}
	return all, nil
}

func capabilityOf(value json.RawMessage) (h held, err error) {
	v, err := edn.ReadEither(value, edn.Limits{})
	if err != nil {
		return h, err
	}
	h.bare = v.Kind() != edn.KindMap
	if h.bare {
		h.Cap, _ = v.Name()
	} else if faults := form.Read(v, func(m *form.Map) { form.Into(m, &h.Handle) }); len(faults) > 0 {
		return h, errors.New(bounds.Cut(string(value), 40) + " (" + faults[0].Error() + ")")
	} else {
		_, requires := v.Field("requires")
		_, done := v.Field("done")
		h.bare = !requires && !done
	}
	if h.Cap = strings.TrimPrefix(h.Cap, ":"); h.Cap == "" {
		return h, errors.New(bounds.Cut(string(value), 40))
	}
	return h, nil
}
