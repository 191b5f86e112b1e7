package openai

import (
	"bytes"
	"encoding/json"
	"regexp"

	"github.com/stonelayer/stone/llm"
)

// function is a tool of the client.
type function struct {
	Name        string          `json:"name"`
	Description *string         `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
}

// maxTools bounds the tools of a request.
const maxTools = 1024

// functionName is what the protocols allow as the name of a tool.
var functionName = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,128}$`)

// checkTools checks the tools of a request: a provider that rejects them would count as one that
// fails, for all clients.
func checkTools(tools []llm.Tool) error {
	if len(tools) > maxTools {
		return wrong("tools", "invalid_value", "the request has %d tools: want at most %d", len(tools), maxTools)
	}
	names := map[string]bool{}
	for _, t := range tools {
		switch {
		case !functionName.MatchString(t.Name):
			return wrong("tools", "invalid_value", "a tool has the name %s: want up to 128 of a-z, A-Z, 0-9, \"_\", \"-\", \".\" and \":\"", quote(t.Name))
		case names[t.Name]:
			return wrong("tools", "invalid_value", "two tools have the name %s", quote(t.Name))
		case len(t.Schema) > 0 && !bytes.HasPrefix(t.Schema, []byte("{")):
			return wrong("tools", "invalid_value", "the parameters of the tool %s are no JSON Schema, which is an object", quote(t.Name))
		}
		names[t.Name] = true
	}
	return nil
}

// checkSettings checks the settings and the tools of a request.
func checkSettings(req *llm.Request) error {
	if err := req.Params.Check(); err != nil {
		return wrong("", "invalid_value", "%v", err)
	}
	if req.MaxTokens < 0 {
		return wrong("", "invalid_value", "the answer may have %d tokens: want at least 1", req.MaxTokens)
	}
	return checkTools(req.Tools)
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
