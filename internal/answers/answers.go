// Package answers converts the JSON Schema of an answer into a form, and a completed form into an answer. Pages and MCP clients
// use it.
package answers

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/text"
)

// A Form describes an input form for an answer that matches a JSON Schema. A Form without fields has a single input for JSON
// text.
type Form struct {
	Fields []Field
	Schema string // human-readable schema; empty if any text is a valid answer
}

// A Field is a property of the answer, or the whole answer.
type Field struct {
	Name        string // name of the property; empty for the whole answer
	Title       string
	Description string
	Kind        string // "text", "long", "number", "truth", "choice", "list" (of texts, one per line) or "json"
	Choices     []string
	Required    bool
	Default     string

	// Type and Keywords describe the property if it is a string, a number or a boolean: "string",
	// and keywords such as "minimum" with their values.
	Type     string
	Keywords map[string]json.RawMessage

	strings bool // the choices are texts
}

// property holds the keywords of a JSON Schema that forms support.
type property struct {
	Type        any               `json:"type"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Enum        []json.RawMessage `json:"enum"`
	Default     json.RawMessage   `json:"default"`
	MaxLength   int               `json:"maxLength"`
	Items       *struct {
		Type any             `json:"type"`
		Enum json.RawMessage `json:"enum"`
	} `json:"items"`
	Properties json.RawMessage `json:"properties"`
	Required   []string        `json:"required"`

	whole json.RawMessage
}

// UnmarshalJSON decodes a schema and also keeps its JSON text.
func (p *property) UnmarshalJSON(data []byte) error {
	type plain property
	err := json.Unmarshal(data, (*plain)(p))
	p.whole = slices.Clone(data)
	return err
}

// Of returns the form for an answer that matches the given schema, which may be empty.
func Of(schema json.RawMessage) Form {
	if len(schema) == 0 {
		return Form{}
	}
	f := Form{Schema: text.JSON(string(schema))}
	var whole property
	if json.Unmarshal(schema, &whole) != nil || bytes.Contains(schema, []byte(`"$ref"`)) {
		return f
	}
	if kindOf(whole.Type) != "object" {
		if only := whole.field("", true); only.Kind != "json" {
			f.Fields = []Field{only}
		}
		return f
	}
	names, properties := ordered(whole.Properties)
	for i, name := range names {
		f.Fields = append(f.Fields, properties[i].field(name, slices.Contains(whole.Required, name)))
	}
	return f
}

// ordered returns the properties of an object in their source order.
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
			p = property{} // an unsupported property is requested as JSON
		}
		names, properties = append(names, name.(string)), append(properties, p)
	}
	return names, properties
}

// field returns the form field for a property.
func (p property) field(name string, required bool) Field {
	f := Field{Name: name, Title: p.Title, Description: p.Description, Required: required}
	if f.Title == "" {
		f.Title = name
	}
	if len(p.Default) > 0 {
		f.Default = text.JSON(string(p.Default))
	}
	if len(p.Enum) > 0 {
		f.Kind = "choice"
		f.strings = true
		for _, e := range p.Enum {
			var s string
			f.strings = f.strings && json.Unmarshal(e, &s) == nil
			f.Choices = append(f.Choices, text.JSON(string(e)))
		}
		return f
	}
	const long = 200 // maximum length above which a text field has several lines
	switch t := kindOf(p.Type); t {
	case "string":
		if f.Kind = "text"; p.MaxLength > long || p.MaxLength == 0 {
			f.Kind = "long"
		}
		f.keep(p, t, "minLength", "maxLength", "format")
		return f
	case "number", "integer":
		f.Kind = "number"
		f.keep(p, t, "minimum", "maximum")
		return f
	case "boolean":
		f.Kind = "truth"
		f.keep(p, t)
		return f
	case "array":
		if p.Items != nil && kindOf(p.Items.Type) == "string" {
			f.Kind = "list"
			var lines []string
			if json.Unmarshal(p.Default, &lines) == nil {
				f.Default = strings.Join(lines, "\n")
			}
			return f
		}
	}
	f.Kind = "json"
	f.Description = strings.TrimSpace(f.Description + " JSON of the schema " + string(p.whole))
	return f
}

// keep sets Type and Keywords from a property's type and some of its keywords.
func (f *Field) keep(p property, t string, names ...string) {
	f.Type = t
	var all map[string]json.RawMessage
	if json.Unmarshal(p.whole, &all) != nil {
		return
	}
	for _, name := range append(names, "default") {
		if value, ok := all[name]; ok {
			if f.Keywords == nil {
				f.Keywords = map[string]json.RawMessage{}
			}
			f.Keywords[name] = value
		}
	}
}

// kindOf returns the only type that a schema allows besides null, or "" if it allows none or several.
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

// number matches a JSON number. A form's number is sent as typed, with all its digits.
var number = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// Response returns the answer in a completed form as JSON, or "" if the form is empty. The function get returns the content of
// the field with the given name.
func (f Form) Response(get func(name string) string) string {
	if len(f.Fields) == 1 && f.Fields[0].Name == "" {
		value, _ := f.Fields[0].json(get)
		return value
	}
	var out strings.Builder
	for _, field := range f.Fields {
		if value, ok := field.json(get); ok {
			if out.Len() > 0 {
				out.WriteByte(',')
			}
			out.WriteString(quote(field.Name) + ":" + value)
		}
	}
	if out.Len() == 0 {
		return ""
	}
	return "{" + out.String() + "}"
}

// json returns the value of a field as JSON. It returns false for an empty optional field.
func (f Field) json(get func(string) string) (string, bool) {
	whole := strings.ReplaceAll(get(f.Name), "\r\n", "\n")
	trimmed := strings.TrimSpace(whole)
	switch {
	case trimmed == "" && !f.Required:
		return "", false
	case f.Kind == "list":
		items := []string{}
		for l := range strings.Lines(whole) {
			if l = strings.TrimSpace(l); l != "" {
				items = append(items, quote(l))
			}
		}
		return "[" + strings.Join(items, ",") + "]", true
	case f.Kind == "number" && number.MatchString(trimmed), f.Kind == "truth" && (trimmed == "true" || trimmed == "false"):
		return trimmed, true
	case (f.Kind == "json" || f.Kind == "choice" && !f.strings) && json.Valid([]byte(trimmed)):
		return trimmed, true
	}
	return quote(whole), true // a value that does not match is refused later, with a reason
}

func quote(s string) string {
	text, err := json.Marshal(s)
	if err != nil { // cannot fail: every string has a JSON form
		panic(err)
	}
	return string(text)
}
