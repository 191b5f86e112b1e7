// Package fields implements the rules by which encoding/json selects the fields of a struct: names from tags, embedded structs,
// and conflicting names.
package fields

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// A Field is a member of a struct's JSON object.
type Field struct {
	reflect.StructField
	JSON      string // name of the member
	Tagged    bool   // whether the name comes from the tag
	OmitEmpty bool
	OmitZero  bool
	String    bool // written inside a string; only for a number, boolean or string, or a pointer to one
	Path      []int
	// ViaPointer means that a struct on the Path is embedded as a pointer. If the pointer is nil, the field is absent.
	ViaPointer bool
}

// embedded is an embedded struct, whose fields are promoted to the outer struct.
type embedded struct {
	typ        reflect.Type
	path       []int
	viaPointer bool
}

// Of returns the fields that encoding/json writes for a struct, in the order of declaration. Fields of embedded structs are
// included. Of several fields with the same name, the least nested one is written; if there are several of these, the only tagged
// one is written; otherwise none is.
func Of(t reflect.Type) []Field {
	byName := map[string][]Field{}
	visited := map[reflect.Type]bool{}
	level, times := []embedded{{typ: t}}, map[reflect.Type]int{}
	for len(level) > 0 {
		var next []embedded
		nextTimes := map[reflect.Type]int{}
		for _, e := range level {
			if visited[e.typ] {
				continue
			}
			visited[e.typ] = true
			for n := range e.typ.NumField() {
				f, inner := e.field(n)
				switch {
				case inner.typ != nil:
					if nextTimes[inner.typ]++; nextTimes[inner.typ] == 1 {
						next = append(next, inner)
					}
				case f.JSON != "":
					// If a struct is embedded twice at the same level, its fields hide each other.
					copies := min(max(times[e.typ], 1), 2)
					byName[f.JSON] = append(byName[f.JSON], slices.Repeat([]Field{f}, copies)...)
				}
			}
		}
		level, times = next, nextTimes
	}
	var out []Field
	for _, rivals := range byName {
		if f, ok := dominant(rivals); ok {
			out = append(out, f)
		}
	}
	slices.SortFunc(out, func(a, b Field) int { return slices.Compare(a.Path, b.Path) })
	return out
}

func dominant(rivals []Field) (Field, bool) {
	rank := func(f Field) int {
		if f.Tagged {
			return 2 * len(f.Path)
		}
		return 2*len(f.Path) + 1
	}
	slices.SortStableFunc(rivals, func(a, b Field) int { return cmp.Compare(rank(a), rank(b)) })
	if len(rivals) > 1 && rank(rivals[0]) == rank(rivals[1]) {
		return Field{}, false
	}
	return rivals[0], true
}

// At returns the nth field of a struct. If that is an embedded struct, At returns its type instead. Both are zero for a field that
// is not written.
func At(t reflect.Type, n int) (Field, reflect.Type) {
	f, inner := embedded{typ: t}.field(n)
	return f, inner.typ
}

func (e embedded) field(n int) (Field, embedded) {
	sf := e.typ.Field(n)
	target := sf.Type // type without the pointer, for an embedded or quoted field
	if target.Kind() == reflect.Pointer && target.Name() == "" {
		target = target.Elem()
	}
	if !sf.IsExported() && !(sf.Anonymous && target.Kind() == reflect.Struct) {
		return Field{}, embedded{}
	}
	tag := sf.Tag.Get("json")
	if tag == "-" {
		return Field{}, embedded{}
	}
	name, list, _ := strings.Cut(tag, ",")
	options := strings.Split(list, ",")
	path := append(slices.Clone(e.path), n)
	tagged := validName(name)
	if !tagged && sf.Anonymous && target.Kind() == reflect.Struct {
		return Field{}, embedded{target, path, e.viaPointer || sf.Type.Kind() == reflect.Pointer}
	}
	if !tagged {
		name = sf.Name
	}
	kind := target.Kind()
	return Field{
		StructField: sf,
		JSON:        name,
		Tagged:      tagged,
		OmitEmpty:   slices.Contains(options, "omitempty"),
		OmitZero:    slices.Contains(options, "omitzero"),
		String:      slices.Contains(options, "string") && (reflect.Bool <= kind && kind <= reflect.Float64 || kind == reflect.String),
		Path:        path,
		ViaPointer:  e.viaPointer,
	}, embedded{}
}

// validName reports whether encoding/json accepts a name in a tag. If not, encoding/json uses the field's own name.
func validName(s string) bool {
	for _, c := range s {
		if !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", c) && !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			return false
		}
	}
	return s != ""
}
