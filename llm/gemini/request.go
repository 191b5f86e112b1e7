package gemini

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"github.com/stonelayer/stone/internal/structured"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/wire"
)

type object = map[string]any

// content is a turn in the protocol's format.
type content struct {
	Role  string `json:"role"`
	Parts []any  `json:"parts"`
}

// fields returns the fields of the request.
func (m *Model) fields(req *llm.Request, model string, way wire.Way) (object, error) {
	c := &m.config
	system, contents, err := conversation(wire.AfterResults(req.Messages, inResult(model)), req.System)
	if err != nil {
		return nil, err
	}
	body := object{"contents": contents}
	if len(req.Tools) > 0 && before3(model) {
		way = wire.Told
	}
	format, system := m.Schema(structured.Gemini, req.ResponseFormat, way, system)
	if system != "" {
		body["systemInstruction"] = object{"parts": []object{{"text": system}}}
	}
	if len(req.Tools) > 0 {
		functions, tools, err := wire.Hosted("gemini", req.Tools)
		if err != nil {
			return nil, err
		}
		if len(functions) > 0 {
			tools = append([]object{{"functionDeclarations": wire.Tools(structured.Gemini, functions, "parametersJsonSchema", false)}}, tools...)
		}
		body["tools"] = tools
	}
	wire.Merge(body, c.Extra)
	settings := object{}
	if req.MaxTokens > 0 {
		settings["maxOutputTokens"] = req.MaxTokens
	}
	if format != nil || req.ResponseFormat != nil && way == wire.JSONMode {
		settings["responseMimeType"] = "application/json"
	}
	if format != nil {
		settings["responseJsonSchema"] = format
	}
	if len(settings) == 0 {
		return body, nil
	}
	own, ok := body["generationConfig"].(object)
	if !ok && body["generationConfig"] != nil {
		return nil, fmt.Errorf("generationConfig in Extra is a %T: use a map[string]any", body["generationConfig"])
	}
	merged := object{}
	maps.Copy(merged, own)
	maps.Copy(merged, settings)
	body["generationConfig"] = merged
	return body, nil
}

// before3 reports whether a model is older than Gemini 3. Such models reject a request that has both tools and a format. Source:
// Google, Gemini API guide "Structured outputs", section "Structured outputs with tools".
func before3(model string) bool {
	model = strings.TrimPrefix(model, "models/")
	return strings.HasPrefix(model, "gemini-1") || strings.HasPrefix(model, "gemini-2")
}

// conversation returns alternating turns. The results of all tool calls in a turn form one user turn.
func conversation(messages []llm.Message, instruction string) (system string, turns []content, err error) {
	instructions := []string{}
	if instruction != "" {
		instructions = append(instructions, instruction)
	}
	asked := map[string]functionCall{} // the latest call of each ID
	for i, m := range messages {
		role := "user"
		var parts []any
		switch m.Role {
		case llm.RoleSystem:
			instructions = append(instructions, m.Text())
		case llm.RoleAssistant:
			role, parts = "model", modelParts(m, asked)
		case llm.RoleUser:
			parts = contentParts(m.Content)
		case llm.RoleTool:
			call, ok := asked[m.CallID]
			if !ok {
				return "", nil, fmt.Errorf("message %d: it has the result of the tool call %q, but no earlier message makes that call", i, m.CallID)
			}
			parts = []any{resultPart(m, call)}
		}
		n := len(turns)
		joins := n > 0 && turns[n-1].Role == role
		if m.Role == llm.RoleUser && parts == nil && !joins {
			parts = []any{object{"text": ""}} // a tool call must follow a user turn
		}
		switch {
		case len(parts) == 0: // the protocol does not allow turns without parts
		case joins:
			turns[n-1].Parts = append(turns[n-1].Parts, parts...)
		default:
			turns = append(turns, content{role, parts})
		}
	}
	return strings.Join(instructions, "\n\n"), turns, nil
}

func contentParts(list []llm.Part) []any {
	var parts []any
	for _, p := range list {
		if p.Media != nil {
			parts = append(parts, mediaPart(p.Media))
		} else if text := p.Text + string(p.Value); text != "" {
			parts = append(parts, object{"text": text})
		}
	}
	return parts
}

// resultPart returns the result of a tool call. The protocol requires an object, in which the names output and error have a
// meaning.
func resultPart(m llm.Message, call functionCall) object {
	field := "output"
	if m.IsError {
		field = "error"
	}
	var said any = m.Text()
	if len(m.Content) == 1 && m.Content[0].Value != nil {
		said = m.Content[0].Value
	}
	result := object{"name": call.Name, "response": object{field: said}}
	if call.ID != "" {
		result["id"] = call.ID
	}
	var media []object
	for _, p := range m.Content {
		if p.Media != nil {
			media = append(media, mediaPart(p.Media))
		}
	}
	if media != nil {
		result["parts"] = media
	}
	return object{"functionResponse": result}
}

// substitute is the signature that is sent for a tool call without a signature. Without a signature, newer models reject the
// calls of other models. It is base64 of "skip_thought_signature_validator"; source: Google, Gemini API guide "Thought
// signatures", FAQ.
const substitute = "c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I="

// modelParts returns the parts of a model message, and adds its tool calls to asked. They are the parts that were received, if
// the metadata contains them and the message is unchanged. If the message was changed, only the received parts of its tool calls
// are used.
func modelParts(m llm.Message, asked map[string]functionCall) []any {
	kept := received(m)
	calls := map[string]*keptPart{}
	for i := range kept {
		if kept[i].Call != nil {
			calls[kept[i].id] = &kept[i]
		}
	}
	for _, call := range m.ToolCalls {
		asked[call.ID] = functionCall{Name: call.Name}
		if part := calls[call.ID]; part != nil {
			asked[call.ID] = functionCall{Name: call.Name, ID: part.Call.ID}
		}
	}
	if kept != nil && unchanged(m, kept) {
		return verbatim(m, kept)
	}
	parts := contentParts(m.Content)
	for i, call := range m.ToolCalls {
		if part := calls[call.ID]; part != nil {
			parts = append(parts, part.raw)
			continue
		}
		input := call.Input
		if input == nil {
			input = json.RawMessage("{}") // the protocol requires an object even for cut-off arguments
		}
		part := object{"functionCall": object{"name": call.Name, "args": input}}
		if i == 0 {
			part["thoughtSignature"] = substitute
		}
		parts = append(parts, part)
	}
	return parts
}
