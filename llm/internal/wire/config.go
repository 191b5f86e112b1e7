package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/stonelayer/stone/internal/structured"
	"github.com/stonelayer/stone/llm"
)

var versioned = regexp.MustCompile(`/v\d`)

// CompleteURL returns the full address of an endpoint. The base URL may contain a version in its path or be complete already.
// Otherwise, CompleteURL adds the given version.
func CompleteURL(base, version, endpoint string) string {
	u, err := url.Parse(base)
	if err != nil {
		return base
	}
	path := strings.TrimRight(u.Path, "/")
	switch {
	case strings.HasSuffix(path, endpoint):
	case versioned.MatchString(path):
		path += endpoint
	default:
		path += "/" + version + endpoint
	}
	u.Path = path
	return u.String()
}

// Header returns the headers of every request. Configured headers replace the provider's headers.
func Header(own map[string]llm.Secret, provider map[string]string) http.Header {
	h := http.Header{}
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "text/event-stream")
	for name, value := range provider {
		h.Set(name, value)
	}
	for name, value := range own {
		h.Set(name, string(value))
	}
	return h
}

// CheckExtra returns an error if extra contains a reserved field of the body.
func CheckExtra(extra map[string]any, reserved []string) error {
	var bad []string
	for _, key := range slices.Sorted(maps.Keys(extra)) {
		if slices.Contains(reserved, key) {
			bad = append(bad, key)
		}
	}
	if bad == nil {
		return nil
	}
	return fmt.Errorf("Extra must not set %s: use the fields of Config and Request", strings.Join(bad, ", "))
}

// OneLine returns the message of a joined error on one line.
func OneLine(err error) error {
	return errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
}

// Merge sets the extra fields in the body. If the value of a field is nil, Merge removes the field.
func Merge(body, extra map[string]any) {
	for key, value := range extra {
		if value == nil {
			delete(body, key)
			continue
		}
		body[key] = value
	}
}

// Hosted separates the functions among the tools from the provider's own tools. For the provider's tools, it returns the objects
// that represent them in the protocol, or an error if a tool has no such object.
func Hosted(protocol string, list []llm.Tool) (functions []llm.Tool, hosted []map[string]any, err error) {
	for _, tool := range list {
		if tool.Provider == nil {
			functions = append(functions, tool)
			continue
		}
		object, ok := tool.Provider[protocol]
		if !ok {
			return nil, nil, fmt.Errorf("the tool %q is defined only for another provider (%s): use a model of that protocol, or add an object for %q",
				tool.Name, strings.Join(slices.Sorted(maps.Keys(tool.Provider)), ", "), protocol)
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(object, &fields); err != nil || fields == nil {
			return nil, nil, fmt.Errorf("tool %q: its part for %q is not a JSON object", tool.Name, protocol)
		}
		wired := make(map[string]any, len(fields))
		for key, value := range fields {
			wired[key] = value
		}
		hosted = append(hosted, wired)
	}
	return functions, hosted, nil
}

// Tools returns the tools in the form that most protocols use: name, description, and the schema of the input, in the field that
// schema names. The result strict contains the functions whose schema the provider can enforce.
func Tools(d *structured.Dialect, list []llm.Tool, schema string, strict bool) []map[string]any {
	wired := make([]map[string]any, len(list))
	for i, offer := range d.Tools(list, strict) {
		wired[i] = map[string]any{"name": list[i].Name, schema: offer.Schema}
		if offer.Description != "" {
			wired[i]["description"] = offer.Description
		}
		if offer.Strict {
			wired[i]["strict"] = true
		}
	}
	return wired
}

// ToolCall returns a tool call with the arguments received so far. They count as complete if they are valid JSON, or if they are
// empty and the model has finished the call.
func ToolCall(id, name string, args []byte, ended bool) llm.ToolCall {
	call := llm.ToolCall{ID: id, Name: name}
	trimmed := bytes.TrimSpace(args)
	switch {
	case len(trimmed) == 0 && ended, string(trimmed) == "null":
		call.Input = json.RawMessage("{}")
	case json.Valid(trimmed):
		call.Input = bytes.Clone(trimmed)
	default:
		call.InputText = string(args)
	}
	return call
}

// Says reports whether a field with an error has a value. Some servers send empty fields.
func Says(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", "{}", "[]", `""`, "false", "0":
		return false
	}
	return true
}

// Ping reports whether the data of an event only keeps the stream alive, that is, whether it is a word or null rather than an
// object or an HTML page.
func Ping(data []byte) bool { return data[0] != '{' && data[0] != '<' }
