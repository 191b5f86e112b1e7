package openai

import (
	"encoding/json"

	"github.com/stonelayer/stone/llm"
)

// function is a tool of the client.
type function struct {
	Name        string          `json:"name"`
	Description *string         `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
}

func (f function) tool() llm.Tool {
	t := llm.Tool{Name: f.Name}
	if f.Description != nil {
		t.Description = *f.Description
	}
	if string(f.Parameters) != "null" {
		t.Schema = f.Parameters
	}
	return t
}

// toolChoice reads the choice of a tool: auto, none, required, or an object that names one.
// Chats have its name one level deeper.
func toolChoice(raw json.RawMessage) (string, error) {
	var word string
	if len(raw) == 0 || json.Unmarshal(raw, &word) == nil {
		switch word {
		case "", "auto", "none", "required":
			return word, nil
		}
	}
	var named struct {
		Type     string
		Name     string
		Function struct{ Name string }
	}
	if err := json.Unmarshal(raw, &named); err == nil && named.Type == "function" && named.Name+named.Function.Name != "" {
		return named.Name + named.Function.Name, nil
	}
	return "", wrong("tool_choice", "unsupported_parameter", `the tool_choice %s is not supported: want "auto", "none", "required" or a function`, quote(string(raw)))
}

// jsonSchema is a format of an answer.
type jsonSchema struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
}

// format returns the format of a kind.
func format(param, kind string, f jsonSchema) (*llm.Format, error) {
	switch kind {
	case "", "text":
		return nil, nil
	case "json_object":
		return &llm.Format{Schema: json.RawMessage(`{"type":"object"}`)}, nil
	case "json_schema":
		if len(f.Schema) > 0 {
			return &llm.Format{Name: f.Name, Schema: f.Schema}, nil
		}
	}
	return nil, wrong(param, "invalid_value", "the format %s is not supported: want text, json_object or json_schema with a schema", quote(kind))
}
