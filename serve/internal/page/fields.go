package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/text"
)

// A field is a leaf in one or both of two JSON values.
type field struct {
	Name        string // "" for a value without fields
	Before, Now string // "" if absent
}

// Limits on a case's fields.
const (
	mostFields     = 12
	columnsOfField = 160
)

// fieldsOf compares two values. It returns the fields that differ, at most mostFields, and the number of fields that are equal.
func fieldsOf(before, now json.RawMessage) (differ []field, equal int) {
	a, b := leavesOf(before), leavesOf(now)
	for _, name := range slices.Concat(a.names, slices.DeleteFunc(slices.Clone(b.names), func(n string) bool { return a.has(n) })) {
		if a.has(name) && b.has(name) && a.values[name] == b.values[name] {
			equal++
			continue
		}
		if len(differ) < mostFields {
			differ = append(differ, field{Name: name, Before: a.values[name], Now: b.values[name]})
		}
	}
	return differ, equal
}

// expectedOf compares an answer with the expected one and returns the fields that differ. Additional fields of the answer are
// ignored. An expectation without fields is compared with the answer's only field, or with the whole answer.
func expectedOf(want, got json.RawMessage) (differ []field, equal int) {
	expected, have := leavesOf(want), leavesOf(got)
	if expected.has("") && !have.has("") && len(have.names) > 0 {
		whole := text.Cut(text.Line(string(got)), columnsOfField)
		if len(have.names) == 1 {
			whole = have.values[have.names[0]]
		}
		return []field{{Before: expected.values[""], Now: whole}}, 0
	}
	differ, equal = fieldsOf(want, got)
	if len(expected.names) > 0 {
		differ = slices.DeleteFunc(differ, func(f field) bool { return !expected.has(f.Name) })
	}
	return differ, equal
}

// leaves holds the leaves of a JSON value by path, in order.
type leaves struct {
	names  []string
	values map[string]string
}

func (l leaves) has(name string) bool { _, ok := l.values[name]; return ok }

func leavesOf(value json.RawMessage) leaves {
	l := leaves{values: map[string]string{}}
	if len(value) == 0 {
		return l
	}
	var words string
	if json.Unmarshal(value, &words) == nil && strings.HasPrefix(words, "{") && json.Valid([]byte(words)) {
		value = json.RawMessage(words) // models write JSON as text
	}
	l.add("", value)
	return l
}

func (l *leaves) add(path string, value json.RawMessage) {
	in := json.NewDecoder(bytes.NewReader(value))
	open, err := in.Token()
	if mark, ok := open.(json.Delim); ok && err == nil && in.More() {
		for i := 0; in.More(); i++ {
			at := fmt.Sprintf("%s[%d]", path, i)
			if mark == '{' {
				key, _ := in.Token()
				at = strings.TrimPrefix(fmt.Sprintf("%s.%v", path, key), ".")
			}
			var inner json.RawMessage
			if in.Decode(&inner) != nil {
				return
			}
			l.add(at, inner)
		}
		return
	}
	if !l.has(path) {
		l.names = append(l.names, path)
	}
	l.values[path] = text.Cut(text.Line(text.JSON(string(value))), columnsOfField)
}
