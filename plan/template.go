package plan

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/edn"
)

// A template is data with slots. The values of slots are data, too: slots in them are not expanded.
type template struct {
	constant json.RawMessage // canonical JSON; set only if the data contains no slots
	slot     *slotRef
	word     string // name in a keyword that refers to a slot if the slot is defined
	fields   []field
	items    []*template
	text     bool   // the items are the parts of a string
	formula  string // an expression over slots
	at       place
}

type field struct {
	name  string
	key   []byte // the name as JSON
	plain bool   // the template contains no slots
	value *template
}

// A slotRef is {:slot/id …}, {:slot/path …} or {:slot/record …}.
type slotRef struct {
	name   string
	path   []step
	record bool
	at     *place
}

// A step is one step of a path: to an element of a list if element is set, otherwise to a field.
type step struct {
	field   string
	index   int
	element bool
}

func (s step) String() string {
	if s.element {
		return strconv.Itoa(s.index)
	}
	return s.field
}

// String returns the reference in the form used in messages, such as x.text.0.
func (r *slotRef) String() string {
	var b strings.Builder
	b.WriteString(r.name)
	for _, s := range r.path {
		b.WriteString("." + s.String())
	}
	if r.record {
		return "the record of " + b.String()
	}
	return b.String()
}

// template reads the template at a place. If words is true, a keyword that is the whole value of a field refers to the slot of that
// name.
func (r *report) template(at place, words bool) *template {
	t, plain := r.within(at, words)
	if plain {
		r.constant(t)
	}
	return t
}

// within reads the part of a template at a place, and reports whether the part is plain, that is, contains no slots. The caller
// makes a single constant of the largest plain part.
func (r *report) within(at place, words bool) (t *template, plain bool) {
	t = &template{at: at}
	if flat(at.value, words) {
		return t, true
	}
	switch v := at.value; v.Kind() {
	case edn.KindMap:
		switch key := slotKey(v); {
		case key == slotText:
			parts, _ := v.Field(key)
			r.alone(&t.at, key)
			r.sentence(t, place{up: &t.at, key: key, value: parts})
			return t, false
		case key != "":
			t.slot = r.slot(&t.at, key)
			return t, false
		}
		if text, ok := formulaIn(v); ok {
			t.formula = text
			return t, false
		}
		plain = r.fields(t, words)
	case edn.KindVector, edn.KindList, edn.KindSet:
		plain = r.elements(t)
	default:
		if words {
			t.word = word(v)
		}
		return t, t.word == ""
	}
	if plain {
		t.fields, t.items = nil, nil
	}
	return t, plain
}

// flat reports whether v is a non-empty list or map that contains only scalars and no slots. Most data is flat, and needs no
// further work.
func flat(v edn.Value, words bool) bool {
	if v.Len() == 0 || slotKey(v) != "" {
		return false
	}
	if _, ok := formulaIn(v); ok {
		return false
	}
	for _, e := range v.Entries() {
		if e.Len() > 0 || words && word(e) != "" {
			return false
		}
	}
	for _, e := range v.Elements() {
		if e.Len() > 0 {
			return false
		}
	}
	return true
}

// constant sets t.constant to the canonical JSON of t, which has no slots.
func (r *report) constant(t *template) {
	raw, err := edn.ToJSON(t.at.value)
	if err == nil {
		raw, err = canon.Canonical(raw)
	}
	if err != nil {
		r.find(&t.at, stone.Finding{Type: badValue}, "%v", err)
	}
	t.constant = raw
}

// elements reads the elements of a list, and reports whether all are plain. Keywords in a list are never slots.
func (r *report) elements(t *template) (plain bool) {
	parts := make([]bool, 0, t.at.value.Len())
	for i, e := range t.at.value.Elements() {
		item, plain := r.within(place{up: &t.at, index: i, value: e}, false)
		t.items = append(t.items, item)
		parts = append(parts, plain)
	}
	if !slices.Contains(parts, false) {
		return true
	}
	for i, plain := range parts {
		if plain {
			r.constant(t.items[i])
		}
	}
	return false
}

// fields reads the fields of a map, sorts them, and reports whether all are plain.
func (r *report) fields(t *template, words bool) (plain bool) {
	t.fields = make([]field, 0, t.at.value.Len())
	plain = true
	for k, e := range t.at.value.Entries() {
		name := k.Text()
		if kind := k.Kind(); kind != edn.KindKeyword && kind != edn.KindString && kind != edn.KindSymbol {
			r.find(t.at.field("", k), stone.Finding{Type: badValue}, "expected a string, keyword or symbol as a key, found %s", kind)
			continue
		}
		value, alone := r.within(place{up: &t.at, key: name, value: e}, words)
		t.fields = append(t.fields, field{name: name, plain: alone, value: value})
		plain = plain && alone
	}
	if plain {
		return true
	}
	slices.SortStableFunc(t.fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	for i := range t.fields {
		f := &t.fields[i]
		f.key, _ = canon.Append(nil, f.name) // cannot fail, because parsed text is valid
		if f.plain {
			r.constant(f.value)
		}
		if i > 0 && f.name == t.fields[i-1].name {
			r.find(&f.value.at, stone.Finding{Type: badValue}, "the key %q appears twice", f.name)
		}
	}
	return false
}

const (
	slotID     = "slot/id"
	slotPath   = "slot/path"
	slotRecord = "slot/record"
	slotText   = "slot/text"
	celKey     = "cel"
)

// formulaIn returns the expression in v, and reports whether v has the form {:cel "…"}.
func formulaIn(v edn.Value) (text string, ok bool) {
	if v.Kind() != edn.KindMap || v.Len() != 1 {
		return "", false
	}
	for k, e := range v.Entries() {
		if name, named := k.Name(); named && name == celKey && e.Kind() == edn.KindString {
			return e.Text(), true
		}
	}
	return "", false
}

// sentence reads the parts of a string with slots: strings, slots and expressions.
func (r *report) sentence(t *template, at place) {
	t.text = true
	if kind := at.value.Kind(); kind != edn.KindVector && kind != edn.KindList {
		r.find(&at, stone.Finding{Type: badValue}, "expected a vector of text parts, such as [\"Deploy \" {:slot/id :version} \"?\"]")
		return
	}
	for i, e := range at.value.Elements() {
		item, plain := r.within(place{up: &at, index: i, value: e}, false)
		if plain {
			r.constant(item)
		}
		t.items = append(t.items, item)
	}
}

// alone adds a finding for each field beside key, which must be the only one.
func (r *report) alone(at *place, key string) {
	if at.value.Len() == 1 {
		return
	}
	for k := range at.value.Entries() {
		if name, _ := k.Name(); name != key {
			r.find(at.field(name, k), stone.Finding{Type: unknownField, Queried: name}, "%s allows no other field beside it", key)
		}
	}
}

// slotKey returns the key that makes the map v a slot, or "" if v is not a slot.
func slotKey(v edn.Value) string {
	for k := range v.Entries() {
		if isSlotKey(k.Text()) {
			if name, ok := k.Name(); ok {
				return name
			}
		}
	}
	return ""
}

func isSlotKey(text string) bool {
	switch text {
	case slotID, slotPath, slotRecord, slotText, ":" + slotID, ":" + slotPath, ":" + slotRecord, ":" + slotText:
		return true
	}
	return false
}

// word returns the name in a keyword, or "" if v is not a keyword. In JSON, a keyword is a string with a leading colon.
func word(v edn.Value) string {
	name, ok := v.Name()
	if !ok || v.IsJSON() && !strings.HasPrefix(v.Text(), ":") {
		return ""
	}
	return name
}

// slot reads a slot reference. If the reference has faults, slot adds findings, and the result may have no name.
func (r *report) slot(at *place, key string) *slotRef {
	v, _ := at.value.Field(key)
	ref := &slotRef{record: key == slotRecord, at: at}
	r.alone(at, key)
	if key == slotText {
		r.find(at, stone.Finding{Type: badValue}, "expected a slot, as {:slot/id :x}; %s makes a text", key)
		return ref
	}
	if name, ok := v.Name(); ok && key != slotPath {
		ref.name = name
		return ref
	}
	if kind := v.Kind(); kind != edn.KindVector && kind != edn.KindList || v.Len() == 0 {
		r.find(at.field(key, v), stone.Finding{Type: badValue}, "expected the name of a slot, as :x, or a vector of one and the path into it, as [:x :text 0]")
		return ref
	}
	var ok bool
	if ref.name, ok = v.At(0).Name(); !ok {
		r.find(at.field(key, v).item(0, v.At(0)), stone.Finding{Type: badValue}, "expected the name of a slot")
	}
	for i, e := range v.Elements() {
		if i == 0 {
			continue
		}
		s, ok := stepOf(e)
		if !ok {
			r.find(at.field(key, v).item(i, e), stone.Finding{Type: badValue}, "expected the name of a field or the index of an element")
		}
		ref.path = append(ref.path, s)
	}
	return ref
}

func stepOf(v edn.Value) (s step, ok bool) {
	if name, ok := v.Name(); ok {
		return step{field: name}, true
	}
	switch v.Kind() {
	case edn.KindString, edn.KindSymbol:
		return step{field: v.Text()}, true
	case edn.KindInt:
		n, ok := v.Int64()
		return step{index: int(n), element: true}, ok && n >= -1<<31 && n < 1<<31
	}
	return step{}, false
}

// slots calls fn for every reference to a slot in the template, and word for every keyword that may refer to a slot.
func (t *template) slots(fn func(*slotRef), word func(name string, at *place)) {
	switch {
	case t == nil || t.constant != nil:
		return
	case t.slot != nil:
		fn(t.slot)
	case t.word != "":
		word(t.word, &t.at)
	}
	for _, f := range t.fields {
		f.value.slots(fn, word)
	}
	for _, item := range t.items {
		item.slots(fn, word)
	}
}

// formulas calls fn for every expression in the template.
func (t *template) formulas(fn func(text string, at *place)) {
	switch {
	case t == nil || t.constant != nil:
		return
	case t.formula != "":
		fn(t.formula, &t.at)
	}
	for _, f := range t.fields {
		f.value.formulas(fn)
	}
	for _, item := range t.items {
		item.formulas(fn)
	}
}

// A reader returns the values of slots while a plan runs.
type reader interface {
	formula(text string) (json.RawMessage, error)
	slot(*slotRef) (json.RawMessage, error)
	word(name string) (value json.RawMessage, ok bool, err error)
}

// render returns the template with the values of slots inserted. It returns an error if the result exceeds most bytes.
func (t *template) render(r reader, most int) (json.RawMessage, error) {
	if t == nil {
		return json.RawMessage("{}"), nil
	}
	if t.constant != nil {
		return t.constant, nil
	}
	return t.append(nil, r, most)
}

func tooManyBytes(most int) error {
	return stone.Fail(nodeBytesExceeded, "the value has more than %d bytes: pass on less, or raise the limit node-bytes", most)
}

func (t *template) append(dst []byte, r reader, most int) (_ []byte, err error) {
	if len(dst) > most {
		return nil, tooManyBytes(most)
	}
	var value json.RawMessage
	switch {
	case t.constant != nil:
		return append(dst, t.constant...), nil
	case t.slot != nil:
		if value, err = r.slot(t.slot); err == nil && len(dst)+len(value) > most {
			err = tooManyBytes(most)
		}
		if err != nil {
			return nil, err
		}
		return append(dst, value...), nil
	case t.word != "":
		value, ok, err := r.word(t.word)
		if err == nil && !ok {
			return canon.Append(dst, t.word)
		}
		if err == nil && len(dst)+len(value) > most {
			err = tooManyBytes(most)
		}
		if err != nil {
			return nil, err
		}
		return append(dst, value...), nil
	case t.formula != "":
		if value, err = r.formula(t.formula); err == nil && len(dst)+len(value) > most {
			err = tooManyBytes(most)
		}
		if err != nil {
			return nil, err
		}
		return append(dst, value...), nil
	case t.text:
		return t.say(dst, r, most)
	case t.items != nil:
		dst = append(dst, '[')
		for i, item := range t.items {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = item.append(dst, r, most); err != nil {
				return nil, err
			}
		}
		return append(dst, ']'), nil
	}
	dst = append(dst, '{')
	for i, f := range t.fields {
		if i > 0 {
			dst = append(dst, ',')
		}
		if dst, err = f.value.append(append(append(dst, f.key...), ':'), r, most); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// say appends the items as one JSON string: strings unchanged, other values as JSON text.
func (t *template) say(dst []byte, r reader, most int) ([]byte, error) {
	var said strings.Builder
	for _, item := range t.items {
		value, err := item.append(nil, r, most-len(dst)-said.Len())
		if err != nil {
			return nil, err
		}
		part, err := selector(value)
		if err != nil {
			return nil, err
		}
		said.WriteString(part)
	}
	return canon.Append(dst, said.String())
}

// walk returns the part of value at the given path, or false if there is none.
func walk(value json.RawMessage, path []step) (json.RawMessage, bool) {
	for _, s := range path {
		if s.element {
			var list []json.RawMessage
			if json.Unmarshal(value, &list) != nil || s.index < 0 || s.index >= len(list) {
				return nil, false
			}
			value = list[s.index]
			continue
		}
		var object map[string]json.RawMessage
		if json.Unmarshal(value, &object) != nil {
			return nil, false
		}
		var ok bool
		if value, ok = object[s.field]; !ok {
			return nil, false
		}
	}
	return value, true
}
