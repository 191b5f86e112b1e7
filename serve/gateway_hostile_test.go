package serve_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
)

// Whatever a client sends is answered with an error of OpenAI's form that says what is wrong,
// and reaches no model.
func TestGatewayHostile(t *testing.T) {
	model := script.Func(func(int, *llm.Request) script.Answer { return script.Text("polite") })
	h := gatewayServer(t, gated(model, model), nil)
	var tools []string
	for i := range 10_000 {
		tools = append(tools, fmt.Sprintf(`{"type":"function","name":"f%d","function":{"name":"f%[1]d"}}`, i))
	}
	deep := strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000)
	for _, path := range []string{"/v1/responses", "/v1/chat/completions"} {
		input := `"input":"x"`
		if path != "/v1/responses" {
			input = `"messages":[{"role":"user","content":"x"}]`
		}
		with := func(more string) string { return `{"model":"stone/chat/answer",` + input + `,` + more + `}` }
		tool := func(name, schema string) string {
			return with(fmt.Sprintf(`"tools":[{"type":"function","name":%q,"parameters":%s,"function":{"name":%[1]q,"parameters":%[2]s}}]`, name, schema))
		}
		for _, tt := range []struct {
			name, body string
			status     int
			code, says string
		}{
			{"nothing", ``, 400, "invalid_json", "not a JSON object"},
			{"half", `{"model":`, 400, "invalid_json", ""},
			{"two", `{} {}`, 400, "invalid_json", ""},
			{"null", `null`, 400, "invalid_json", ""},
			{"no text", "{\"model\":\"\xff\xfe\"}", 400, "", ""},
			{"deep", deep, 400, "invalid_json", ""},
			{"a deep parameter", with(`"metadata":` + deep), 400, "", ""},
			{"huge", with(`"user":"` + strings.Repeat("x", 9<<20) + `"`), 413, "", "longer than"},
			{"10,000 tools", with(`"tools":[` + strings.Join(tools, ",") + `]`), 400, "invalid_value", "10000 tools: want at most"},
			{"a tool twice", with(`"tools":[` + tools[0] + `,` + tools[0] + `]`), 400, "invalid_value", `two tools have the name "f0"`},
			{"a tool without a name", tool("", `{}`), 400, "invalid_value", "name"},
			{"a path as a tool", tool("../../etc/passwd", `{}`), 400, "invalid_value", "name"},
			{"a long name", tool(strings.Repeat("f", 200), `{}`), 400, "invalid_value", "name"},
			{"parameters that are no schema", tool("f", `"x"`), 400, "invalid_value", "parameters"},
			{"tools that are none", with(`"tools":{"a":1}`), 400, "invalid_type", "tools"},
			{"a temperature of 9", with(`"temperature":9`), 400, "invalid_value", "temperature"},
			{"a huge number", with(`"temperature":1e999`), 400, "invalid_type", "temperature"},
			{"a negative share", with(`"top_p":-1`), 400, "invalid_value", "top_p"},
			{"fewer than no tokens", with(`"max_output_tokens":-1`), 400, "", ""},
			{"a model with a path", strings.Replace(with(`"user":"u"`), "stone/chat/answer", "stone/../../v1/runs", 1), 404, "model_not_found", ""},
			{"a parameter of an object", with(`"__proto__":{}`), 400, "unknown_parameter", ""},
			{"17 metadata", with(`"metadata":{"` + strings.Join(strings.Split("abcdefghijklmnopq", ""), `":"","`) + `":""}`), 400, "invalid_value", "17 labels: want at most 16"},
			{"a long value in metadata", with(`"metadata":{"a":"` + strings.Repeat("x", 513) + `"}`), 400, "invalid_value", "a value of 513 bytes: want at most 512"},
		} {
			status, text := h.do("POST", path, tt.body)
			var body struct {
				Error struct{ Message, Type, Code string }
			}
			if err := json.Unmarshal([]byte(text), &body); err != nil || status != tt.status || tt.code != "" && body.Error.Code != tt.code || !strings.Contains(body.Error.Message, tt.says) || len(text) > 2000 {
				t.Errorf("%s: %s: %d %.500s, want %d %s with %q", path, tt.name, status, text, tt.status, tt.code, tt.says)
			}
		}
	}
}
