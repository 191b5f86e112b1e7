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

// This file checks matches: the extractor against the latest node, and the
// branches against the values that the extractor can find.

func (v *validator) match(s *spec) {
	unmet := len(v.unmet)
	v.reads(s)
	if len(v.unmet) == unmet && !slices.ContainsFunc(s.queries, dag.Query.IsLatest) {
		v.wantSome("a node to match on")
	}
	v.branches(s)
	v.either(len(s.children), func(i int) { v.visit(s.children[i], i) })
}

// maxFields bounds the fields that a message lists.
const maxFields = 20

// look is a lens at a place: field names, and the type of the value there.
type look struct {
	at   *place
	path []string
	typ  dag.AnyType
}

// lens checks a lens against the schema of the latest node, if that is known.
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

// branches checks the branches of a match against the schema of its key: every
// branch must be selected by some value and, if the schema lists its values, every
// value must select a branch.
func (v *validator) branches(s *spec) {
	if s.decision == nil { // a fault of the spec, reported by own
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

// valuesOf returns the closed list of values of a schema as canonical JSON, or nil.
func valuesOf(key *schema.Schema) []string {
	values, closed := key.Enum()
	if !closed {
		return nil
	}
	out := make([]string, len(values))
	for i, value := range values {
		text, err := canon.Append(nil, value)
		if err != nil {
			return nil // no Case can have such a value
		}
		out[i] = string(text)
	}
	return out
}

// reachable reports a branch that no value selects.
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

// shorten joins values, at most maxFields of them.
func shorten(values []string) string {
	if n := len(values) - maxFields; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(values[:maxFields], ", "), n)
	}
	return strings.Join(values, ", ")
}

// plain returns the string that key has as JSON, or key itself if it is no JSON string.
func plain(key string) string {
	var s string
	if json.Unmarshal([]byte(key), &s) != nil {
		return key
	}
	return s
}
