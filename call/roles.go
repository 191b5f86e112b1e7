package call

import "slices"

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

// Roles are the rules of effects by their names.
type Roles map[string]Rule

// Allow tells which of the effects the principal may have, and which not: an
// effect without a rule is denied. Both lists are sorted. "none" is no effect.
func (r Roles) Allow(p Principal, effects []string) (granted, denied []string) {
	granted = []string{}
	for _, effect := range effects {
		switch rule, ok := r[effect]; {
		case effect == "none":
		case ok && rule.allows(p.Roles):
			granted = append(granted, effect)
		default:
			denied = append(denied, effect)
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
	for _, effect := range grant {
		if rule, ok := r[effect]; effect != "none" && (!ok || rule.allows(p.Roles)) {
			left = append(left, effect)
		}
	}
	slices.Sort(left)
	return left
}
