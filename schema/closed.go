package schema

import (
	"encoding/json"
	"errors"
	"strings"
)

// Closed returns the schema of the same objects without unknown properties, as tools declare
// their arguments: null is not allowed, and additionalProperties is false unless the schema
// has it. A schema that does not have the type object is an error.
func (s *Schema) Closed() (*Schema, error) {
	var o map[string]json.RawMessage
	if err := json.Unmarshal(s.JSON(), &o); err != nil || !strings.Contains(string(o["type"]), `"object"`) {
		return nil, errors.New("want the schema of an object")
	}
	o["type"] = json.RawMessage(`"object"`)
	if _, open := o["additionalProperties"]; !open {
		o["additionalProperties"] = json.RawMessage("false")
	}
	data, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	return Parse(data)
}
