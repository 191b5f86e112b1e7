package script

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/stonelayer/stone/llm"
)

// geminiModel returns the model's name from the end of a Gemini API path, NAME:METHOD.
func geminiModel(endpoint string) (name string, ok bool) {
	name, method, _ := strings.Cut(endpoint, ":")
	return name, method == "generateContent" || method == "streamGenerateContent"
}

// geminiRequest contains the fields of a Gemini API request that are read.
type geminiRequest struct {
	System   geminiContent   `json:"systemInstruction"`
	Contents []geminiContent `json:"contents"`
	Tools    []struct {
		Functions []struct {
			llm.Tool
			Schema json.RawMessage `json:"parametersJsonSchema"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
	Settings struct {
		MaxTokens int             `json:"maxOutputTokens"`
		Schema    json.RawMessage `json:"responseJsonSchema"`
	} `json:"generationConfig"`
}

type geminiContent struct {
	Role  string `json:"role"`
	Parts []struct {
		Text    string `json:"text"`
		Thought bool   `json:"thought"`
		Call    *struct {
			ID   string          `json:"id"`
			Name string          `json:"name"`
			Args json.RawMessage `json:"args"`
		} `json:"functionCall"`
		Result *struct {
			ID       string                     `json:"id"`
			Response map[string]json.RawMessage `json:"response"`
		} `json:"functionResponse"`
	} `json:"parts"`
}

// parseGemini reads a request to the Gemini API. Media are left out. Calls and results without an ID are numbered.
func parseGemini(body []byte, model string) (*llm.Request, error) {
	var w geminiRequest
	if err := json.Unmarshal(body, &w); err != nil {
		return nil, err
	}
	req := &llm.Request{Model: model, System: w.System.text(), MaxTokens: w.Settings.MaxTokens}
	if w.Settings.Schema != nil {
		req.ResponseFormat = &llm.Format{Schema: w.Settings.Schema}
	}
	for _, t := range w.Tools {
		for _, f := range t.Functions {
			tool := f.Tool
			tool.Schema = f.Schema
			req.Tools = append(req.Tools, tool)
		}
	}
	for _, c := range w.Contents {
		req.Messages = append(req.Messages, c.turns()...)
	}
	return req, nil
}

func (c geminiContent) text() string {
	var b strings.Builder
	for _, p := range c.Parts {
		if !p.Thought {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// turns reads a turn, in which tool results are parts.
func (c geminiContent) turns() []llm.Message {
	var results []llm.Message
	rest := llm.Message{Role: llm.RoleUser}
	if c.Role == "model" {
		rest.Role = llm.RoleAssistant
	}
	for _, p := range c.Parts {
		if p.Call != nil {
			id := cmp.Or(p.Call.ID, fmt.Sprintf("call_%d", len(rest.ToolCalls)))
			rest.ToolCalls = append(rest.ToolCalls, llm.ToolCall{ID: id, Name: p.Call.Name, Input: p.Call.Args})
		}
		if p.Result != nil {
			raw, failed := p.Result.Response["error"]
			if !failed {
				raw = p.Result.Response["output"]
			}
			result := llm.ToolResult(cmp.Or(p.Result.ID, fmt.Sprintf("call_%d", len(results))), string(raw))
			var said string
			if json.Unmarshal(raw, &said) == nil {
				result.Content[0].Text = said
			}
			result.IsError = failed
			results = append(results, result)
		}
	}
	if text := c.text(); text != "" {
		rest.Content = []llm.Part{{Text: text}}
	}
	if len(rest.Content)+len(rest.ToolCalls) > 0 {
		results = append(results, rest)
	}
	return results
}

// gemini writes the answer in the format of the Gemini API.
func (s *stream) gemini(a *Answer) {
	r := &a.Reply
	chunk := func(candidate, usage object) {
		c := object{"candidates": []object{candidate}, "modelVersion": cmp.Or(r.Model, s.model), "responseId": cmp.Or(r.ID, "gemini-script")}
		if usage != nil {
			c["usageMetadata"] = usage
		}
		s.send("", c)
	}
	part := func(p object) { chunk(object{"content": object{"role": "model", "parts": []object{p}}}, nil) }
	for _, text := range pieces(r.Reasoning) {
		part(object{"text": text, "thought": true})
	}
	for _, text := range pieces(r.Text) {
		part(object{"text": text})
	}
	for _, call := range r.ToolCalls {
		var args any = call.Input
		if call.Input == nil { // the arguments were cut off; servers that send strings send them like this
			args = call.InputText
		}
		part(object{"functionCall": object{"id": call.ID, "name": call.Name, "args": args}})
	}
	if a.Err != nil {
		var p *llm.ProviderError
		if errors.As(a.Err, &p) {
			s.send("", object{"error": object{"code": p.Code, "message": p.Message, "status": p.Type}})
		}
		return
	}
	end := object{"finishReason": stopReason(r, "STOP", "STOP")}
	if r.Refusal != "" {
		end = object{"finishReason": "SAFETY", "finishMessage": r.Refusal}
	}
	var usage object
	if u := r.Usage; u.InputTokens != nil || u.OutputTokens != nil {
		output := u.OutputTokens
		if output != nil { // in the Gemini API, this number does not include thinking
			output = new(*output - u.ReasoningTokens)
		}
		usage = object{"promptTokenCount": u.InputTokens, "candidatesTokenCount": output,
			"cachedContentTokenCount": u.CachedInputTokens, "thoughtsTokenCount": u.ReasoningTokens}
	}
	chunk(end, usage)
}
