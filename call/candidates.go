package call

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/grants"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/terms"
)

// Reasons for skipping a candidate, in the order of the tests.
const (
	notFound        = "cap/not-found"
	wrongIntent     = "intent/not-supported"
	wrongReply      = "result-type/not-supported"
	wrongEffects    = "effects/not-allowed"
	wrongSchema     = "requires/schema-mismatch"
	wrongKind       = "requires/cap-kind-mismatch"
	wrongTags       = "requires/cap-tags-mismatch"
	latencyExceeded = "budget/latency"
	costExceeded    = "budget/cost"
)

// A candidate is one capability that may be invoked, or the reason for skipping it.
type candidate struct {
	id     string
	entry  *entry // nil if the id is not registered
	reason string // the first test that its metadata fails, or ""
}

// candidates returns the capabilities for a call, in order, each with the result of the tests on its metadata. Metadata does not
// change; see (*entry).unavailable for conditions that do.
func (a *Applicator) candidates(s *Spec, grant []string) []candidate {
	ids, find := []string{s.Tool}, a.tool
	if s.Tool == "" {
		ids, find = a.base(s), a.Registry.entry
	}
	var list []candidate
	for _, id := range ids {
		if slices.ContainsFunc(list, func(c candidate) bool { return c.id == id }) {
			continue
		}
		c := candidate{id, find(id), notFound}
		if c.entry != nil {
			c.reason = c.entry.refuses(s, grant)
		}
		list = append(list, c)
	}
	return list
}

// base returns the ids of the candidates of s, possibly with duplicates.
func (a *Applicator) base(s *Spec) []string {
	if s.Cap != "" {
		return []string{s.Cap}
	}
	if s.open() {
		return a.Registry.ordered()
	}
	ids := s.Dispatch.Candidates
	if len(ids) == 0 && a.Registry != nil {
		for _, e := range a.Registry.order {
			if e.answers(s.Intent) {
				ids = append(ids, e.ID)
			}
		}
	}
	return slices.Concat(ids, a.Policy.fallback(s.Intent))
}

// refuses returns the first test that the metadata fails under the given grant, or "" if it passes all tests. A tool is named by
// its id, so only its effects are tested.
func (m *Metadata) refuses(s *Spec, grant []string) string {
	r := &s.Requires
	switch {
	case s.Tool != "":
		if m.overreaches(s, grant) {
			return wrongEffects
		}
	case !m.answers(s.Intent):
		return wrongIntent
	case r.Reply != "" && !m.produces(r.Reply):
		return wrongReply
	case m.forbids(s), m.overreaches(s, grant):
		return wrongEffects
	case !meets(m.In, r.InSchema, terms.AnyRequest), !meets(m.Out, r.OutSchema, terms.AnyAnswer):
		return wrongSchema
	case r.Kind != "" && r.Kind != m.Kind:
		return wrongKind
	case slices.ContainsFunc(r.Tags, func(tag string) bool { return !slices.Contains(m.Tags, tag) }):
		return wrongTags
	}
	return ""
}

// why returns the reason for skipping the candidate, with details such as the missing effect, the schema or the tags.
func (c *candidate) why(s *Spec, grant []string) string {
	if c.entry == nil {
		return c.reason
	}
	m, r, detail := &c.entry.Metadata, &s.Requires, ""
	switch c.reason {
	case wrongEffects:
		if missing := grants.Missing(m.Needs, s.Effects); s.Effects != nil && missing != nil {
			detail = "it needs " + strings.Join(missing, ", ") + ", which the effects of the call exclude"
		} else if missing := grants.Missing(m.Needs, grant); missing != nil {
			detail = "it needs " + strings.Join(missing, ", ") + ", which the run does not grant"
		} else if m.forbids(s) {
			detail = "the call states the effects " + strings.Join(s.Effects, ", ") + "; the cap/effects-allowed and cap/needs of the capability are " + cmp.Or(strings.Join(append(slices.Clone(m.Effects), m.Needs...), ", "), "none")
		}
	case wrongSchema:
		detail = fmt.Sprintf("its out-schema is %q, and the call requires %q", m.Out, r.OutSchema)
		if !meets(m.In, r.InSchema, terms.AnyRequest) {
			detail = fmt.Sprintf("its in-schema is %q, and the call requires %q", m.In, r.InSchema)
		}
	case wrongKind:
		detail = fmt.Sprintf("its kind is %q, and the call requires %q", m.Kind, r.Kind)
	case wrongTags:
		lacks := slices.DeleteFunc(slices.Clone(r.Tags), func(tag string) bool { return slices.Contains(m.Tags, tag) })
		detail = "the call requires the tags " + strings.Join(lacks, ", ")
	case wrongReply:
		detail = "the call requires a " + r.Reply
	}
	if detail == "" {
		return c.reason
	}
	return c.reason + " (" + detail + ")"
}

// meets reports whether a schema of a capability meets the schema that a call requires. A schema that accepts anything meets
// every requirement, because the call checks the answer.
func meets(has, required, anything string) bool {
	return required == "" || has == "" || has == anything || has == required
}

func (m *Metadata) answers(intent string) bool {
	return m.Intents == nil || slices.Contains(m.Intents, intent)
}

// produces reports whether the capability may give the required kind of reply. A stream counts as a value.
func (m *Metadata) produces(reply string) bool {
	return m.mayReply(reply) || reply == Value && m.mayReply(Stream)
}

// mayReply reports whether the type is listed in cap/can-produce.
func (m *Metadata) mayReply(typ string) bool {
	if m.CanProduce == nil {
		return typ == Value
	}
	return slices.Contains(m.CanProduce, typ)
}

// unavailable returns the first test that the capability's current state fails, or "" if it can be invoked. Left is the remaining
// budget.
func (e *entry) unavailable(left budget.Limits) string {
	switch {
	case e.down():
		return reasons.Down
	case left.Latency != nil && *left.Latency > 0 && e.Cost.Latency > *left.Latency: // if no time is left, the account reports it
		return latencyExceeded
	case left.USD != nil && e.Cost.USD > max(*left.USD, 0)*(1+1e-9):
		return costExceeded
	}
	return ""
}

// Candidates returns the ids of the capabilities that a call of s would invoke now, in order, and the rejected capabilities, each
// with the first test that it fails. Left is the remaining budget. Grant lists the effects that the run allows; nil allows all.
func (a *Applicator) Candidates(s Spec, left Budget, grant []string) (asked []string, rejected []Rejection) {
	for _, c := range a.candidates(&s, grant) {
		if c.reason == "" {
			c.reason = c.entry.unavailable(left)
		}
		if c.reason == "" {
			asked = append(asked, c.id)
		} else {
			rejected = append(rejected, Rejection{Cap: c.id, Reason: c.reason})
		}
	}
	if most := a.Policy.resolve(&s).fallbackMax; most >= 0 {
		asked = asked[:min(len(asked), most+max(s.Dispatch.Agreeing(), 1))]
	}
	return asked, rejected
}
