package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/suggest"
)

// A Value is a value that is being read: the data and its position. Its methods report whether the data is valid, and record a
// fault if it is not. They must not be called after the function that received the Value has returned.
type Value struct {
	edn edn.Value
	log *log
	// The path of the value is in, followed by the field key or, if that is empty, by the index number-1. It is built only when
	// needed, because few values have faults.
	in      string
	key     string
	number  int
	missing bool // the value stands for a missing field
}

// whole returns v in the form in which other values refer to it as their container.
func (v Value) whole() Value { return Value{edn: v.edn, log: v.log, in: v.Path()} }

// EDN returns the underlying EDN value.
func (v Value) EDN() edn.Value { return v.edn }

// Path returns the path from the root to the value, such as nodes[2].done.must[1].
func (v Value) Path() string {
	switch {
	case v.number > 0:
		return v.in + "[" + strconv.Itoa(v.number-1) + "]"
	case v.key == "":
		return v.in
	case v.in == "":
		return shorten(v.key)
	}
	return v.in + "." + shorten(v.key)
}

// Fault records a fault at the value.
func (v Value) Fault(kind, format string, args ...any) {
	v.log.add(func() Fault { return v.fault(kind, fmt.Sprintf(format, args...), "") })
}

// Unknown records that a name is unknown, and suggests the closest known name. What is the kind of thing that has the name, such
// as "strategy".
func (v Value) Unknown(what, name string, known ...string) {
	v.log.add(func() Fault {
		message := fmt.Sprintf("unknown %s %q; known are %s", what, shorten(name), strings.Join(known, ", "))
		if len(known) == 0 {
			message = fmt.Sprintf("unknown %s %q; none is configured: add one", what, shorten(name))
		}
		return v.fault(Unknown, message, suggest.Closest(name, slices.Values(known)))
	})
}

func (v Value) fault(kind, message, suggestion string) Fault {
	line, column := v.edn.Position()
	return Fault{Kind: kind, Path: v.Path(), Line: line, Column: column, Message: message, Suggestion: suggestion}
}

// wrong records that the value is of the wrong kind. A nil value is always of the wrong kind.
func (v Value) wrong(wanted string) {
	if v.missing {
		return
	}
	v.Fault(Invalid, "expected %s, found %s", wanted, show(v.edn))
}

// Name reads a name: a keyword in EDN, a string in JSON.
func (v Value) Name(to *string) bool {
	name, ok := v.edn.Name()
	if !ok {
		v.wrong(v.nameKind())
		return false
	}
	*to = name
	return true
}

// nameKind returns a description of how names are written in the notation of the value.
func (v Value) nameKind() string {
	if v.edn.IsJSON() {
		return "a name (a string such as \"text/respond\")"
	}
	return "a name (a keyword such as :text/respond)"
}

// OneOf reads a name that must be one of the known names.
func (v Value) OneOf(to *string, known ...string) bool {
	name, ok := v.edn.Name()
	if !ok {
		how := ":"
		if v.edn.IsJSON() {
			how = ""
		}
		v.wrong(how + strings.Join(known, ", "+how))
		return false
	}
	if !slices.Contains(known, name) {
		v.Unknown("name", name, known...)
		return false
	}
	*to = name
	return true
}

// NameList reads a vector of names, and keeps their order. Duplicates are faults.
func (v Value) NameList(to *[]string) bool {
	if v.edn.Kind() != edn.KindVector {
		v.wrong("a vector of names")
		return false
	}
	return v.names(to)
}

// NameSet reads a set of names and sorts them. In JSON the set is an array, and in EDN it may also be a vector. Duplicates are
// faults. The result for an empty set is not nil.
func (v Value) NameSet(to *[]string) bool {
	if k := v.edn.Kind(); k != edn.KindSet && k != edn.KindVector {
		v.wrong("a set of names, such as #{:text/answer}")
		return false
	}
	ok := v.names(to)
	if ok {
		slices.Sort(*to)
	}
	return ok
}

func (v Value) names(to *[]string) bool {
	names := make([]string, 0, v.edn.Len())
	seen := map[string]bool{}
	good := v.elements(func(_ int, e Value) {
		var name string
		switch ok := e.Name(&name); {
		case !ok:
		case seen[name]:
			e.Fault(Duplicate, "the name %q appears twice", name)
		default:
			seen[name] = true
			names = append(names, name)
		}
	})
	if good {
		*to = names
	}
	return good
}

// Text reads a string with any content.
func (v Value) Text(to *string) bool {
	if v.edn.Kind() != edn.KindString {
		v.wrong("a string")
		return false
	}
	*to = v.edn.Text()
	return true
}

// Texts reads a vector of strings, and keeps their order. The result for an empty vector is not nil.
func (v Value) Texts(to *[]string) bool {
	texts := []string{}
	good := v.Each(func(_ int, e Value) {
		var text string
		e.Text(&text)
		texts = append(texts, text)
	})
	if good {
		*to = texts
	}
	return good
}

// Bool reads a boolean.
func (v Value) Bool(to *bool) bool {
	b, ok := v.edn.Bool()
	if !ok {
		v.wrong("true or false")
		return false
	}
	*to = b
	return true
}

// Int reads an integer from low to high.
func (v Value) Int(to *int, low, high int) bool {
	n, ok := v.integer(int64(low), int64(high), high == math.MaxInt)
	if ok {
		*to = int(n)
	}
	return ok
}

func (v Value) integer(low, high int64, unbounded bool) (int64, bool) {
	if v.edn.Kind() != edn.KindInt {
		v.wrong("an integer")
		return 0, false
	}
	n, ok := v.edn.Int64()
	if !ok || n < low || n > high {
		v.outOfRange("an integer", strconv.FormatInt(low, 10), strconv.FormatInt(high, 10), unbounded)
		return 0, false
	}
	return n, true
}

// Float reads a finite number from low to high. The bounds may be infinite.
func (v Value) Float(to *float64, low, high float64) bool {
	f, ok := v.edn.Float64()
	if !ok || math.IsNaN(f) || math.IsInf(f, 0) {
		v.wrong("a number")
		return false
	}
	if f < low || f > high {
		v.outOfRange("a number", fmt.Sprint(low), fmt.Sprint(high), math.IsInf(high, 1))
		return false
	}
	*to = f
	return true
}

func (v Value) outOfRange(what, low, high string, unbounded bool) {
	bounds := "from " + low + " to " + high
	if unbounded {
		bounds = "of at least " + low
	}
	v.Fault(OutOfRange, "expected %s %s, found %s", what, bounds, show(v.edn))
}

// Duration reads a number of milliseconds, from 0 to a hundred years, as a time.Duration.
func (v Value) Duration(to *time.Duration) bool {
	const century = 100 * 366 * 24 * time.Hour
	ms, ok := v.integer(0, century.Milliseconds(), false)
	if ok {
		*to = time.Duration(ms) * time.Millisecond
	}
	return ok
}

// JSON reads any value, and converts it to canonical JSON: keywords become strings without the colon, and sets become arrays. A
// value without a JSON form is a fault.
func (v Value) JSON(to *json.RawMessage) bool {
	if v.missing {
		return false
	}
	data, err := edn.ToJSON(v.edn)
	if err != nil {
		v.log.add(func() Fault {
			f := v.fault(Invalid, err.Error(), "")
			if inner := (*edn.Error)(nil); errors.As(err, &inner) {
				f.Line, f.Column, f.Message = inner.Line, inner.Column, inner.Reason
			}
			return f
		})
		return false
	}
	*to = data
	return true
}

// Each calls read for each element of the value, which must be a vector.
func (v Value) Each(read func(i int, v Value)) bool {
	if v.edn.Kind() != edn.KindVector {
		v.wrong("a vector")
		return false
	}
	return v.elements(read)
}

// elements calls read for each element, and reports whether no element has a fault.
func (v Value) elements(read func(i int, v Value)) bool {
	before, path := v.log.count(), v.Path()
	for i, e := range v.edn.Elements() {
		read(i, Value{edn: e, log: v.log, in: path, number: i + 1})
	}
	return v.log.count() == before
}

// Entries calls read for each entry of the value, in the order of the text. The value must be a map, whose keys can be any names.
// Duplicate names are faults.
func (v Value) Entries(read func(name string, v Value)) bool {
	if v.edn.Kind() != edn.KindMap {
		v.wrong("a map")
		return false
	}
	before := v.log.count()
	m := Map{Value: v.whole()}
	for key, value := range v.edn.Entries() {
		name, ok := key.Name()
		switch {
		case !ok:
			m.part(key, "").wrong(m.nameKind() + " for a key")
		case m.isSecond(key, name):
			m.part(key, name).Fault(Duplicate, "the key %q appears twice, with and without a colon", name)
		default:
			read(name, m.part(value, name))
		}
	}
	return v.log.count() == before
}

func (l *log) count() int { return len(l.faults) + l.more }

// show returns a description of a value in a few words.
func show(v edn.Value) string {
	switch v.Kind() {
	case edn.KindNil:
		return "nil"
	case edn.KindString:
		return "the string " + strconv.Quote(shorten(v.Text()))
	case edn.KindKeyword:
		return "the keyword :" + shorten(v.Text())
	case edn.KindSymbol:
		return "the symbol " + shorten(v.Text())
	case edn.KindBool, edn.KindInt, edn.KindFloat, edn.KindDecimal:
		return shorten(v.String())
	}
	return "a " + v.Kind().String()
}

// shorten returns a message or path, cut to one line of limited length.
func shorten(text string) string {
	if len(text) > 40 {
		return bounds.Cut(text, 37)
	}
	return text
}
