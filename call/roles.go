package call

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/internal/grants"
)

// A Principal is the user or service on whose behalf a pipeline runs, with its roles.
type Principal struct {
	ID    string   `json:"id"`
	Roles []string `json:"roles,omitempty"`
}

// A Rule lists the roles that a principal must have for an effect.
type Rule struct {
	Any       []string `json:"any,omitempty"`       // the principal needs one of these roles
	All       []string `json:"all,omitempty"`       // the principal may instead have all of these roles
	Forbidden []string `json:"forbidden,omitempty"` // the effect is denied to a principal with one of these roles
}

// allows reports whether the roles meet the rule. A rule that sets only Forbidden allows all other roles. An empty rule allows
// nobody, and an empty list Any or All is never met.
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

// Roles maps effects to their rules. The rule of a family, such as net, also applies to
// its members.
type Roles map[string]Rule

// meets reports whether the principal meets every rule about an effect, and whether one rule covers the whole effect. A rule
// about a member also applies to its family: a principal that is denied fs/write cannot have all of fs.
func (r Roles) meets(p Principal, e string) (met, ruled bool) {
	met = true
	for name, rule := range r {
		if grants.Covers(name, e) || grants.Covers(e, name) {
			met, ruled = met && rule.allows(p.Roles), ruled || grants.Covers(name, e)
		}
	}
	return met, ruled
}

// Denied returns the reason why the effect e is denied to p, with the required roles and the roles of p. It returns "" if no rule
// denies the effect.
func (r Roles) Denied(p Principal, e string) string {
	has := "no role"
	if len(p.Roles) > 0 {
		has = "only " + strings.Join(p.Roles, ", ")
	}
	for _, name := range slices.Sorted(maps.Keys(r)) {
		rule := r[name]
		if !grants.Covers(name, e) && !grants.Covers(e, name) || rule.allows(p.Roles) {
			continue
		}
		if i := slices.IndexFunc(p.Roles, func(role string) bool { return slices.Contains(rule.Forbidden, role) }); i >= 0 {
			return fmt.Sprintf("the effect %q is forbidden for the role %s, which the principal has", name, p.Roles[i])
		}
		var want []string
		if len(rule.Any) > 0 {
			want = append(want, "one of the roles "+strings.Join(rule.Any, ", "))
		}
		if len(rule.All) > 0 {
			want = append(want, "all of the roles "+strings.Join(rule.All, ", "))
		}
		if want == nil {
			return fmt.Sprintf("the rule of the effect %q names no role, so nobody may have it", name)
		}
		return fmt.Sprintf("the effect %q requires %s; the principal has %s", name, strings.Join(want, " or "), has)
	}
	return ""
}

// Allow returns two lists: the effects that the principal may have (granted), and the other effects (denied). An effect without a
// rule is denied. Both lists are sorted; "none" is dropped.
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

// Grant returns the effects in grant that the principal may have, for use as stone.Config.Grant. An effect without a rule remains
// granted, because the host has granted it. The result is sorted and never nil, which would grant everything.
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
