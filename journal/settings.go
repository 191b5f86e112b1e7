package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/bounds"
)

// Maximum sizes in bytes of the settings recorded with a run.
const (
	maxSettings    = 16 << 10  // for a part
	maxAllSettings = 256 << 10 // for a whole pipeline
)

// settingsOf returns the settings of a part as JSON, or nil if they are not a JSON object or are too long.
func settingsOf(print []byte) json.RawMessage {
	if len(print) > maxSettings || !bytes.HasPrefix(print, []byte("{")) || !json.Valid(print) {
		return nil
	}
	return print
}

// changedSettings returns descriptions of the differences between the old and the new settings of a part, or nil if either are
// unknown.
func changedSettings(was, is json.RawMessage) []string {
	var a, b any
	if json.Unmarshal(was, &a) != nil || json.Unmarshal(is, &b) != nil {
		return nil
	}
	return changedValue("", a, b)
}

// changedValue returns descriptions of the differences between two values, which are at the place at within the settings.
func changedValue(at string, a, b any) (out []string) {
	if reflect.DeepEqual(a, b) {
		return nil
	}
	if a, ok := fieldsOf(a); ok {
		if b, ok := fieldsOf(b); ok {
			all := maps.Clone(a)
			maps.Copy(all, b)
			for _, name := range slices.Sorted(maps.Keys(all)) {
				out = append(out, changedValue(placeIn(at, name), a[name], b[name])...)
			}
			return out
		}
	}
	if at != "" {
		at += " "
	}
	from, to := apart(a, b)
	return []string{at + from + " → " + to}
}

// fieldsOf returns the fields of an object, or the elements of a list by their names if every element has a name.
func fieldsOf(v any) (map[string]any, bool) {
	list, ok := v.([]any)
	if !ok {
		object, ok := v.(map[string]any)
		return object, ok
	}
	fields := map[string]any{}
	for _, one := range list {
		object, _ := one.(map[string]any)
		name, _ := object["name"].(string)
		if name == "" || fields[name] != nil {
			return nil, false
		}
		fields[name] = one
	}
	return fields, true
}

// placeIn returns, in readable form, the place of the field or element called name within the place at. The field "use" of an agent
// contains its tools.
func placeIn(at, name string) string {
	switch {
	case at == "" && name == "use":
		return "tool"
	case name == "tool" && strings.HasPrefix(at, "tool "):
		return at
	case at == "tool":
		return "tool " + name + ":"
	case at == "" || strings.HasSuffix(at, ":"):
		return strings.TrimSpace(at + " " + name)
	}
	return at + "." + name
}

// apart returns two values as text, each shortened to the part around their first difference.
func apart(a, b any) (from, to string) {
	from, to = quoted(a), quoted(b)
	const most, before = 80, 20
	same := 0
	for same < min(len(from), len(to)) && from[same] == to[same] {
		same++
	}
	if max(len(from), len(to)) <= most || same < before {
		return bounds.Cut(from, most), bounds.Cut(to, most)
	}
	cut := func(s string) string { return "…" + bounds.Cut(strings.ToValidUTF8(s[same-before:], ""), most) }
	return cut(from), cut(to)
}

func quoted(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case string:
		return "«" + v + "»"
	}
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(text)
}
