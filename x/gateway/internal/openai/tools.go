package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
)

// A function is a function tool of the client.
type function struct {
	Name        string          `json:"name"`
	Description *string         `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
}

// maxTools is the maximum number of tools in a request.
const maxTools = 1024

// functionName matches the tool names that both protocols allow.
var functionName = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,128}$`)

// checkTools returns an error if a tool of a request is invalid. Otherwise a provider would reject the request and then count as
// failing for all clients.
func checkTools(tools []llm.Tool) error {
	if len(tools) > maxTools {
		return Wrong("tools", "invalid_value", "the request has %d tools: want at most %d", len(tools), maxTools)
	}
	names := map[string]bool{}
	for _, t := range tools {
		switch {
		case !functionName.MatchString(t.Name):
			return Wrong("tools", "invalid_value", "a tool has the name %s: want up to 128 of a-z, A-Z, 0-9, \"_\", \"-\", \".\" and \":\"", quote(t.Name))
		case names[t.Name]:
			return Wrong("tools", "invalid_value", "two tools have the name %s", quote(t.Name))
		case len(t.Schema) > 0 && !bytes.HasPrefix(t.Schema, []byte("{")):
			return Wrong("tools", "invalid_value", "the parameters of the tool %s are no JSON Schema, which is an object", quote(t.Name))
		}
		names[t.Name] = true
	}
	return nil
}

// checkSettings checks the settings and the tools of a request.
func checkSettings(req *llm.Request) error {
	if err := req.Params.Check(); err != nil {
		return Wrong("", "invalid_value", "%v", err)
	}
	if req.MaxTokens < 0 {
		return Wrong("", "invalid_value", "the answer may have %d tokens: want at least 1", req.MaxTokens)
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

// A clientTool is a tool of a request. In a chat, its fields are inside function or custom.
type clientTool struct {
	Type string `json:"type"`
	function
	Format   grammar           `json:"format"` // format of a custom tool's input
	Function *function         `json:"function"`
	Custom   *clientTool       `json:"custom"`
	Tools    []json.RawMessage `json:"tools"` // tools in a namespace
}

// A grammar describes the input of a custom tool.
type grammar struct {
	Type       string   `json:"type"`
	Syntax     string   `json:"syntax"`
	Definition string   `json:"definition"`
	Grammar    *grammar `json:"grammar"` // the grammar in a chat
}

// textInput is the schema of a custom tool. The model is offered such a tool as a function with one text argument.
var textInput = json.RawMessage(`{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`)

// custom returns a custom tool as a function. The function's description contains the grammar of the input.
func (t clientTool) custom() llm.Tool {
	f := t.function
	f.Parameters = textInput
	out, form := f.tool(), &t.Format
	if form.Grammar != nil {
		form = form.Grammar
	}
	if form.Definition != "" {
		out.Description = strings.TrimPrefix(fmt.Sprintf("%s\n\nThe input follows this grammar (%s):\n%s", out.Description, form.Syntax, form.Definition), "\n\n")
	}
	return out
}

// textOfCall returns the text that is the input in a call of a custom tool.
func textOfCall(c llm.ToolCall) string {
	var in struct{ Input *string }
	if json.Unmarshal(c.Input, &in) == nil && in.Input != nil {
		return *in.Input
	}
	return string(c.Input) + c.InputText
}

// tools holds the tools of a request in the form that models receive and in the form that the response repeats.
type tools struct {
	offered []llm.Tool
	echo    []any // tools as repeated in the response
	clientNames
}

// clientNames holds the names that the client uses for the tools offered to a model.
type clientNames struct {
	Custom []string          `json:"stone_custom,omitempty"` // names of tools with type custom
	Spaces map[string]string `json:"stone_spaces,omitempty"` // namespaces by tool name
}

// within returns the name under which a tool of the namespace is offered to a model.
func within(space, name string) string {
	if space == "" {
		return name
	}
	return space + "__" + name
}

// of returns the name and the namespace that the client uses for a tool.
func (n clientNames) of(offered string) (name, space string) {
	space = n.Spaces[offered]
	return strings.TrimPrefix(offered, within(space, "")), space
}

// readTools parses the tools of a request. If neither the client nor a model here can execute a tool, readTools returns an error,
// because the answer would be different without the tool. If the configuration says that tools of this type are to be ignored,
// the tool is omitted instead.
func readTools(raw []json.RawMessage, ignores func(kind string) bool) (out tools, err error) {
	out.echo, out.Spaces = []any{}, map[string]string{}
	for i, text := range raw {
		if err := out.read(fmt.Sprintf("tools[%d]", i), "", text, ignores); err != nil {
			return out, err
		}
	}
	return out, nil
}

// read adds a tool. The argument space is the tool's namespace, or "" if it has none.
func (out *tools) read(param, space string, text json.RawMessage, ignores func(kind string) bool) error {
	var t clientTool
	if err := json.Unmarshal(text, &t); err != nil {
		return Wrong(param, "invalid_type", "the tool cannot be read: %v", err)
	}
	offer := func(tool llm.Tool, echo any) {
		if tool.Name = within(space, tool.Name); space != "" {
			out.Spaces[tool.Name] = space
		} else {
			out.echo = append(out.echo, echo)
		}
		out.offered = append(out.offered, tool)
	}
	switch {
	case t.Type == "function":
		if t.Function != nil {
			t.function = *t.Function
		}
		offer(t.tool(), responseTool{t.Type, t.function})
	case t.Type == "custom":
		if t.Custom != nil {
			t = *t.Custom
		}
		offer(t.custom(), text)
		out.Custom = append(out.Custom, within(space, t.Name))
	case t.Type == "namespace" && space == "":
		out.echo = append(out.echo, text)
		for i, inner := range t.Tools {
			if err := out.read(fmt.Sprintf("%s.tools[%d]", param, i), t.Name, inner, ignores); err != nil {
				return err
			}
		}
	case ignores(t.Type):
	default:
		return Wrong(param+".type", "unsupported_parameter", "tools of the type %s are not supported: want function, custom or namespace; :serve {:ignore-tools #{…}} of the server's configuration leaves types out", quote(t.Type))
	}
	return nil
}

// A namedTool is a tool that a request requires by name.
type namedTool struct {
	Type, Name       string
	Function, Custom struct{ Name string }
}

func (t namedTool) name() string { return t.Name + t.Function.Name + t.Custom.Name }

// allowedTools restricts the tools from which the model may choose.
type allowedTools struct {
	Mode  string
	Tools []namedTool
}

// choose sets the tool choice: auto, none, required, an object that names a tool, or an object that lists the allowed tools. In a
// chat, the fields of such an object are nested one level deeper.
func choose(req *llm.Request, raw json.RawMessage) error {
	var word string
	if len(raw) == 0 || json.Unmarshal(raw, &word) == nil {
		switch word {
		case "", "auto", "none", "required":
			req.Params.ToolChoice = word
			return nil
		}
	}
	var chosen struct {
		namedTool
		allowedTools
		Allowed allowedTools `json:"allowed_tools"`
	}
	if err := json.Unmarshal(raw, &chosen); err == nil {
		name := chosen.name()
		switch some := append(chosen.Tools, chosen.Allowed.Tools...); {
		case name != "" && (chosen.Type == "function" || chosen.Type == "custom"):
			req.Params.ToolChoice = name
			return nil
		case chosen.Type == "allowed_tools" && len(some) > 0:
			req.Params.ToolChoice = chosen.Mode + chosen.Allowed.Mode
			req.Tools = slices.DeleteFunc(slices.Clone(req.Tools), func(t llm.Tool) bool {
				return !slices.ContainsFunc(some, func(s namedTool) bool { return s.name() == t.Name })
			})
			return nil
		}
	}
	return Wrong("tool_choice", "unsupported_parameter", `the tool_choice %s is not supported: want "auto", "none", "required", a function, a custom tool or allowed_tools`, quote(string(raw)))
}

// JSONSchema is an answer format that is given by a schema.
type JSONSchema struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
}

// Format returns the response format of this kind.
func Format(param, kind string, f JSONSchema) (*llm.Format, error) {
	switch kind {
	case "", "text":
		return nil, nil
	case "json_object":
		return &llm.Format{Schema: json.RawMessage(`{"type":"object"}`)}, nil
	case "json_schema":
		if len(f.Schema) > 0 {
			if _, err := schema.Parse(f.Schema); err != nil {
				return nil, Wrong(param, "invalid_value", "the schema of the format: %v", err)
			}
			return &llm.Format{Name: f.Name, Schema: f.Schema}, nil
		}
	}
	return nil, Wrong(param, "invalid_value", "the format %s is not supported: want text, json_object or json_schema with a schema", quote(kind))
}
