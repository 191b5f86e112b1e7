package page

import (
	"bytes"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// form asks for an answer that fits a JSON Schema. One without fields asks for JSON.
type form struct {
	Fields []field
	Schema string // as people read it; empty if any text is an answer
}

// field is a property of the answer.
type field struct {
	Name        string
	Title       string
	Description string
	Kind        string // "text", "long", "number", "truth", "choice", "list"
	Choices     []string
	Required    bool
	Default     string

	strings bool // the choices are texts
}

// property is what a form understands of a JSON Schema.
type property struct {
	Type        any               `json:"type"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Enum        []json.RawMessage `json:"enum"`
	Default     json.RawMessage   `json:"default"`
	MaxLength   int               `json:"maxLength"`
	Items       *struct {
		Type any `json:"type"`
	} `json:"items"`
	Properties json.RawMessage `json:"properties"`
	Required   []string        `json:"required"`
}

// fieldOf is the prefix of the names of fields in a form, so that no property can have
// the name of another input.
const fieldOf = "field."

// formOf makes the form for a schema, which may be empty.
func formOf(schema json.RawMessage) form {
	if len(schema) == 0 {
		return form{}
	}
	f := form{Schema: readable(string(schema))}
	var whole property
	if json.Unmarshal(schema, &whole) != nil {
		return f
	}
	if kindOf(whole.Type) != "object" {
		if only, ok := whole.field("", true); ok {
			f.Fields = []field{only}
		}
		return f
	}
	names, properties := ordered(whole.Properties)
	var fields []field
	for i, name := range names {
		one, ok := properties[i].field(name, slices.Contains(whole.Required, name))
		if !ok {
			return f
		}
		fields = append(fields, one)
	}
	f.Fields = fields
	return f
}

// ordered reads properties in the order in which they are written.
func ordered(object json.RawMessage) (names []string, properties []property) {
	in := json.NewDecoder(bytes.NewReader(object))
	if start, err := in.Token(); err != nil || start != json.Delim('{') {
		return nil, nil
	}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return nil, nil
		}
		var p property
		if err := in.Decode(&p); err != nil {
			p = property{} // no field is made of it
		}
		names, properties = append(names, name.(string)), append(properties, p)
	}
	return names, properties
}

// field returns the field that asks for a property. It is false for one that only JSON
// can tell.
func (p property) field(name string, required bool) (field, bool) {
	f := field{Name: fieldOf + name, Title: p.Title, Description: p.Description, Required: required}
	if f.Title == "" {
		f.Title = name
	}
	if len(p.Default) > 0 {
		f.Default = readable(string(p.Default))
	}
	if len(p.Enum) > 0 {
		f.Kind = "choice"
		f.strings = true
		for _, e := range p.Enum {
			var s string
			f.strings = f.strings && json.Unmarshal(e, &s) == nil
			f.Choices = append(f.Choices, readable(string(e)))
		}
		return f, true
	}
	const long = 200 // from which a text has several lines
	switch kindOf(p.Type) {
	case "string":
		if f.Kind = "text"; p.MaxLength > long || p.MaxLength == 0 {
			f.Kind = "long"
		}
	case "number", "integer":
		f.Kind = "number"
	case "boolean":
		f.Kind = "truth"
	case "array":
		f.Kind = "list"
		return f, p.Items != nil && kindOf(p.Items.Type) == "string"
	default:
		return f, false
	}
	return f, true
}

// kindOf returns the type of a schema, that beside null if there are two, or "".
func kindOf(t any) string {
	if all, ok := t.([]any); ok {
		all = slices.DeleteFunc(slices.Clone(all), func(one any) bool { return one == "null" })
		if len(all) != 1 {
			return ""
		}
		t = all[0]
	}
	name, _ := t.(string)
	return name
}

// number is how JSON writes a number. A form sends it as it was typed, with all digits.
var number = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// response returns the JSON that the fields of a form make, "" if they have none.
func (f form) response(values url.Values) string {
	if len(f.Fields) == 1 && f.Fields[0].Name == fieldOf {
		value, _ := f.Fields[0].json(values)
		return value
	}
	var out strings.Builder
	for _, field := range f.Fields {
		if value, ok := field.json(values); ok {
			if out.Len() > 0 {
				out.WriteByte(',')
			}
			out.WriteString(quote(strings.TrimPrefix(field.Name, fieldOf)) + ":" + value)
		}
	}
	if out.Len() == 0 {
		return ""
	}
	return "{" + out.String() + "}"
}

// json returns the value of a field. An optional one that is empty has none.
func (f field) json(values url.Values) (string, bool) {
	text := strings.ReplaceAll(values.Get(f.Name), "\r\n", "\n")
	trimmed := strings.TrimSpace(text)
	switch {
	case trimmed == "" && !f.Required:
		return "", false
	case f.Kind == "list":
		items := []string{}
		for l := range strings.Lines(text) {
			if l = strings.TrimSpace(l); l != "" {
				items = append(items, quote(l))
			}
		}
		return "[" + strings.Join(items, ",") + "]", true
	case f.Kind == "number" && number.MatchString(trimmed), f.Kind == "truth" && (trimmed == "true" || trimmed == "false"):
		return trimmed, true
	case f.Kind == "choice" && !f.strings && json.Valid([]byte(trimmed)):
		return trimmed, true
	}
	return quote(text), true // what does not fit is refused with a reason
}

func quote(s string) string {
	text, err := json.Marshal(s)
	if err != nil { // a string has JSON
		panic(err)
	}
	return string(text)
}
