package canon

import (
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// A field is one member of the JSON object that a struct is written as.
type field struct {
	name      string
	tagged    bool         // the name comes from a tag
	typ       reflect.Type // as declared
	hops      []uintptr    // offsets of embedded pointers to follow before offset counts
	offset    uintptr
	omitEmpty bool
	omitZero  bool
	quoted    bool
}

// An embedding is a struct type whose fields are promoted, and the way to it.
type embedding struct {
	typ    reflect.Type
	hops   []uintptr
	offset uintptr
}

// fieldsOf lists the members of a struct in canonical order. It goes through
// the embedded structs level by level, as encoding/json does: of the fields
// with one name the shallowest counts, on one level the one with a tag, and
// those that remain ambiguous are left out with all below them.
func fieldsOf(t reflect.Type) []field {
	var fields []field
	decided := map[string]bool{}
	visited := map[reflect.Type]bool{}
	level, count := []embedding{{typ: t}}, map[reflect.Type]int{}
	for len(level) > 0 {
		var next []embedding
		nextCount := map[reflect.Type]int{}
		found := map[string][]field{}
		for _, e := range level {
			if visited[e.typ] {
				continue
			}
			visited[e.typ] = true
			for i := range e.typ.NumField() {
				f, deeper := e.fieldAt(i)
				switch {
				case deeper != nil:
					if nextCount[deeper.typ]++; nextCount[deeper.typ] == 1 {
						next = append(next, *deeper)
					}
				case f != nil && count[e.typ] > 1: // embedded twice: never the only one
					found[f.name] = append(found[f.name], *f, *f)
				case f != nil:
					found[f.name] = append(found[f.name], *f)
				}
			}
		}
		for name, candidates := range found {
			if f := dominant(candidates); f != nil && !decided[name] {
				fields = append(fields, *f)
			}
			decided[name] = true
		}
		level, count = next, nextCount
	}
	slices.SortFunc(fields, func(a, b field) int { return compareKeys(a.name, b.name) })
	return fields
}

// dominant returns the one of the fields of a level that have one name which
// is written, nil if none has precedence.
func dominant(candidates []field) *field {
	tagged := slices.DeleteFunc(slices.Clone(candidates), func(f field) bool { return !f.tagged })
	switch {
	case len(tagged) == 1:
		return &tagged[0]
	case len(candidates) == 1:
		return &candidates[0]
	}
	return nil
}

// fieldAt returns the i-th field of an embedding if it is a member, or else
// the embedding that it brings, or neither.
func (e embedding) fieldAt(i int) (*field, *embedding) {
	sf := e.typ.Field(i)
	target := sf.Type // behind an embedded or quoted pointer
	if target.Kind() == reflect.Pointer && target.Name() == "" {
		target = target.Elem()
	}
	if !sf.IsExported() && (!sf.Anonymous || target.Kind() != reflect.Struct) {
		return nil, nil
	}
	tag := sf.Tag.Get("json")
	if tag == "-" {
		return nil, nil
	}
	name, options, _ := strings.Cut(tag, ",")
	if !validName(name) {
		name = ""
	}
	offset := e.offset + sf.Offset
	if sf.Anonymous && name == "" && target.Kind() == reflect.Struct {
		if target == sf.Type {
			return nil, &embedding{typ: target, hops: e.hops, offset: offset}
		}
		return nil, &embedding{typ: target, hops: append(slices.Clone(e.hops), offset)}
	}
	f := field{name: name, tagged: name != "", typ: sf.Type, hops: e.hops, offset: offset}
	if name == "" {
		f.name = sf.Name
	}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "omitempty":
			f.omitEmpty = true
		case "omitzero":
			f.omitZero = true
		case "string":
			f.quoted = isQuotable(target.Kind())
		}
	}
	return &f, nil
}

func isQuotable(k reflect.Kind) bool {
	return reflect.Bool <= k && k <= reflect.Float64 || k == reflect.String
}

// validName reports whether encoding/json takes a name from a tag; it excludes
// all that a JSON string would have to escape.
func validName(name string) bool {
	for _, r := range name {
		if !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return false
		}
	}
	return name != ""
}
