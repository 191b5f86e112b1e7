package form

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/suggest"
)

// A Map is a map in the data that is being read. Its methods report whether a field exists and is valid. They must not be called
// after the function that received the Map has returned.
type Map struct {
	Value // the map as a whole
	asked []string
	open  bool
}

// Read calls read with v, which must be a map, and returns all faults.
func Read(v edn.Value, read func(*Map)) Faults {
	return ReadValue(v, func(v Value) { v.Map(read) })
}

// ReadValue calls read with v, of any kind, and returns all faults.
func ReadValue(v edn.Value, read func(Value)) Faults {
	l := &log{}
	read(Value{edn: v, log: l})
	if l.more == 0 {
		return l.faults
	}
	return append(l.faults, Fault{Kind: Invalid, Message: fmt.Sprintf("%d further faults are not listed", l.more)})
}

// Map calls read with the value, which must be a map whose keys are names. Fields that read does not request are faults.
func (v Value) Map(read func(*Map)) bool {
	before := v.log.count()
	if v.edn.Kind() != edn.KindMap {
		v.wrong("a map")
		return false
	}
	m := spare.Get().(*Map)
	*m = Map{Value: v.whole(), asked: m.asked[:0]}
	read(m)
	m.close()
	*m = Map{asked: m.asked}
	spare.Put(m)
	return v.log.count() == before
}

// spare holds Maps for reuse, because reading needs a Map, with a list of all possible fields, for each map in the data.
var spare = sync.Pool{New: func() any { return new(Map) }}

// close records a fault for each field that the reader has not requested, and for each field with two spellings.
func (m *Map) close() {
	for key := range m.edn.Entries() {
		name, ok := key.Name()
		switch {
		case !ok:
			m.part(key, "").faultIn(m, UnknownKey, "expected names for keys, found "+show(key))
		case m.isSecond(key, name):
			m.part(key, name).Fault(Duplicate, "the field %q appears twice, with and without a colon", name)
		case !m.open && !slices.Contains(m.asked, name):
			m.unknown(key, name)
		}
	}
}

// isSecond reports whether a key in JSON has a leading colon and the map also contains the same name without a colon.
func (m *Map) isSecond(key edn.Value, name string) bool {
	if !m.edn.IsJSON() || key.Text() == name {
		return false
	}
	_, twice := m.edn.Get(edn.String(name))
	return twice
}

// faultIn records the fault that a key of m is unexpected or missing.
func (v Value) faultIn(m *Map, kind, message string) {
	v.log.add(func() Fault {
		f := v.fault(kind, message, "")
		f.In = m.in
		return f
	})
}

func (m *Map) unknown(key edn.Value, name string) {
	m.log.add(func() Fault {
		known := slices.Compact(slices.Sorted(slices.Values(m.asked)))
		message := "unknown field " + shorten(name) + "; this map has no fields"
		if len(known) > 0 {
			message = "unknown field " + shorten(name) + "; known are " + strings.Join(known, ", ")
		}
		f := m.part(key, name).fault(UnknownKey, message, suggest.Closest(name, slices.Values(known)))
		f.In = m.in
		return f
	})
}

// part returns v as a Value whose path is the path of the field key.
func (m *Map) part(v edn.Value, key string) Value {
	return Value{edn: v, log: m.log, in: m.in, key: key}
}

// AllowRest permits fields that the reader does not request.
func (m *Map) AllowRest() { m.open = true }

// Need records a fault for each of the named fields that is missing.
func (m *Map) Need(keys ...string) {
	for _, key := range keys {
		m.asked = append(m.asked, key)
		if _, ok := m.edn.Field(key); !ok {
			message := fmt.Sprintf("the field %q is missing", key)
			_, short, _ := strings.Cut(key, "/")
			if _, ok := m.edn.Field(short); ok && short != "" && !slices.Contains(m.asked, short) {
				message += fmt.Sprintf("; its name is %s, not %s", key, short)
			}
			m.part(m.edn, key).faultIn(m, Missing, message)
		}
	}
}

// At returns the value of a field and marks the field as known. The methods of a missing field's value return false and change
// nothing.
func (m *Map) At(key string) Value {
	v, _ := m.Field(key)
	return v
}

// Field is like At, but also returns whether the field exists.
func (m *Map) Field(key string) (v Value, ok bool) {
	m.asked = append(m.asked, key)
	found, ok := m.edn.Field(key)
	v = m.part(found, key)
	v.missing = !ok
	return v, ok
}

// FaultAt records a fault in a field. The fault's position is the position of the field's value or, if the field is missing, of
// the map.
func (m *Map) FaultAt(key, kind, format string, args ...any) {
	found, ok := m.edn.Field(key)
	if !ok {
		found = m.edn
	}
	m.part(found, key).Fault(kind, format, args...)
}

// Ptr reads an optional field: it calls read with a new variable, and sets *to to
// that variable if read succeeds:
//
//	form.Ptr(&d.Allow, m.At("allow").Bool)
func Ptr[T any](to **T, read func(*T) bool) bool {
	v := new(T)
	ok := read(v)
	if ok {
		*to = v
	}
	return ok
}
