package call

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/internal/grants"
	"github.com/stonelayer/stone/internal/reasons"
)

// Needing returns a copy of m with effects added to Needs. The constructors of capabilities use it for the effects of every
// invocation: a program, for example, always needs process.
func (m Metadata) Needing(effects ...string) Metadata {
	for _, e := range effects {
		if !slices.Contains(m.Needs, e) {
			m.Needs = append(slices.Clip(m.Needs), e)
		}
	}
	return m
}

// overreaches reports whether the capability needs an effect that the grant excludes or that the call, if it states effects,
// omits.
func (m *Metadata) overreaches(s *Spec, grant []string) bool {
	if len(m.Needs) == 0 {
		return false
	}
	return s.Effects != nil && len(grants.Missing(m.Needs, s.Effects)) > 0 || len(grants.Missing(m.Needs, grant)) > 0
}

// forbids reports whether the call states an effect that the capability may not have.
func (m *Metadata) forbids(s *Spec) bool {
	if len(s.Effects) == 0 {
		return false
	}
	allowed := append(append([]string{}, m.Effects...), m.Needs...) // not nil, which would allow all effects
	return len(grants.Missing(s.Effects, allowed)) > 0
}

// given returns the effects granted to an answer: the effects that the call states or, if it states none, the needs of the
// capability.
func (m *Metadata) given(s *Spec) []string {
	if s.Effects != nil {
		return s.Effects
	}
	return append([]string{}, m.Needs...)
}

// granted is like given, but omits the effects that the request's constraints exclude.
func (s *session) granted(e *entry) []string {
	if !s.offline {
		return e.given(&s.spec)
	}
	return slices.DeleteFunc(slices.Clone(e.given(&s.spec)), onWeb)
}

func onWeb(e string) bool { return grants.Covers(effect.Net, e) }

// offline returns the value of a request's constraint no-web.
func offline(r *Request) (offline bool, err error) {
	var of struct {
		NoWeb *bool `json:"no-web"`
	}
	if len(r.Constraints) == 0 || r.Constraints[0] != '{' {
		return false, nil
	}
	if err := json.Unmarshal(r.Constraints, &of); err != nil {
		return false, fmt.Errorf("constraints.no-web: want true or false: %w", err)
	}
	return of.NoWeb != nil && *of.NoWeb, nil
}

// undeclared returns the candidates that declare no effects: Go functions without Needs, and undeclared parts of pipelines.
func (c *caller) undeclared(of func(stone.Ashlar) []string) (names []string) {
	for _, candidate := range c.resolve().candidates {
		if e := candidate.entry; e != nil && candidate.reason == "" {
			if e.Kind == "go" && e.Needs == nil {
				names = append(names, e.ID)
			}
			if !e.runs.IsZero() {
				names = append(names, of(e.runs)...)
			}
		}
	}
	return names
}

// checkGrant returns a finding for each effect that the call needs and the grant lacks. It reports on the candidates only if the
// grant excludes every one of them, but always on the judge, the repairer and the checks. Validate calls it.
func (c *caller) checkGrant(grant []string) []stone.Finding {
	r := c.resolve()
	if len(r.faults) > 0 {
		return nil // the candidates are unknown
	}
	var found []stone.Finding
	lacks := func(who string, needs []string) {
		for _, e := range grants.Missing(needs, grant) {
			known := func(f stone.Finding) bool { return f.Queried == e }
			if slices.Contains(c.spec.Effects, e) || slices.ContainsFunc(found, known) {
				continue // the leaf declares this effect
			}
			found = append(found, lacking(who, e))
		}
	}
	var ids, needs []string
	free := false
	for _, candidate := range r.candidates {
		if candidate.reason == "" {
			ids, needs = append(ids, candidate.id), append(needs, candidate.entry.Needs...)
			free = free || !candidate.entry.overreaches(&c.spec, grant)
		}
	}
	if !free {
		lacks(strings.Join(ids, ", "), needs)
	}
	for _, e := range []*entry{r.repairer, r.judge} {
		if e != nil {
			lacks(e.ID, e.Needs)
		}
	}
	for _, check := range slices.Concat(r.answer.must, r.answer.should, r.door.must, r.door.should, r.agree) {
		lacks("the check "+check.name, check.Needs)
	}
	return found
}

// lacking returns the finding that who needs the effect e, which the run does not grant.
func lacking(who, e string) stone.Finding {
	return stone.Finding{Type: "effect-not-granted", Queried: e,
		Message: fmt.Sprintf("%s needs the effect %q, which the run does not grant: grant the effect, or remove what needs it", who, e)}
}

// denied returns the failure of a capability or check that needs more effects than the
// run grants, or nil.
func denied(who string, needs, grant []string) *Error {
	missing := grants.Missing(needs, grant)
	if missing == nil {
		return nil
	}
	return &Error{Type: reasons.ForbiddenEffect, Message: fmt.Sprintf("%s needs effects that are not granted: %s", who, strings.Join(missing, ", "))}
}
