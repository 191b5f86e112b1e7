package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// alternatives reports why the value matches no branch of an anyOf or oneOf. If the type of the value fits exactly one branch, it
// reports the problems of that branch. Otherwise, it reports one problem that lists all branches.
func (r *reporter) alternatives(e *jsonschema.ValidationError) {
	var wanted []string
	var meant []*jsonschema.ValidationError
	for _, branch := range e.Causes {
		if types := mismatch(branch, e.InstanceLocation); types != nil {
			wanted = append(wanted, types...)
		} else {
			meant = append(meant, branch)
		}
	}
	slices.Sort(wanted)
	wanted = slices.Compact(wanted)
	switch len(meant) {
	case 0:
		r.say(e.InstanceLocation, "want %s, got %s", oneOf(wanted), describe(r.value(e.InstanceLocation)))
	case 1:
		r.add(meant[0])
	default:
		var reasons []string
		for n, branch := range meant {
			inner := reporter{document: r.document, schema: r.schema}
			inner.add(branch)
			if len(inner.found) > 0 {
				first := inner.found[0]
				first.Path = r.path(first.at)
				reasons = append(reasons, fmt.Sprintf("(%d) %s", n+1, first.Problem))
			}
		}
		r.say(e.InstanceLocation, "fits none of %d alternatives: %s", len(e.Causes), strings.Join(reasons, "; "))
	}
}

// mismatch returns the types that a branch requires if the value does not match the branch because of its own type.
func mismatch(e *jsonschema.ValidationError, at []string) []string {
	if k, ok := e.ErrorKind.(*kind.Type); ok && len(e.InstanceLocation) == len(at) {
		return k.Want
	}
	if _, ok := e.ErrorKind.(*kind.Reference); ok && len(e.Causes) == 1 {
		return mismatch(e.Causes[0], at)
	}
	return nil
}

// value returns the value at a location in the document.
func (r *reporter) value(at []string) any {
	v := r.document
	for _, token := range at {
		v = within(v, token)
	}
	return v
}

// within returns the property or item of v that token names, or v itself if it has no such part.
func within(v any, token string) any {
	switch c := v.(type) {
	case map[string]any:
		return c[token]
	case []any:
		if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(c) {
			return c[i]
		}
	}
	return v
}

// path returns a location in Go syntax, such as items[3].price. Of a long path, it returns only the end.
func (r *reporter) path(at []string) string {
	path := ""
	v := r.document
	for i, token := range at {
		_, list := v.([]any)
		v = within(v, token)
		switch {
		case len(at)-i > pathLength:
		case list:
			path += "[" + shorten(token) + "]"
		default:
			path = joinPath(path, propertyPath(shorten(token)))
		}
	}
	if len(at) > pathLength {
		return "…" + path
	}
	return path
}

// allowed returns the property names of the object schema at an address.
func (r *reporter) allowed(url string) string {
	if r.schema == nil {
		return ""
	}
	_, fragment, _ := strings.Cut(url, "#")
	node, ok := lookup(r.schema.root, "#"+fragment)
	if o, isObject := node.(*object); ok && isObject {
		if names := o.object("properties").names; len(names) > 0 {
			return "; allowed: " + strings.Join(names, ", ")
		}
	}
	return ""
}
