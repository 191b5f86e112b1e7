package schema

import (
	"context"
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
)

// Restore converts a JSON value that matches a projection of s back to a value that matches s; see [Subset.Encode] and
// [Subset.AllRequired]. It omits properties that are null where s does not allow null, converts lists of members to objects,
// replaces JSON text with its value where s does not allow a string, and gives renamed properties their original names. If data
// already matches s, it is returned unchanged, except that an object whose only property is "json" is replaced with its value where
// s allows any value. Text that is not JSON is also returned unchanged.
func (s *Schema) Restore(ctx context.Context, data []byte) []byte {
	value, err := decode(data)
	if err != nil {
		return data
	}
	return appendJSON(nil, s.restore(ctx, value, nil), true)
}

func (s *Schema) restore(ctx context.Context, value any, path []string) any {
	at, _ := s.At(path...)
	if text, ok := jsonText(value, at == nil || at.takes("string")); ok && (at == nil || at.Validate(ctx, appendJSON(nil, value, true)) != nil) {
		return text
	}
	if list, ok := value.([]any); ok && at.takes("object") && !at.takes("array") {
		if members, ok := membersIn(list); ok {
			value = members
		}
	}
	below := func(name string) []string { return append(path[:len(path):len(path)], name) }
	switch v := value.(type) {
	case []any:
		for i, e := range v {
			v[i] = s.restore(ctx, e, below("0")) // a Subset has no elements of different schemas
		}
	case *object:
		for _, name := range at.Properties() {
			if other := alias(name); v.has(other) && !v.has(name) {
				v.values[name] = v.values[other]
				v.names[slices.Index(v.names, other)] = name
				delete(v.values, other)
			}
		}
		for _, name := range slices.Clone(v.names) {
			if v.values[name] != nil {
				v.values[name] = s.restore(ctx, v.values[name], below(name))
			} else if at, ok := s.At(below(name)...); ok && at.Validate(ctx, []byte("null")) != nil {
				v.remove(name)
			}
		}
	}
	return value
}

// takes reports whether the schema explicitly allows values of a type. It returns false for a schema that allows any value.
func (s *Schema) takes(typ string) bool {
	found := false
	if s != nil {
		budget := maxBranches
		s.branches(s.view(s.root), &budget, func(v view) {
			types, known := v.types()
			found = found || known && slices.Contains(types, typ)
		})
	}
	return found
}

// textName is the only property of an object that contains a value as JSON text. Such an object is used where a string could also
// be the value itself.
const textName = "json"

// jsonText returns the value that is encoded as JSON text, either in an object or, where no string is allowed, in a string.
func jsonText(value any, texts bool) (inner any, ok bool) {
	text, alone := value.(string)
	if o, is := value.(*object); is && len(o.names) == 1 {
		text, ok = o.values[textName].(string)
	}
	if alone && texts || !alone && !ok {
		return nil, false
	}
	inner, err := decode([]byte(text))
	return inner, err == nil
}

// Names of a member's two properties in a list of members.
const memberKey, memberValue = "key", "value"

// membersIn returns the object with the members in list. It returns false if an element of list is not a member or a name occurs
// twice.
func membersIn(list []any) (*object, bool) {
	out := newObject()
	for _, e := range list {
		member, ok := e.(*object)
		if !ok || len(member.names) != 2 || !member.has(memberValue) {
			return nil, false
		}
		name, ok := member.values[memberKey].(string)
		if !ok || out.has(name) {
			return nil, false
		}
		out.set(name, member.values[memberValue])
	}
	return out, true
}

var notInAlias = regexp.MustCompile(`[^a-zA-Z0-9_.-]`)

// alias returns the name that replaces name in a projection for a service that rejects name. It consists of name, with "_" in place
// of characters that are not allowed, and a digest that keeps names distinct.
func alias(name string) string {
	stays := notInAlias.ReplaceAllString(name, "_")
	return fmt.Sprintf("%s_%.3x", stays[:min(len(stays), 50)], sha256.Sum256([]byte(name)))
}
