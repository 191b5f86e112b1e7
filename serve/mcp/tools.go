package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/internal/grants"
	"github.com/stonelayer/stone/serve/api"
)

// A pipeline is a published one, as a tool.
type pipeline struct {
	api.Pipeline
	wrapped bool // its input is the argument "input", since it is not an object
}

// toolOf describes a pipeline as a tool.
func toolOf(described api.Pipeline) (*sdk.Tool, pipeline, error) {
	p := pipeline{Pipeline: described}
	var head struct {
		Type any `json:"type"`
	}
	if err := json.Unmarshal(p.Input, &head); err != nil {
		return nil, p, fmt.Errorf("mcp: pipeline %q: its input schema: %w", p.Name, err)
	}
	p.wrapped = head.Type != "object"
	input := p.Input
	if p.wrapped {
		input = fmt.Appendf(nil, `{"type":"object","properties":{"input":%s},"required":["input"],"additionalProperties":false}`, moved(p.Input, "input"))
	}
	return &sdk.Tool{
		Name:         p.Name,
		Description:  cmp.Or(p.Description, "Run the pipeline "+p.Name+"."),
		InputSchema:  json.RawMessage(input),
		OutputSchema: outcomeSchema(p.Output),
		Annotations:  annotations(p.Pipeline),
	}, p, nil
}

// input returns the input of a run from the arguments of a call.
func (p pipeline) input(arguments json.RawMessage) (json.RawMessage, error) {
	if text := bytes.TrimSpace(arguments); len(text) == 0 || !p.wrapped && text[0] == '{' {
		return arguments, nil
	}
	var given struct {
		Input json.RawMessage `json:"input"`
	}
	read := json.NewDecoder(bytes.NewReader(arguments))
	read.DisallowUnknownFields()
	if err := read.Decode(&given); err != nil && !p.wrapped {
		return nil, errors.New("the arguments: want an object")
	} else if err != nil {
		return nil, fmt.Errorf(`the arguments: want an object with "input" and nothing else: %s`, strings.TrimPrefix(err.Error(), "json: "))
	}
	return given.Input, nil
}

// outcomeSchema is the schema of an outcome with a result of the schema, or any result if
// that is empty.
func outcomeSchema(result json.RawMessage) json.RawMessage {
	if len(result) == 0 {
		result = json.RawMessage(`{}`)
	}
	return fmt.Appendf(nil, `{"type":"object","properties":{`+
		`"run":{"type":"string","description":"id of the run"},`+
		`"state":{"type":"string","enum":["running","drained","interrupted","answered","waiting","done","failed","canceled","damaged"]},`+
		`"result":%s,`+
		`"node":{"type":"string","description":"resource with the result"},`+
		`"failure":{"type":"object"},`+
		`"questions":{"type":"array","items":{"type":"object"},"description":"that wait for run_answer"},`+
		`"usage":{"type":"object"}},"required":["run","state"]}`, moved(result, "result"))
}

// moved is a schema that becomes a property's schema: its references follow.
func moved(schema json.RawMessage, property string) []byte {
	var compact bytes.Buffer
	if json.Compact(&compact, schema) != nil { // it is not JSON, which the SDK reports
		return schema
	}
	return bytes.ReplaceAll(compact.Bytes(), []byte(`"$ref":"#`), []byte(`"$ref":"#/properties/`+property))
}

// annotations says what the effects of a pipeline mean for its caller. What its effects do
// not rule out is said to happen: without an effect on files, programs or families of the
// host, whether it destroys anything is not known, and left open. Of a pipeline with parts that
// state no effects nothing good is said.
func annotations(p api.Pipeline) *sdk.ToolAnnotations {
	known := len(p.Undeclared) == 0
	reads, open, writes := known, false, false
	for _, e := range p.Effects {
		harmless := slices.Contains([]string{effect.None, effect.Ask, effect.FSRead}, e)
		reads = reads && harmless
		switch {
		case harmless:
		case grants.Covers(effect.Net, e):
			open = true
		case grants.Covers(effect.FS, e):
			writes = true
		default: // programs, and what a host calls its own
			open, writes = true, true
		}
	}
	a := &sdk.ToolAnnotations{ReadOnlyHint: reads, IdempotentHint: reads && !p.Asks}
	if known || open {
		a.OpenWorldHint = &open
	}
	if reads || writes {
		a.DestructiveHint = &writes
	}
	return a
}
