package schema

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stonelayer/stone/internal/pattern"
)

// maxUnchecked is the maximum number of keywords that ParseForeign omits.
const maxUnchecked = 20

// ParseForeign reads a schema that another program wrote, such as the input schema of a tool. It omits keywords that cannot be
// compiled, and returns their places. The resulting schema accepts values that these keywords might reject. The keyword nullable of
// OpenAPI 3.0 is supported. If no keyword can be kept, ParseForeign returns the error of [Parse].
func ParseForeign(data []byte) (s *Schema, unchecked []string, err error) {
	data = withNull(data)
	if s, err = Parse(data); err == nil || len(data) > maxText {
		return s, nil, err
	}
	root, wrong := decode(data)
	top, ok := root.(*object)
	if wrong != nil || !ok {
		return nil, nil, err
	}
	f := &foreign{root: top}
	f.sweep(top, "", uncompilable)
	for range maxUnchecked {
		document, err := decodeDocument(appendJSON(nil, top, false))
		if err != nil {
			break
		}
		if _, err = compileLibrary(document); err == nil {
			return newSchema(top), f.unchecked, nil
		}
		if !f.leaveOut(err) {
			break
		}
	}
	return nil, nil, err
}

// withNull returns data, changed such that schemas marked as nullable (OpenAPI 3.0) accept null.
func withNull(data []byte) []byte {
	if !bytes.Contains(data, []byte(`"nullable"`)) || len(data) > maxText {
		return data
	}
	root, err := decode(data)
	if err != nil {
		return data
	}
	var read func(string, any) any
	read = func(_ string, node any) any {
		o, ok := node.(*object)
		if !ok {
			return node
		}
		o = o.mapSchemas(read)
		if o.values["nullable"] != true {
			return o
		}
		o.remove("nullable")
		return nullable(o)
	}
	return appendJSON(nil, read("", root), false)
}

// foreign is a schema from which keywords are removed until it can be compiled.
type foreign struct {
	root      *object
	unchecked []string
}

// sweep removes, from all schemas at and below a node, the keywords for which match returns true.
func (f *foreign) sweep(node any, where string, match func(f *foreign, keyword string, value any) bool) {
	o, ok := node.(*object)
	if !ok {
		return
	}
	for _, keyword := range slices.Clone(o.names) {
		if match(f, keyword, o.values[keyword]) {
			f.drop(o, where, keyword)
		}
	}
	if patterns := o.object("patternProperties"); len(patterns.names) > 0 {
		for _, name := range slices.Clone(patterns.names) {
			if uncompilable(f, "pattern", name) {
				f.drop(patterns, where+"/patternProperties", name)
				o.remove("additionalProperties") // additionalProperties would reject properties that the pattern allows
				o.remove("unevaluatedProperties")
			}
		}
	}
	for _, keyword := range o.names {
		switch v := o.values[keyword].(type) {
		case []any:
			for i, below := range v {
				if slices.Contains(schemaListKeywords, keyword) {
					f.sweep(below, where+"/"+keyword+"/"+strconv.Itoa(i), match)
				}
			}
		case *object:
			if slices.Contains(schemaKeywords, keyword) {
				f.sweep(v, where+"/"+keyword, match)
			} else if slices.Contains(schemaMapKeywords, keyword) {
				for _, name := range v.names {
					f.sweep(v.values[name], where+"/"+keyword+"/"+name, match)
				}
			}
		}
	}
}

func (f *foreign) drop(o *object, where, keyword string) {
	o.remove(keyword)
	place := strings.TrimPrefix(where+"/"+keyword, "/")
	if !slices.Contains(f.unchecked, place) {
		f.unchecked = append(f.unchecked, place)
	}
}

// uncompilable reports whether no engine can compile a pattern.
func uncompilable(_ *foreign, keyword string, value any) bool {
	text, ok := value.(string)
	if keyword != "pattern" || !ok {
		return false
	}
	_, err := pattern.CompileECMA(text)
	return err != nil
}

// unresolved reports whether the keyword is a reference that leads outside the schema or cannot be resolved.
func unresolved(f *foreign, keyword string, value any) bool {
	switch keyword {
	case "$ref", "$dynamicRef", "$recursiveRef":
		ref, _ := value.(string)
		_, ok := lookup(f.root, ref)
		return !ok
	}
	return false
}

// leaveOut removes the keyword that caused a compiler error, and reports whether it found one.
func (f *foreign) leaveOut(err error) bool {
	before := len(f.unchecked)
	var invalid *jsonschema.SchemaValidationError
	var problems *jsonschema.ValidationError
	if errors.As(err, &invalid) && errors.As(invalid.Err, &problems) {
		f.invalid(problems)
		return len(f.unchecked) > before
	}
	f.sweep(f.root, "", unresolved)
	if len(f.unchecked) == before && f.root.has("$schema") {
		f.drop(f.root, "", "$schema")
	}
	return len(f.unchecked) > before
}

// invalid removes keywords whose values the meta-schema rejects.
func (f *foreign) invalid(problem *jsonschema.ValidationError) {
	for _, cause := range problem.Causes {
		f.invalid(cause)
	}
	if len(problem.Causes) > 0 {
		return
	}
	var in *object // innermost object on the path, and its member to remove
	var name, where, above string
	node := any(f.root)
	for _, token := range problem.InstanceLocation {
		switch v := node.(type) {
		case *object:
			in, name, above = v, token, where
			node = v.values[token]
		case []any:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(v) {
				return
			}
			node = v[i]
		default:
			return
		}
		where += "/" + token
	}
	if in != nil && in.has(name) {
		f.drop(in, above, name)
	}
}
