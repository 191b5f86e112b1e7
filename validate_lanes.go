package stone

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/schema"
)

// This file checks the queries with which a Reduce reads the lanes that it joins.

// closing holds what is known about the fan-outs that a Reduce joins.
type closing struct {
	fans   []*place      // the fan-outs that the Reduce can join; a run takes the path of one of them
	always bool          // whether every path to the Reduce has a fan-out
	read   []dag.AnyType // the lane types that its body has read with All so far
}

// lanesOf returns the lanes of a fan-out and the type of the node with which each lane starts: an item of a Map, otherwise a
// marker.
func (p *place) lanesOf() (lanes []Ashlar, start dag.AnyType) {
	switch p.spec.form {
	case mapForm:
		return p.spec.children, p.spec.out
	case parallelForm:
		return p.spec.children, laneType
	}
	for _, b := range p.spec.blocks() { // in a Scoped, only the last group of lanes is not joined yet
		if b.how == apart {
			lanes = b.children
		}
	}
	return lanes, laneType
}

// made says how certain it is that an ashlar leaves a node of a type: on the line of first parents, and anywhere.
type made struct{ line, all certainty }

type madeKey struct {
	spec *spec
	name string
}

// made returns how certain it is that a leaves a node of the type called name.
func (v *validator) made(a Ashlar, name string) made {
	s := a.spec()
	key := madeKey{s, name}
	if m, ok := v.makes[key]; ok {
		return m
	}
	var m made
	switch s.form {
	case leafForm:
		if s.out != nil && s.out.Name() == name {
			m = made{surely, surely}
		}
	case matchForm:
		m = v.madeOnOneOf(s.children, name)
	case rescueForm:
		body, heal := v.made(s.children[0], name), v.made(s.children[1], name)
		if name == dag.Failure.Name() {
			heal = made{surely, surely}
		}
		healed := made{max(heal.line, min(body.line, maybe)), max(heal.all, min(body.all, maybe))}
		m = made{shared(min(body.line, healed.line), max(body.line, healed.line)), shared(min(body.all, healed.all), max(body.all, healed.all))}
	case mapForm, parallelForm:
		m.all = v.madeInOrder(s.children, name).all
		if s.form == mapForm && s.out != nil && s.out.Name() == name {
			m.all = surely
		}
	case scopedForm:
		m = v.madeByWalk(s, name)
	default:
		m = v.madeInOrder(s.children, name)
	}
	if v.makes == nil {
		v.makes = map[madeKey]made{}
	}
	v.makes[key] = m
	return m
}

func (v *validator) madeInOrder(children []Ashlar, name string) (m made) {
	for _, c := range children {
		next := v.made(c, name)
		m = made{max(m.line, next.line), max(m.all, next.all)}
	}
	return m
}

func (v *validator) madeOnOneOf(children []Ashlar, name string) made {
	if len(children) == 0 {
		return made{}
	}
	least := made{surely, surely}
	var most made
	for _, c := range children {
		m := v.made(c, name)
		least = made{min(least.line, m.line), min(least.all, m.all)}
		most = made{max(most.line, m.line), max(most.all, m.all)}
	}
	return made{shared(least.line, most.line), shared(least.all, most.all)}
}

func (v *validator) madeByWalk(s *spec, name string) (m made) {
	for _, b := range s.blocks() {
		var next made
		switch b.how {
		case inOrder, again:
			next = v.madeInOrder(b.children, name)
		case exactlyOne:
			next = v.madeOnOneOf(b.children, name)
		case inOrderOrNot:
			next = v.madeInOrder(b.children, name)
			next = made{min(next.line, maybe), min(next.all, maybe)}
		case apart:
			next.all = v.madeInOrder(b.children, name).all
		case writing:
			for _, t := range b.types {
				if t != nil && t.Name() == name {
					next = made{surely, surely}
				}
			}
		}
		m = made{max(m.line, next.line), max(m.all, next.all)}
	}
	return m
}

// inLane returns how certain it is that a lane has a node of the type called name. The lane starts with a node of type start and
// runs the ashlar lane.
func (v *validator) inLane(lane Ashlar, start dag.AnyType, name string) made {
	if start != nil && start.Name() == name {
		return made{surely, surely}
	}
	return v.made(lane, name)
}

// wantLanes checks a query that reads lanes: it must be in a Reduce, and every lane must have a node of type t.
func (v *validator) wantLanes(q dag.Query, t dag.AnyType) {
	name := t.Name()
	switch {
	case v.closes == nil:
		v.find(v.here, Finding{Type: "lanes-outside-reduce", Queried: name},
			"%s reads %q of the lanes of a fan-out, but closes none: put it into the Reduce after the fan-out, or read the history with dag.All", v.here.spec.name, name)
		return
	case q.IsOptional():
		return
	case !v.closes.always:
		v.find(v.here, Finding{Type: "lanes-outside-reduce", Queried: name},
			"%s reads %q of the lanes of a fan-out, but only some branches before it have a fan-out: close each fan-out within its branch", v.here.spec.name, name)
		return
	}
	unsure := false
	for _, fan := range v.closes.fans {
		lanes, item := fan.lanesOf()
		for _, lane := range lanes {
			switch v.inLane(lane, item, name).line {
			case never:
				f := Finding{Type: "missing-producer", Queried: name, Suggestion: v.suggest(name)}
				v.find(v.here, f, "%s reads %q of each lane, but lane %q of %s does not produce it: produce it in every lane, or read the existing nodes with dag.All", v.here.spec.name, name, start(lane.Name()), fan.path())
				return
			case maybe:
				unsure = true
			}
		}
	}
	if unsure {
		v.find(v.here, Finding{Type: "maybe-unavailable", Warning: true, Queried: name},
			"%s reads %q of each lane, but a lane does not produce it on every path: produce it on all of them", v.here.spec.name, name)
	}
}

// mixed adds a finding if a Reduce reads nodes of several fan-outs as one list, or reads two types of nodes from the same lanes
// as separate lists.
func (v *validator) mixed(t dag.AnyType) {
	name := t.Name()
	if v.closes == nil || dag.Reserved(name) || name == dag.Failure.Name() {
		return
	}
	inLanes := false
	for _, fan := range v.closes.fans {
		lanes, item := fan.lanesOf()
		for _, lane := range lanes {
			if v.inLane(lane, item, name).all == never {
				continue
			}
			inLanes = true
			for _, other := range v.closes.read {
				if other.Name() != name && v.inLane(lane, item, other.Name()).all != never {
					v.find(v.here, Finding{Type: "mixed-lanes", Queried: name},
						"it reads %q and %q of the lanes of %s as two lists, which need not pair: read the lanes with dag.Lanes2, or the history with dag.History", other.Name(), name, fan.path())
					return
				}
			}
		}
		e := &v.entries[v.id(name)]
		switch {
		case !inLanes:
		case fan.rounds > 0:
			v.find(v.here, Finding{Type: "mixed-lanes", Queried: name},
				"it reads every %q, also of the rounds before: read those of this round with dag.Lanes, or the history with dag.History", name)
			return
		case e.all != never && int(e.since) < fan.order:
			v.find(v.here, Finding{Type: "mixed-lanes", Queried: name},
				"it reads every %q, also those made before %s: read those of its lanes with dag.Lanes, or the history with dag.History", name, fan.path())
			return
		}
	}
	if inLanes {
		v.closes.read = append(v.closes.read, t)
	}
}

// This file checks matches: whether the extractor fits the latest node, and whether the branches fit the values that the
// extractor can return.

func (v *validator) match(s *spec) {
	unmet := len(v.unmet)
	v.reads(s)
	if len(v.unmet) == unmet && !slices.ContainsFunc(s.queries, dag.Query.IsLatest) {
		v.wantSome("a node to match on")
	}
	v.branches(s)
	v.either(len(s.children), func(i int) { v.visit(s.children[i], i) })
}

// maxFields is the maximum number of fields that a message lists.
const maxFields = 20

// look is a lens at a place, with the type of the value that it reads.
type look struct {
	at   *place
	path []string
	typ  dag.AnyType
}

// lens checks that the latest node has the fields in the path of a lens. It does nothing if the node's type is unknown.
func (v *validator) lens(look look, l latest) {
	if l.ways != nil && l.ways.loop {
		l.ways.lenses = append(l.ways.lenses, look)
		return
	}
	if l.typ == nil {
		return
	}
	if err := look.typ.Err(); err != nil {
		v.find(look.at, Finding{Type: "bad-type"}, "lens path %q: %v", look.path, err)
		return
	}
	at, lens, whole := look.at, look.path, l.typ.Schema()
	for i, field := range lens {
		if _, ok := whole.At(lens[:i+1]...); ok {
			continue
		}
		around, _ := whole.At(lens[:i]...)
		fields := around.Properties()
		hint := "the value there has no fields"
		switch {
		case l.typ.Name() == laneType.Name():
			hint = "it is the marker at the beginning of a lane, use On to look at an earlier node"
		case len(fields) > 0:
			hint = "the fields there are " + strings.Join(fields[:min(len(fields), maxFields)], ", ")
		}
		v.find(at, Finding{Type: "invalid-lens", Queried: field, Suggestion: suggest.Closest(field, slices.Values(fields))},
			"lens path %q is not in the schema of the latest node, %q: %s", lens, l.typ.Name(), hint)
		return
	}
	value, _ := whole.At(lens...)
	if problems := schema.Compatible(value, look.typ.Schema()); len(problems) > 0 {
		v.find(at, Finding{Type: "schema-mismatch"}, "%s cannot read %q of the latest node, %q: %s", at.spec.name, lens, l.typ.Name(), problems[0].Message)
	}
}

// branches checks the branches of a match against the schema of the key: some value must select each branch and, if the schema
// lists all values, each value must select a branch.
func (v *validator) branches(s *spec) {
	if s.decision == nil { // own has already reported this fault
		return
	}
	key := v.keySchema(s)
	if key == nil {
		return
	}
	values := valuesOf(key)
	for _, branch := range s.keys {
		if branch != "" {
			v.reachable(key, values, branch)
		}
	}
	missing := slices.DeleteFunc(slices.Clone(values), func(value string) bool { return slices.Contains(s.keys, value) })
	if len(missing) > 0 && len(s.keys) > 0 {
		v.find(v.here, Finding{Type: "missing-branch", Queried: plain(missing[0])},
			"no branch for %s: add a Case for each of the values, %s", shorten(missing), shorten(values))
	}
}

// keySchema returns the schema of the value on which a match branches, or nil if it
// is unknown.
func (v *validator) keySchema(s *spec) *schema.Schema {
	switch {
	case s.key != nil:
		return s.key()
	case s.lens != nil && v.last.typ != nil:
		if at, ok := v.last.typ.Schema().At(s.lens...); ok {
			return at
		}
	}
	return nil
}

// valuesOf returns the values that the schema lists, as canonical JSON, or nil if the schema allows other values.
func valuesOf(key *schema.Schema) []string {
	values, closed := key.Enum()
	if !closed {
		return nil
	}
	out := make([]string, len(values))
	for i, value := range values {
		text, err := canon.Append(nil, value)
		if err != nil {
			return nil // no Case can match such a value
		}
		out[i] = string(text)
	}
	return out
}

// reachable adds a finding for a branch that no value selects.
func (v *validator) reachable(key *schema.Schema, values []string, branch string) {
	var why string
	switch invalid, ok := errors.AsType[*schema.ValidationError](key.Validate(context.Background(), []byte(branch))); {
	case values != nil && !slices.Contains(values, branch):
		why = "the values are " + shorten(values)
	case values == nil && ok:
		why = invalid.Problems[0].Message
	default:
		return
	}
	f := Finding{Type: "unreachable-branch", Queried: plain(branch)}
	if inner := plain(branch); inner != branch && key.Validate(context.Background(), []byte(inner)) == nil {
		why += fmt.Sprintf("; write Case(%s)", inner)
	} else {
		f.Suggestion = plain(suggest.Closest(branch, slices.Values(values)))
	}
	v.find(v.here, f, "no value selects the branch %s: %s", branch, why)
}

// shorten returns at most maxFields of the values, joined for a message.
func shorten(values []string) string {
	if n := len(values) - maxFields; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(values[:maxFields], ", "), n)
	}
	return strings.Join(values, ", ")
}

// plain decodes key if it is a JSON string, and otherwise returns it unchanged.
func plain(key string) string {
	var s string
	if json.Unmarshal([]byte(key), &s) != nil {
		return key
	}
	return s
}
