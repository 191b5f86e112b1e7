package structured_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/structured"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/schema"
)

func parse(t *testing.T, text string) *schema.Schema {
	t.Helper()
	s, err := schema.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestWrapped checks schemas whose values are no objects, which providers refuse at the top: they
// are asked for as a property, and references within them still lead to the same place.
func TestWrapped(t *testing.T) {
	const tree = `{"type":"array","items":{"$ref":"#"}}`
	const named = `{"$ref":"#/$defs/answer","$defs":{"answer":{"type":"object","properties":{"next":{"$ref":"#/$defs/answer"},"top":{"$ref":"#"}},"required":["next"]}}}`
	for _, test := range []struct{ schema, answer, want string }{
		{`{"type":"array","items":{"type":"integer"}}`, `{"value":[1,2]}`, `[1,2]`},
		{`{"type":"array","items":{"type":"integer"}}`, `[1,2]`, `[1,2]`}, // from a server that enforces nothing
		{`{"type":"number","minimum":0}`, `{"value":1.5}`, `1.5`},
		{`{"type":"number","minimum":0}`, `{"value":-1.5}`, `! got number -1.5`},
		{`{"anyOf":[{"type":"object","properties":{"value":{"type":"string"}},"required":["value"]},{"type":"null"}]}`, `{"value":"x"}`, `{"value":"x"}`},
		{`{"anyOf":[{"type":"object","properties":{"value":{"type":"string"}},"required":["value"]},{"type":"null"}]}`, `{"value":{"value":"x"}}`, `{"value":"x"}`},
		{`{"anyOf":[{"type":"object","properties":{"value":{"type":"string"}},"required":["value"]},{"type":"null"}]}`, `{"value":null}`, `null`},
		{`{"type":["object","null"],"properties":{"a":{"type":"string"}}}`, `{"a":"x"}`, `{"a":"x"}`},
		{tree, `{"value":[[],[[]]]}`, `[[],[[]]]`},
		{tree, `{"value":[1]}`, `! got integer 1`},
		{named, `{"value":{"next":{"next":null}}}`, `! want object, got null`},
		{`true`, `{"value":7}`, `7`},
	} {
		form := structured.Of("x", parse(t, test.schema))
		format := form.Format()
		wire := parse(t, string(format.Schema))
		data, misfit := form.Read(t.Context(), &llm.Reply{Text: test.answer})
		got := string(data)
		if misfit != nil {
			got = "! " + misfit.Err.Error()
		}
		if text, fails := strings.CutPrefix(test.want, "!"); fails && !strings.Contains(got, text) || !fails && got != test.want {
			t.Errorf("%s of %s: got %s, want %s", test.answer, test.schema, got, test.want)
		}
		// What the provider is asked for is what Read accepts.
		if test.answer[0] == '{' && !strings.Contains(test.schema, `"value"`) {
			if err := wire.Validate(t.Context(), []byte(test.answer)); (err == nil) != (misfit == nil) {
				t.Errorf("%s of %s: %v, but %v", test.answer, format.Schema, err, misfit)
			}
		}
		if projected := structured.OpenAI.Schema(format); projected == nil {
			if test.schema != `true` {
				t.Errorf("%s cannot be enforced", format.Schema)
			}
		} else if faults := published["openai"].inspect(projected); faults != nil {
			t.Errorf("%s: %v", projected, faults)
		}
	}
	if got := structured.OpenAI.Schema(structured.Of("x", parse(t, tree)).Format()); string(got) != `{"type":"object","properties":{"value":{"$ref":"#/$defs/answer"}},"required":["value"],"additionalProperties":false,"$defs":{"answer":{"type":"array","items":{"$ref":"#/$defs/answer"}}}}` {
		t.Errorf("got %s", got)
	}
}

func TestRead(t *testing.T) {
	s := parse(t, `{"type":"object","properties":{"a":{"type":"string"},"n":{"type":"integer"}},"required":["a"]}`)
	form := structured.Of("res/a b", s)
	if got := form.Format().Name; got != "res_a_b" {
		t.Errorf("name %q", got)
	}
	for _, test := range []struct {
		text, stop, want string
		where            string
	}{
		{`{"a":"x","n":null}`, "stop", `{"a":"x"}`, ""},
		{"Sure:\n```json\n{\"a\":\"x\"}\n```", "end_turn", `{"a":"x"}`, ""},
		{`{"a":"x"}`, "length", `{"a":"x"}`, ""}, // whole all the same
		{`{"a":"x`, "max_tokens", "! cut off", ""},
		{`{"a":"x`, "max_output_tokens", "! cut off", ""},
		{`{"a":"x`, "MAX_TOKENS", "! cut off", ""},
		{`{"a":"x`, "stop", `! not JSON, but "{\"a\":\"x"`, ": want JSON, got "},
		{`{"a":1,"n":null}`, "stop", "! a: want string, got integer 1", ", first at a"},
		{`{"n":null}`, "stop", `! property "a" is required`, `: property "a" is required, but missing`},
		{``, "stop", "! not JSON", ""},
	} {
		data, misfit := form.Read(t.Context(), &llm.Reply{Text: test.text, StopReason: test.stop})
		got, where := string(data), ""
		if misfit != nil {
			got, where = "! "+misfit.Err.Error(), misfit.Where
			if misfit.Cut != strings.Contains(test.want, "cut off") || misfit.Tell == "" {
				t.Errorf("%q: misfit %+v", test.text, misfit)
			}
		}
		if text, fails := strings.CutPrefix(test.want, "! "); fails && !strings.Contains(got, text) || !fails && got != test.want || !strings.HasPrefix(where, test.where) {
			t.Errorf("%q: got %s%s, want %s%s", test.text, got, where, test.want, test.where)
		}
	}
	text := structured.Of("", nil)
	if data, misfit := text.Read(t.Context(), &llm.Reply{Text: " any "}); misfit != nil || string(data) != " any " || text.Format() != nil {
		t.Errorf("text: %q, %+v", data, misfit)
	}
	if _, misfit := text.Read(t.Context(), &llm.Reply{Text: "Once", StopReason: "length"}); misfit == nil || !misfit.Cut {
		t.Errorf("a text that was cut off: %+v", misfit)
	}
	if m := form.Misfit(errors.New("odd")); !strings.Contains(m.Tell, "odd") || m.Where != "" {
		t.Errorf("%+v", m)
	}
}

// TestOwnJSON checks that Read takes what Go writes for a value of the type.
func TestOwnJSON(t *testing.T) {
	for _, v := range []any{
		struct{ L []int }{}, struct{ M map[string]int }{}, struct{ P *int }{}, struct{ B []byte }{[]byte("x")},
		struct {
			N uint8 `json:"n,omitempty"`
		}{}, []string(nil), map[string]int(nil), "x", 1, list{Next: &list{}},
	} {
		s, err := schema.ForType(reflect.TypeOf(v))
		if err != nil {
			t.Fatal(err)
		}
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if got, misfit := structured.Of("v", s).Read(t.Context(), &llm.Reply{Text: string(data)}); misfit != nil || string(got) != string(data) {
			t.Errorf("%s: got %s, %+v", data, got, misfit)
		}
	}
}

func TestSimplePatterns(t *testing.T) {
	for pattern, want := range map[string]bool{
		`^[a-z]+\d{2,4}(x|y)?$`: true, `\.\-\w\s`: true, `a{1,100}`: true,
		`a{101}`: false, `(?i)a`: false, `a(?=b)`: false, `(a)\1`: false, `\ba`: false, `\p{L}`: false, `(`: false,
	} {
		text, err := json.Marshal(pattern)
		if err != nil {
			t.Fatal(err)
		}
		f := &llm.Format{Schema: json.RawMessage(`{"properties":{"a":{"type":"string","pattern":` + string(text) + `}}}`)}
		for name, d := range map[string]*structured.Dialect{"openai": structured.OpenAI, "anthropic": structured.Anthropic} {
			if got := strings.Contains(string(d.Schema(f)), `,"pattern":`); got != want {
				t.Errorf("%s: pattern %s is enforced: %t, want %t in %s", name, pattern, got, want, d.Schema(f))
			}
		}
		if strings.Contains(string(structured.Gemini.Schema(f)), `,"pattern":`) {
			t.Errorf("gemini: pattern %s", pattern)
		}
	}
}
