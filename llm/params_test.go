package llm_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/test/fakeserver"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
	"github.com/stonelayer/stone/llm/gemini"
	"github.com/stonelayer/stone/llm/openai"
)

// Every protocol sends each setting in its own form, or refuses it by name before it sends
// anything.
func TestParams(t *testing.T) {
	settings := map[string]llm.Params{
		"temperature":    {Temperature: new(0.5)},
		"top_p":          {TopP: new(0.9)},
		"stop":           {Stop: []string{"END"}},
		"seed":           {Seed: new(int64(7))},
		"tool_choice":    {ToolChoice: "list"},
		"required":       {ToolChoice: "required"},
		"parallel_tools": {ParallelTools: new(false)},
		"effort":         {Effort: "low"},
		"service_tier":   {ServiceTier: "auto"},
		"metadata":       {Metadata: map[string]string{"user_id": "u"}},
	}
	for name, tc := range map[string]struct {
		make func(url string) llm.Model
		want map[string]string // part of the body; "" is refused
	}{
		"chat": {func(url string) llm.Model { return openai.New(openai.Config{Model: "m", URL: url}) }, map[string]string{
			"temperature": `"temperature":0.5`, "top_p": `"top_p":0.9`, "stop": `"stop":["END"]`, "seed": `"seed":7`,
			"tool_choice": `"tool_choice":{"function":{"name":"list"},"type":"function"}`, "required": `"tool_choice":"required"`,
			"parallel_tools": `"parallel_tool_calls":false`, "effort": `"reasoning_effort":"low"`,
			"service_tier": `"service_tier":"auto"`, "metadata": `"metadata":{"user_id":"u"}`,
		}},
		"responses": {func(url string) llm.Model {
			return openai.New(openai.Config{Model: "m", URL: url, Protocol: openai.Responses, Extra: map[string]any{"reasoning": map[string]any{"summary": "auto"}}})
		}, map[string]string{
			"temperature": `"temperature":0.5`, "top_p": `"top_p":0.9`, "stop": "", "seed": "",
			"tool_choice": `"tool_choice":{"name":"list","type":"function"}`, "required": `"tool_choice":"required"`,
			"parallel_tools": `"parallel_tool_calls":false`, "effort": `"reasoning":{"effort":"low","summary":"auto"}`,
			"service_tier": `"service_tier":"auto"`, "metadata": `"metadata":{"user_id":"u"}`,
		}},
		"anthropic": {func(url string) llm.Model { return anthropic.New(anthropic.Config{Model: "m", URL: url}) }, map[string]string{
			"temperature": `"temperature":0.5`, "top_p": `"top_p":0.9`, "stop": `"stop_sequences":["END"]`, "seed": "",
			"tool_choice": `"tool_choice":{"name":"list","type":"tool"}`, "required": `"tool_choice":{"type":"any"}`,
			"parallel_tools": `"tool_choice":{"disable_parallel_tool_use":true,"type":"auto"}`, "effort": `"output_config":{"effort":"low"}`,
			"service_tier": `"service_tier":"auto"`, "metadata": `"metadata":{"user_id":"u"}`,
		}},
		"gemini": {func(url string) llm.Model { return gemini.New(gemini.Config{Model: "m", URL: url}) }, map[string]string{
			"temperature": `"generationConfig":{"temperature":0.5}`, "top_p": `"generationConfig":{"topP":0.9}`,
			"stop": `"generationConfig":{"stopSequences":["END"]}`, "seed": `"generationConfig":{"seed":7}`,
			"tool_choice":    `"toolConfig":{"functionCallingConfig":{"allowedFunctionNames":["list"],"mode":"ANY"}}`,
			"required":       `"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}`,
			"parallel_tools": "", "effort": `"generationConfig":{"thinkingConfig":{"thinkingLevel":"low"}}`, "service_tier": "", "metadata": "",
		}},
		"gemini 2.5": {func(url string) llm.Model {
			return gemini.New(gemini.Config{Model: "models/gemini-2.5-flash", URL: url, Extra: map[string]any{"generationConfig": map[string]any{"thinkingConfig": map[string]any{"includeThoughts": true}}}})
		}, map[string]string{
			"temperature": `"temperature":0.5`, "top_p": `"topP":0.9`, "stop": `"stopSequences":["END"]`, "seed": `"seed":7`,
			"tool_choice": `"mode":"ANY"`, "required": `"mode":"ANY"`,
			"parallel_tools": "", "effort": `"thinkingConfig":{"includeThoughts":true,"thinkingBudget":1024}`, "service_tier": "", "metadata": "",
		}},
		"gemini 2.0": {func(url string) llm.Model { return gemini.New(gemini.Config{Model: "gemini-2.0-flash", URL: url}) }, map[string]string{
			"temperature": `"temperature":0.5`, "top_p": `"topP":0.9`, "stop": `"stopSequences":["END"]`, "seed": `"seed":7`,
			"tool_choice": `"mode":"ANY"`, "required": `"mode":"ANY"`,
			"parallel_tools": "", "effort": "", "service_tier": "", "metadata": "",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var body string
			url := fakeserver.Serve(t, func(w http.ResponseWriter, _ *http.Request, sent []byte) {
				body = string(sent)
				w.WriteHeader(http.StatusBadRequest)
			})
			m := tc.make(url)
			for _, setting := range slices.Sorted(maps.Keys(settings)) {
				body = ""
				req := &llm.Request{Messages: []llm.Message{llm.User("?")}, Params: settings[setting], Tools: []llm.Tool{{Name: "list"}}}
				_, err := llm.Collect(t.Context(), m, req)
				switch want := tc.want[setting]; {
				case want == "" && (body != "" || err == nil || !strings.Contains(err.Error(), "no setting "+setting)):
					t.Errorf("%s: sent %q, error %v: want it refused by name", setting, body, err)
				case want != "" && !strings.Contains(body, want):
					t.Errorf("%s: body %s, want %s (%v)", setting, body, want, err)
				}
				if refused := llm.CheckParams(llm.Fallback(m), settings[setting]) != nil; refused != (tc.want[setting] == "") {
					t.Errorf("%s: the check says refused %t", setting, refused)
				}
			}
			body = ""
			_, err := llm.Collect(t.Context(), m, &llm.Request{Messages: []llm.Message{llm.User("?")}, Params: llm.Params{ToolChoice: "required"}})
			if body != "" || err == nil || !strings.Contains(err.Error(), "offers no tools") {
				t.Errorf("required without tools: error %v", err)
			}
		})
	}
	raw, err := json.Marshal(llm.Request{})
	if err != nil || strings.Contains(string(raw), "params") {
		t.Errorf("%s: a request without settings must keep its key (%v)", raw, err)
	}
	p := llm.Params{Temperature: new(3.0)}
	if err := p.Check(); err == nil {
		t.Error("a temperature of 3 passes")
	}
}
