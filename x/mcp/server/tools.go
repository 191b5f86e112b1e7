package server

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/internal/grants"
	"github.com/stonelayer/stone/serve/api"
)

// A pipeline is a published pipeline that clients see as a tool.
type pipeline struct {
	api.Pipeline
	wrapped bool              // the input is not an object, so it is passed as the argument "input"
	renamed map[string]string // original names of the input's renamed fields, by argument name
}

// toolOf returns the tool that represents a pipeline.
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
	input = p.rename(input)
	return &sdk.Tool{
		Name:         strings.ReplaceAll(p.Name, ".", "_"), // some providers do not accept dots
		Description:  cmp.Or(p.Description, "Run the pipeline "+p.Name+"."),
		InputSchema:  json.RawMessage(input),
		OutputSchema: outcomeSchema(p.Output),
		Annotations:  annotations(p.Pipeline),
	}, p, nil
}

// argument matches the argument names that all providers accept. Anthropic refuses a whole request if any other name occurs in
// it.
var argument = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// rename returns a schema in which arguments with other names are renamed; for example, a plan's slot user/tone becomes
// user_tone.
func (p *pipeline) rename(input json.RawMessage) json.RawMessage {
	var object map[string]json.RawMessage
	var properties map[string]json.RawMessage
	var required []string
	if json.Unmarshal(input, &object) != nil || json.Unmarshal(object["properties"], &properties) != nil {
		return input // the SDK reports the error
	}
	_ = json.Unmarshal(object["required"], &required) // required may be missing
	pairs := []string{}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if argument.MatchString(name) {
			continue
		}
		short := regexp.MustCompile(`[^a-zA-Z0-9_.-]+`).ReplaceAllString(name, "_")
		short = short[:min(len(short), 60)] // leaves room for a number
		to := short
		for n := 2; properties[to] != nil; n++ {
			to = fmt.Sprint(short, "_", n)
		}
		properties[to] = properties[name]
		delete(properties, name)
		if i := slices.Index(required, name); i >= 0 {
			required[i] = to
		}
		if p.renamed == nil {
			p.renamed = map[string]string{}
		}
		p.renamed[to] = name
		pointer := `"$ref":"#/properties/` + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		pairs = append(pairs, pointer+`"`, `"$ref":"#/properties/`+to+`"`, pointer+`/`, `"$ref":"#/properties/`+to+`/`)
	}
	if p.renamed == nil {
		return input
	}
	object["properties"] = encode(properties)
	if len(required) > 0 {
		object["required"] = encode(required)
	}
	return json.RawMessage(strings.NewReplacer(pairs...).Replace(string(encode(object))))
}

// named returns the arguments of a call with the original field names of the input.
func (p pipeline) named(arguments json.RawMessage) json.RawMessage {
	var given map[string]json.RawMessage
	if p.renamed == nil || json.Unmarshal(arguments, &given) != nil {
		return arguments
	}
	for to, name := range p.renamed {
		if v, ok := given[to]; ok {
			delete(given, to)
			given[name] = v
		}
	}
	text, err := json.Marshal(given)
	if err != nil {
		return arguments
	}
	return text
}

// input returns the input of a run, made from the arguments of a call.
func (p pipeline) input(arguments json.RawMessage) (json.RawMessage, error) {
	arguments = p.named(arguments)
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

// outcomeSchema returns the schema of an outcome whose result has the given schema. If result is empty, any result is allowed.
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

// moved returns a schema whose references are adjusted for use as the schema of a property.
func moved(schema json.RawMessage, property string) []byte {
	var compact bytes.Buffer
	if json.Compact(&compact, schema) != nil { // invalid JSON: the SDK reports the error
		return schema
	}
	return bytes.ReplaceAll(compact.Bytes(), []byte(`"$ref":"#`), []byte(`"$ref":"#/properties/`+property))
}

// annotations returns the tool annotations for a pipeline's effects, as a caller needs them. An effect that is not ruled out is
// assumed. Unless the pipeline changes files, runs programs or has effects of the host's own families, it is unknown whether it
// is destructive, and the annotation is omitted. A pipeline that contains undeclared parts gets no favorable annotation.
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
		default: // programs and the host's own families
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
