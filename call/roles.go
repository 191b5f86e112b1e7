package call

import (
	"slices"

	"github.com/stonelayer/stone/effect"
)

// A Principal is on whose behalf something runs.
type Principal struct {
	ID    string   `json:"id"`
	Roles []string `json:"roles,omitempty"`
}

// A Rule says which roles a principal must have for an effect.
type Rule struct {
	Any       []string `json:"any,omitempty"`       // one of these is enough
	All       []string `json:"all,omitempty"`       // and so are all of these
	Forbidden []string `json:"forbidden,omitempty"` // with one of these, nothing helps
}

// allows tells whether the roles meet the rule. One that names neither any nor
// all forbids some and is met by the rest; an empty list is met by nobody.
func (r Rule) allows(roles []string) bool {
	has := func(role string) bool { return slices.Contains(roles, role) }
	if slices.ContainsFunc(r.Forbidden, has) {
		return false
	}
	if r.Any == nil && r.All == nil {
		return r.Forbidden != nil
	}
	lacks := func(role string) bool { return !has(role) }
	return slices.ContainsFunc(r.Any, has) || len(r.All) > 0 && !slices.ContainsFunc(r.All, lacks)
}

// Roles are the rules of effects by their names. The rule of a family, such as net,
// holds for its members too.
type Roles map[string]Rule

// meets reports whether the principal meets every rule about an effect, and whether
// one is about all of it. A rule about a member is about its family too: who may not have
// fs/write may not have all of fs.
func (r Roles) meets(p Principal, e string) (met, ruled bool) {
	met = true
	for name, rule := range r {
		if effect.Covers(name, e) || effect.Covers(e, name) {
			met, ruled = met && rule.allows(p.Roles), ruled || effect.Covers(name, e)
		}
	}
	return met, ruled
}

// Allow tells which of the effects the principal may have, and which not: an
// effect without a rule is denied. Both lists are sorted. "none" is no effect.
func (r Roles) Allow(p Principal, effects []string) (granted, denied []string) {
	granted = []string{}
	for _, e := range effects {
		if e == effect.None {
			continue
		}
		if met, ruled := r.meets(p, e); ruled && met {
			granted = append(granted, e)
		} else {
			denied = append(denied, e)
		}
	}
	slices.Sort(granted)
	slices.Sort(denied)
	return granted, denied
}

// Grant returns what of a grant is left for the principal, as the Grant of a
// stone.Config wants it: an effect without a rule stays granted, since the host
// named it. It is never nil, which would grant everything.
func (r Roles) Grant(p Principal, grant []string) []string {
	left := []string{}
	for _, e := range grant {
		if met, _ := r.meets(p, e); met && e != effect.None {
			left = append(left, e)
		}
	}
	slices.Sort(left)
	return left
}
