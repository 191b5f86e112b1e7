// Package marks controls where text may go, depending on where it comes from. Text from strangers, such as a web page or an
// email, has a mark, and steps that read the text may have only the effects that its mark allows.
//
//	policy := marks.Policy{"web": {
//		From: []string{effect.Net},         // what steps and tools with this effect return
//		May:  []string{effect.FSRead},      // the effects of whatever reads it
//		Lift: []string{"ask", "no-links"},  // people, and a check
//	}}
//	result, err := stone.Run(ctx, pipeline, stone.Config{Policy: policy})
//
// # How marks travel
//
// A step reads only the types that it declares, so marks can be derived from the pipeline alone: a step's output has the marks of
// its inputs and of its own effects. No marks are recorded, and a resumed, forked or cached run has the same marks. If a node
// type with a mark reaches an effect that the mark does not allow, stone.Validate rejects the pipeline and shows the path of the
// text.
//
// Some marks are known only during the run:
//
//   - Marks limit the effects granted to a call: capabilities that need other effects are not tried.
//   - An agent's conversation has the marks of the agent's inputs and of every tool that the agent has called. A call of a tool
//     that needs effects which these marks do not allow is refused, and the model is told why. A pipeline used as a tool is
//     checked with the marks of the conversation. A tool that declares no effects is not called with marked text, and its results
//     have all marks.
//   - A tool that the model's provider runs acts before the agent knows of it. Validate rejects such a tool unless all marks that
//     the conversation can have allow the effect net.
//   - A plan is checked with the marks of its inputs, and the model that wrote the plan is told which of the plan's nodes the
//     text must not reach. If the planner has read marked text, all nodes of the plan have the marks of this text.
//   - A child run in another process has the same grant as the leaf that starts it.
//
// # What lifts a mark
//
//   - A person, if Lift contains "ask". Answers of people have no marks. A step that reads the answer, or is in a branch of a
//     Match on the answer, may use the text from which the question was made. An agent asks a person before a call that would
//     otherwise be refused.
//   - A step or an Ask whose name is in Lift. A guard, such as call.Admit, lifts the marks of its input.
//   - A check whose name is in Lift, for the answer of a call that must pass the check.
//   - A closed set, if Lift contains "closed": a type, or the arguments of a tool, whose value must be one of those that its
//     schema lists. A stranger can still influence which of these values is chosen.
//
// # What it does not see
//
// Go code is trusted: steps are assumed to have only the effects that they declare, middlewares are assumed not to pass text on,
// and programs may act on the answers that they request. The choice of a branch by a Match has no mark. Sending text to a model's
// own server does not count as an effect. If one run stores text and another reads it, the text has the mark of the effect that
// reads it.
package marks

import (
	"context"
	"encoding/json"
	"maps"
	"math/bits"
	"slices"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/internal/grants"
	"github.com/stonelayer/stone/internal/marked"
	"github.com/stonelayer/stone/schema"
)

// A Policy maps names to marks, at most 64. Set it as stone.Config.Policy.
type Policy map[string]Mark

// A Mark describes a kind of text and the effects that the text may reach.
type Mark struct {
	// From lists where the text comes from: effects, such as "net", ids of capabilities, names of tools, and node types.
	From []string `json:"from"`
	// May lists the effects that steps and tools which read the text may have.
	May []string `json:"may"`
	// Lift lists what lifts the mark: "ask", "closed", and names of steps and checks.
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

// where returns the marks for which is returns true.
func (p *policy) where(is func(*Mark) bool) (s set) {
	for i := range p.marks {
		if is(&p.marks[i]) {
			s |= 1 << i
		}
	}
	return s
}

func (p *policy) all() set { return p.where(func(*Mark) bool { return true }) }

// from returns the marks of text that comes from a step, tool or capability.
func (p *policy) from(name string, effects []string) set {
	return p.where(func(m *Mark) bool {
		return slices.Contains(m.From, name) || slices.ContainsFunc(effects, func(e string) bool {
			return slices.ContainsFunc(m.From, func(from string) bool { return grants.Covers(from, e) || grants.Covers(e, from) })
		})
	})
}

// lifted returns the marks that at least one of the names lifts.
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

// forbids returns the marks among s that do not allow all of the effects.
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

// closedSet reports whether the schema lists all values that match it.
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

// Entries of Lift for people and for closed sets.
const (
	byPerson = effect.Ask
	byList   = "closed"
)

// A place holds a run's marks at the point where a body is executed.
type place struct {
	*policy
	reads map[stone.Ashlar]set // marks of the text that each leaf reads
	types map[string]set       // marks that nodes of each type may have
	now   *set                 // marks of the text with which the body works, if they are declared
	given string               // type of the node in which the body passes this text to a pipeline
}

func placeIn(ctx context.Context) *place {
	pl, _ := marked.In(ctx).(*place)
	return pl
}

// here returns the marks of the text with which the body of ctx works.
func (pl *place) here(ctx context.Context) set {
	if pl.now != nil {
		return *pl.now
	}
	if s, known := pl.reads[stone.In(ctx).Ashlar()]; known {
		return s
	}
	return pl.all()
}

// with returns a context in which the body works with text that has exactly these marks.
func (pl *place) with(ctx context.Context, s set) context.Context {
	at := *pl
	at.now = &s
	return marked.At(ctx, &at)
}

// Enter implements stone.Policy.
func (p Policy) Enter(ctx context.Context, a stone.Ashlar, g stone.Given) (context.Context, stone.Findings) {
	w := p.numbered().walk(ctx, a, g)
	return marked.At(ctx, &place{policy: w.policy, reads: w.reads, types: w.types}), append(p.mistakes(), w.found...)
}

// walk walks the pipeline that a run, or the body of ctx, executes.
func (p *policy) walk(ctx context.Context, a stone.Ashlar, g stone.Given) *walker {
	w := newWalker(p)
	if up := placeIn(ctx); up != nil {
		w.within(ctx, up, a)
	}
	for _, name := range g.Types() {
		if _, known := w.near[name]; !known {
			w.write(name, w.typed(name)|w.base, "the input "+name)
		}
	}
	w.visit(a, pathOf("", a, 1))
	return w
}

// Check implements marked.Place.
func (pl *place) Check(ctx context.Context, a stone.Ashlar, g stone.Given) stone.Findings {
	return pl.walk(ctx, a, g).found
}

// Narrow implements stone.Policy.
func (p Policy) Narrow(ctx context.Context, granted []string) []string {
	if pl := placeIn(ctx); pl != nil {
		return grants.Narrow(granted, pl.may(pl.here(ctx)))
	}
	return granted
}

// Brought implements marked.Place.
func (pl *place) Brought(name string, effects []string, p stone.Ashlar) set {
	switch {
	case !p.IsZero():
		return pl.from(name, effects) | pl.sources(p)
	case effects == nil:
		return pl.all()
	}
	return pl.from(name, effects)
}

// With implements marked.Place.
func (pl *place) With(ctx context.Context, s set) context.Context {
	return pl.with(ctx, pl.here(ctx)|s)
}

// Admit implements marked.Place.
func (pl *place) Admit(ctx context.Context, name string, effects []string, arguments json.RawMessage, p stone.Ashlar, in string) (within context.Context, refusal string, asks bool) {
	at := *pl
	at.given = in
	pl = &at
	s := pl.here(ctx)
	within = pl.with(ctx, s)
	if s == 0 {
		return within, "", false
	}
	bad, why := pl.forbids(s, effects), ""
	switch {
	case !p.IsZero():
		w := newWalker(pl.policy)
		w.within(ctx, pl, p)
		w.visit(p, pathOf("", p, 1))
		if bad = 0; w.found.Err() != nil {
			bad, why = s, w.found.Errors()[0].Message
		}
	case effects == nil:
		bad, why = s, name+" does not declare its effects"
	default:
		why = name + " needs " + list(grants.Missing(effects, append([]string{}, pl.may(bad)...)))
	}
	if bad == 0 {
		return within, "", false
	}
	within = pl.with(ctx, s&^bad)
	if bad&^pl.lifted(byList) == 0 && closedSet(arguments) {
		return within, "", false
	}
	return within, "the conversation has text with the mark " + list(pl.named(bad)) + ", which may not reach it: " + why, bad&^pl.lifted(byPerson) == 0
}
