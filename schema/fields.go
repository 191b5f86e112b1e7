package schema

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// field is a struct field as encoding/json sees it.
type field struct {
	reflect.StructField
	name     string // in JSON
	tagged   bool   // the name comes from the tag
	optional bool   // may be left out
	omitted  bool   // is left out when it is empty
	text     bool   // has the "string" option
	index    []int  // the way to it through embedded structs
}

// embedded is a struct whose fields belong to the one around it.
type embedded struct {
	reflect.Type
	index    []int
	optional bool // reached through a pointer: when it is nil, the fields are absent
}

// fieldsOf returns the fields that encoding/json writes for a struct, in declared order. Those of
// embedded structs belong to the outer one: the least nested of one name wins, then the tagged
// one, and if that leaves several, none is written.
func fieldsOf(t reflect.Type) []field {
	byName := map[string][]field{}
	visited := map[reflect.Type]bool{}
	level, times := []embedded{{Type: t}}, map[reflect.Type]int{}
	for len(level) > 0 {
		var next []embedded
		nextTimes := map[reflect.Type]int{}
		for _, e := range level {
			if visited[e.Type] {
				continue
			}
			visited[e.Type] = true
			for n := range e.NumField() {
				f, inner := e.field(n)
				switch {
				case inner.Type != nil:
					if nextTimes[inner.Type]++; nextTimes[inner.Type] == 1 {
						next = append(next, inner)
					}
				case f.name != "":
					// A struct embedded twice at one level hides its own fields.
					copies := min(max(times[e.Type], 1), 2)
					byName[f.name] = append(byName[f.name], slices.Repeat([]field{f}, copies)...)
				}
			}
		}
		level, times = next, nextTimes
	}
	var out []field
	for _, rivals := range byName {
		if f, ok := dominant(rivals); ok {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b field) int { return slices.Compare(a.index, b.index) })
	return out
}

func dominant(rivals []field) (field, bool) {
	rank := func(f field) int {
		if f.tagged {
			return 2 * len(f.index)
		}
		return 2*len(f.index) + 1
	}
	slices.SortStableFunc(rivals, func(a, b field) int { return cmp.Compare(rank(a), rank(b)) })
	if len(rivals) > 1 && rank(rivals[0]) == rank(rivals[1]) {
		return field{}, false
	}
	return rivals[0], true
}

// field returns the nth field, or the struct that is embedded there, or neither.
func (e embedded) field(n int) (field, embedded) {
	sf := e.Field(n)
	target := sf.Type
	if target.Kind() == reflect.Pointer && target.Name() == "" {
		target = target.Elem()
	}
	if !sf.IsExported() && !(sf.Anonymous && target.Kind() == reflect.Struct) {
		return field{}, embedded{}
	}
	tag := sf.Tag.Get("json")
	if tag == "-" {
		return field{}, embedded{}
	}
	name, list, _ := strings.Cut(tag, ",")
	options := strings.Split(list, ",")
	index := append(slices.Clone(e.index), n)
	tagged := validName(name)
	if !tagged && sf.Anonymous && target.Kind() == reflect.Struct {
		return field{}, embedded{target, index, e.optional || sf.Type.Kind() == reflect.Pointer}
	}
	if !tagged {
		name = sf.Name
	}
	omitted := slices.Contains(options, "omitempty") || slices.Contains(options, "omitzero")
	return field{
		StructField: sf,
		name:        name,
		tagged:      tagged,
		optional:    e.optional || omitted,
		omitted:     omitted,
		text:        slices.Contains(options, "string"),
		index:       index,
	}, embedded{}
}

// quoted reports whether the field is a number, boolean or string that is written inside a string.
func (f field) quoted() bool {
	t := f.Type
	if t.Kind() == reflect.Pointer && t.Name() == "" {
		t = t.Elem()
	}
	if !f.text || t != reflect.TypeFor[json.Number]() && byMethod(t, f.Type != t) != nil {
		return false
	}
	kind := t.Kind()
	return kind >= reflect.Bool && kind <= reflect.Float64 || kind == reflect.String
}

// validName reports whether encoding/json takes the name of a tag; otherwise it takes the field's.
func validName(s string) bool {
	for _, c := range s {
		if !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", c) && !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			return false
		}
	}
	return s != ""
}
