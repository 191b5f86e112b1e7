package llm_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/test/fakeserver"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
	"github.com/stonelayer/stone/llm/gemini"
	"github.com/stonelayer/stone/llm/openai"
	"github.com/stonelayer/stone/llm/script"
)

// formal is a server that refuses response formats. Asked says how each request asked for one.
type formal struct {
	refuses map[string]string // status and message by the way
	asked   []string
	t       *testing.T
}

func (s *formal) answer(w http.ResponseWriter, r *http.Request, text []byte) {
	var body struct {
		ResponseFormat struct{ Type string } `json:"response_format"`
		Text           struct{ Format struct{ Type string } }
		OutputConfig   json.RawMessage `json:"output_config"`
		Generation     struct {
			Type   string          `json:"responseMimeType"`
			Schema json.RawMessage `json:"responseJsonSchema"`
		} `json:"generationConfig"`
	}
	if err := json.Unmarshal(text, &body); err != nil {
		s.t.Error(err)
	}
	way := "told"
	switch types := body.ResponseFormat.Type + body.Text.Format.Type; {
	case types == "json_schema", body.OutputConfig != nil, body.Generation.Schema != nil:
		way = "enforced"
	case types == "json_object", body.Generation.Type != "":
		way = "json"
	}
	s.asked = append(s.asked, way)
	if !bytes.Contains(text, []byte("JSON that fits this schema")) {
		s.t.Errorf("a foreign server is not told the schema: %s", text)
	}
	var status int
	if refusal := s.refuses[way]; refusal != "" {
		if _, err := fmt.Sscan(refusal, &status); err != nil {
			s.t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":{"message":%q,"type":"invalid_request_error"}}`, refusal[4:])
		return
	}
	script.Func(func(int, *llm.Request) script.Answer { return script.Text(`{"a":1}`) }).ServeHTTP(w, r)
}

// TestFormats asks servers that take no schema, or none of this kind. The refusals are from public
// issues of clients.
func TestFormats(t *testing.T) {
	const schema = `{"type":"object","properties":{"%s":{"type":"integer"}},"required":["%[1]s"]}`
	for _, test := range []struct {
		name, protocol string
		refuses        map[string]string
		spec           llm.Spec
		tools          bool
		want           string // two requests with one schema, and one with another
	}{
		{"OpenAI", "responses", nil, llm.Spec{}, false, "enforced enforced enforced"},
		{"DeepSeek", "chat", map[string]string{"enforced": "400 This response_format type is unavailable now"}, llm.Spec{}, false, "enforced json json json"},
		{"DeepSeek of 2025", "chat", map[string]string{"enforced": "422 Failed to deserialize the JSON body into the target type: response_format: response_format.type `json_schema` is unavailable now at line 1 column 1193"},
			llm.Spec{}, false, "enforced json json json"},
		{"DeepSeek, with tools", "chat", map[string]string{"enforced": "400 This response_format type is unavailable now"}, llm.Spec{}, true, "enforced told told told"},
		{"DeepSeek, in the table", "chat", map[string]string{"enforced": "400 This response_format type is unavailable now"}, llm.Spec{Can: []string{"tools"}}, false, "json json json"},
		{"an older llama.cpp", "chat", map[string]string{"enforced": `500 response_format type must be one of "text" or "json_object", but got: json_schema`}, llm.Spec{}, false, "enforced json json json"},
		{"llama.cpp, a pattern", "chat", map[string]string{"enforced": "400 JSON schema conversion failed:\nPattern must start with '^' and end with '$'"}, llm.Spec{}, false, "enforced json json enforced json"},
		{"an older vLLM", "chat", map[string]string{"enforced": "400 [{'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': \"Input should be 'text' or 'json_object'\"}]"}, llm.Spec{}, false, "enforced json json json"},
		{"vLLM, a keyword", "chat", map[string]string{"enforced": "400 The provided JSON schema contains features not supported by xgrammar."}, llm.Spec{}, false, "enforced json json enforced json"},
		{"LM Studio, in the table", "chat", map[string]string{"json": "400 'response_format.type' must be 'json_schema' or 'text'"}, llm.Spec{Can: []string{}}, false, "json told told told"},
		{"Groq", "chat", map[string]string{"enforced": "400 This model does not support response format `json_schema`."}, llm.Spec{}, false, "enforced json json json"},
		{"a small proxy", "chat", map[string]string{"enforced": "400 mistral does not support parameters: {'response_format'}", "json": "400 mistral does not support parameters: {'response_format'}"},
			llm.Spec{}, false, "enforced json told told told"},
		{"OpenAI, an old model", "responses", map[string]string{"enforced": "400 Invalid parameter: 'text.format' of type 'json_schema' is not supported with this model."}, llm.Spec{}, false, "enforced json json json"},
		{"OpenAI, a schema", "responses", map[string]string{"enforced": "400 Invalid schema for response_format 'answer': In context=(), 'a' is odd."}, llm.Spec{}, false, "enforced json json enforced json"},
		{"Gemini, a small model", "gemini", map[string]string{"enforced": "400 JSON mode is not enabled for models/gemma-3-27b-it", "json": "400 JSON mode is not enabled for models/gemma-3-27b-it"}, llm.Spec{}, false, "enforced json told told told"},
		{"Gemini, an old proxy", "gemini", map[string]string{"enforced": "400 Invalid JSON payload received. Unknown name \"responseJsonSchema\" at 'generation_config': Cannot find field."}, llm.Spec{}, false, "enforced json json json"},
		{"Gemini, a schema", "gemini", map[string]string{"enforced": "400 The specified schema produces a constraint that has too many states for serving."}, llm.Spec{}, false, "enforced json json enforced json"},
		{"Anthropic, at Vertex AI", "anthropic", map[string]string{"enforced": "400 output_config: Extra inputs are not permitted"}, llm.Spec{}, false, "enforced told told told"},
		{"Anthropic, a grammar", "anthropic", map[string]string{"enforced": "400 Schema is too complex for compilation."}, llm.Spec{}, false, "enforced told told enforced told"},
		{"Anthropic, in the table", "anthropic", nil, llm.Spec{Can: []string{}}, false, "told told told"},
		{"another fault", "chat", map[string]string{"enforced": "400 max_tokens must be at least 1"}, llm.Spec{}, false, "! enforced enforced enforced"},
		{"a passing fault", "chat", map[string]string{"enforced": "501 the grammar worker ended"}, llm.Spec{}, false, "! enforced enforced enforced"},
		{"a fault of all", "chat", map[string]string{"enforced": "400 bad json_schema", "json": "400 bad json_schema", "told": "400 bad json_schema"}, llm.Spec{}, false, "! enforced json told enforced json told enforced json told"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := &formal{refuses: test.refuses, t: t}
			url := fakeserver.Serve(t, s.answer)
			m := map[string]func() llm.Model{
				"chat": func() llm.Model { return openai.New(openai.Config{Model: "m", URL: url}) },
				"responses": func() llm.Model {
					return openai.New(openai.Config{Model: "m", URL: url, Protocol: openai.Responses})
				},
				"gemini":    func() llm.Model { return gemini.New(gemini.Config{Model: "m", URL: url}) },
				"anthropic": func() llm.Model { return anthropic.New(anthropic.Config{Model: "m", URL: url}) },
			}[test.protocol]()
			ctx := llm.WithTable(t.Context(), func(llm.Info) llm.Spec { s := test.spec; s.Price = &budget.Price{In: 1}; return s })
			want, fails := strings.CutPrefix(test.want, "! ")
			for _, name := range []string{"a", "a", "b"} {
				req := &llm.Request{Messages: []llm.Message{llm.User("hi")}, ResponseFormat: &llm.Format{Schema: fmt.Appendf(nil, schema, name)}}
				if test.tools {
					req.Tools = []llm.Tool{{Name: "look"}}
				}
				meter, before := llm.NewMeter(ctx, m, req), len(s.asked)
				var reply *llm.Reply
				var err error
				restarts := 0
				for d, failed := range m.Stream(ctx, req) {
					meter.Hear(&d)
					if d.Kind == llm.Restart {
						restarts++
					}
					reply, err = d.Reply, failed
				}
				if (err != nil) != fails || !fails && reply.Text != `{"a":1}` {
					t.Fatalf("%+v, %v", reply, err)
				}
				// Nothing was paid for what was refused.
				once, _ := req.Tokens()
				if in := meter.Spent(reply, err).InputTokens; !fails && in != once || fails && in != 0 {
					t.Errorf("%d tokens of input are charged, a request has %d", in, once)
				}
				if tried := len(s.asked) - before; restarts != tried-1 {
					t.Errorf("%d restarts are told of %d requests", restarts, tried)
				}
			}
			if got := strings.Join(s.asked, " "); got != want {
				t.Errorf("the format was %s, want %s", got, want)
			}
		})
	}
}
