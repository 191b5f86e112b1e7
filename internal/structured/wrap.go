package structured

import (
	"encoding/json"
	"regexp"
)

// toRoot matches a reference in the ordered text of a schema. It cannot match within a string, where the quotes would be escaped.
var toRoot = regexp.MustCompile(`"\$ref":"#([^"]*)"`)

// toDefs matches a reference to a definition at the top level.
var toDefs = regexp.MustCompile(`^/(\$defs|definitions)/`)

// wrap returns the schema of an object whose property "value" matches the given schema. Definitions stay at the top level, and all
// other references are changed to refer to the definition of the value.
func wrap(text []byte) json.RawMessage {
	var top struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	_ = json.Unmarshal(text, &top) // the schemas true and false have no members
	name := "answer"
	for top.Defs[name] != nil {
		name += "_"
	}
	recursive := false
	text = toRoot.ReplaceAllFunc(text, func(ref []byte) []byte {
		below := toRoot.FindSubmatch(ref)[1]
		if toDefs.Match(below) {
			return ref
		}
		recursive = true
		return []byte(`"$ref":"#/$defs/` + name + string(below) + `"`)
	})
	var value map[string]json.RawMessage
	if json.Unmarshal(text, &value) != nil {
		value = map[string]json.RawMessage{}
	}
	out := map[string]json.RawMessage{
		"type": json.RawMessage(`"object"`), "required": json.RawMessage(`["value"]`), "additionalProperties": json.RawMessage("false"),
	}
	for _, keyword := range []string{"$defs", "definitions"} {
		if value[keyword] != nil {
			out[keyword] = value[keyword]
		}
	}
	for _, keyword := range []string{"$defs", "definitions", "$schema", "$id"} {
		delete(value, keyword)
	}
	if recursive {
		defs := map[string]json.RawMessage{}
		_ = json.Unmarshal(out["$defs"], &defs) // nil if there are no definitions
		defs[name], out["$defs"] = object(value), nil
		out["$defs"], value = object(defs), map[string]json.RawMessage{"$ref": object("#/$defs/" + name)}
	}
	out["properties"] = object(map[string]any{"value": value})
	return object(out)
}

// object returns the JSON of v, which consists only of strings, maps and JSON, and so can always be marshaled.
func object(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic("structured: " + err.Error())
	}
	return data
}
