package marks

import (
	"encoding/json"
	"maps"
	"math/bits"
	"slices"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/grants"
	"github.com/stonelayer/stone/internal/marked"
	"github.com/stonelayer/stone/schema"
)

// A Policy contains at most 64 marks by name. Set it as stone.Config.Policy.
type Policy map[string]Mark

// A Mark describes a kind of text and the effects that the text may reach.
type Mark struct {
	// From lists the sources of text that has the mark: effects, such as "net", ids of capabilities, names of tools, and node
	// types.
	From []string `json:"from"`
	// May lists the effects that a step or tool may have if it reads text with the mark.
	May []string `json:"may"`
	// Lift lists what removes the mark: "ask" for a person's answer, "closed" for a closed set of values, and names of steps and
	// checks. See the package comment.
	Lift []string `json:"lift"`
}

type set = marked.Set

// policy is a Policy whose marks are numbered.
type policy struct {
	names []string
	marks []Mark
}

func (p Policy) numbered() *policy {
	n := &policy{names: slices.Sorted(maps.Keys(p))}
	n.names = n.names[:min(len(n.names), 64)]
	for _, name := range n.names {
		n.marks = append(n.marks, p[name])
	}
	return n
}

// where returns the set of the marks that satisfy is.
func (p *policy) where(is func(*Mark) bool) (s set) {
	for i := range p.marks {
		if is(&p.marks[i]) {
			s |= 1 << i
		}
	}
	return s
}

func (p *policy) all() set { return p.where(func(*Mark) bool { return true }) }

// from returns the marks of text that comes from the step, tool or capability with the given name or effects.
func (p *policy) from(name string, effects []string) set {
	return p.where(func(m *Mark) bool {
		return slices.Contains(m.From, name) || slices.ContainsFunc(effects, func(e string) bool {
			return slices.ContainsFunc(m.From, func(from string) bool { return grants.Covers(from, e) || grants.Covers(e, from) })
		})
	})
}

// lifted returns the marks whose Lift contains at least one of the names.
func (p *policy) lifted(names ...string) set {
	return p.where(func(m *Mark) bool {
		return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(m.Lift, name) })
	})
}

// may returns the effects that text with these marks may reach. Nil means all effects.
func (p *policy) may(s set) (grant []string) {
	for ; s != 0; s &= s - 1 {
		grant = grants.Narrow(grant, append([]string{}, p.marks[bits.TrailingZeros64(uint64(s))].May...))
	}
	return grant
}

// forbids returns the marks in s that do not allow all of the given effects.
func (p *policy) forbids(s set, effects []string) set {
	return s & p.where(func(m *Mark) bool { return len(grants.Missing(effects, append([]string{}, m.May...))) > 0 })
}

// named returns the names of the marks.
func (p *policy) named(s set) (names []string) {
	for ; s != 0; s &= s - 1 {
		names = append(names, p.names[bits.TrailingZeros64(uint64(s))])
	}
	return names
}

// mistakes returns the faults of a policy.
func (p Policy) mistakes() (found stone.Findings) {
	if len(p) > 64 {
		found = append(found, stone.Finding{Type: "bad-policy", Message: "the policy has more than 64 marks"})
	}
	for _, name := range slices.Sorted(maps.Keys(p)) {
		for _, e := range p[name].May {
			if err := grants.Check(e); err != nil {
				found = append(found, stone.Finding{Type: "bad-policy", Queried: e, Message: "the mark " + name + ": " + err.Error()})
			}
		}
	}
	return found
}

// closedSet reports whether the schema contains a list of all values that match it.
func closedSet(text json.RawMessage) bool {
	var s struct {
		Type       string
		Enum       []json.RawMessage
		Const      json.RawMessage
		Properties map[string]json.RawMessage
		Additional json.RawMessage `json:"additionalProperties"`
	}
	if json.Unmarshal(text, &s) != nil {
		return false
	}
	switch {
	case len(s.Enum) > 0, s.Const != nil, s.Type == "boolean", s.Type == "null":
		return true
	case s.Type != "object" || string(s.Additional) != "false":
		return false
	}
	for _, property := range s.Properties {
		if !closedSet(property) {
			return false
		}
	}
	return true
}

// closedType is like closedSet, for the content of a node. The answer of a call may have fields that its schema does not list; Go
// values may not.
func closedType(s *schema.Schema, call bool) bool {
	if s == nil {
		return false
	}
	if closed, err := s.Closed(); err == nil && !call {
		s = closed
	}
	return closedSet(s.JSON())
}
