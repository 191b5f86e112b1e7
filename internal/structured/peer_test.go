package structured_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/structured"
	"github.com/stonelayer/stone/internal/test/fakeserver"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
	"github.com/stonelayer/stone/llm/gemini"
	"github.com/stonelayer/stone/llm/openai"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/schema"
	"pgregory.net/rapid"
)

// provider is a server that refuses a request as the provider would: with status 400 if the schema
// breaks a published rule. Other answers come from the script.
func provider(t *testing.T, answers *script.Model) (url string) {
	return fakeserver.Serve(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		var req struct {
			ResponseFormat struct {
				JSONSchema struct {
					Schema json.RawMessage
					Strict bool
				} `json:"json_schema"`
			} `json:"response_format"`
			Text struct {
				Format struct {
					Schema json.RawMessage
					Strict bool
				}
			}
			OutputConfig struct {
				Format struct{ Schema json.RawMessage }
			} `json:"output_config"`
			GenerationConfig struct {
				Schema json.RawMessage `json:"responseJsonSchema"`
			} `json:"generationConfig"`
		}
		var faults []string
		if err := json.Unmarshal(body, &req); err != nil {
			faults = []string{err.Error()}
		}
		if f := req.ResponseFormat.JSONSchema; f.Strict {
			faults = published["openai"].inspect(f.Schema)
		}
		if f := req.Text.Format; f.Strict {
			faults = published["openai"].inspect(f.Schema)
		}
		if s := req.OutputConfig.Format.Schema; s != nil {
			faults = published["anthropic"].inspect(s)
		}
		if s := req.GenerationConfig.Schema; s != nil {
			faults = published["gemini"].inspect(s)
		}
		if faults != nil {
			text, _ := json.Marshal(strings.Join(faults, "; "))
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":{"message":%s,"type":"invalid_request_error"}}`, text)
			return
		}
		answers.ServeHTTP(w, r)
	})
}

func models(url string) map[string]llm.Model {
	once := llm.Retry{Max: -1}
	return map[string]llm.Model{
		"openai":    openai.New(openai.Config{Model: "m", URL: url, Key: "test-key", Retry: once}),
		"responses": openai.New(openai.Config{Model: "m", URL: url, Key: "test-key", Retry: once, Protocol: openai.Responses}),
		"anthropic": anthropic.New(anthropic.Config{Model: "m", URL: url, Key: "test-key", Retry: once}),
		"gemini":    gemini.New(gemini.Config{Model: "m", URL: url, Key: "test-key", Retry: once}),
	}
}

var dialects = map[string]*structured.Dialect{"openai": structured.OpenAI, "anthropic": structured.Anthropic, "gemini": structured.Gemini}

// TestRefused checks the rules: a provider refuses the plain schemas of ordinary Go types.
func TestRefused(t *testing.T) {
	type tree struct {
		Kids []tree `json:"kids"`
	}
	for _, v := range []any{struct{ A string }{}, struct{ N uint }{}, struct{ L [2]string }{}, struct{ M map[string]int }{}, tree{}} {
		s, err := schema.ForType(reflect.TypeOf(v))
		if err != nil {
			t.Fatal(err)
		}
		if published["anthropic"].inspect(s.Ordered()) == nil || published["openai"].inspect(s.Ordered()) == nil {
			t.Errorf("the rules take %s", s)
		}
	}
}

// types draws a Go type. Depth bounds how far it is nested.
func types(t *rapid.T, depth int) reflect.Type {
	plain := []any{false, 0, int8(0), int64(0), uint(0), uint8(0), uint16(0), uint64(0), float32(0), 0.0, "", []byte{}, time.Time{}, json.Number(""), color(""), level(0), list{}}
	if depth <= 0 {
		return reflect.TypeOf(rapid.SampledFrom(plain).Draw(t, "plain"))
	}
	switch rapid.SampledFrom([]string{"plain", "plain", "plain", "pointer", "slice", "array", "map", "any", "struct", "struct"}).Draw(t, "kind") {
	case "pointer":
		return reflect.PointerTo(types(t, depth-1))
	case "slice":
		return reflect.SliceOf(types(t, depth-1))
	case "array":
		return reflect.ArrayOf(rapid.IntRange(0, 3).Draw(t, "length"), types(t, depth-1))
	case "map":
		if rapid.IntRange(0, 3).Draw(t, "free") > 0 {
			return types(t, depth-1) // rare, so that most types can be enforced
		}
		return reflect.MapOf(reflect.TypeFor[string](), types(t, depth-1))
	case "any":
		if rapid.IntRange(0, 5).Draw(t, "free") > 0 {
			return types(t, depth-1)
		}
		return rapid.SampledFrom([]reflect.Type{reflect.TypeFor[any](), reflect.TypeFor[json.RawMessage]()}).Draw(t, "any")
	case "struct":
		return structs(t, depth)
	}
	return reflect.TypeOf(rapid.SampledFrom(plain).Draw(t, "plain"))
}

func structs(t *rapid.T, depth int) reflect.Type {
	var fields []reflect.StructField
	for n := range rapid.IntRange(1, 6).Draw(t, "fields") {
		f := reflect.StructField{Name: fmt.Sprintf("F%d", n), Type: types(t, depth-1)}
		name := rapid.SampledFrom([]string{"", f.Name + "-x", f.Name + ".y", f.Name + " ü"}).Draw(t, "name")
		if rapid.IntRange(0, 9).Draw(t, "odd name") > 0 && strings.Contains(name, "ü") {
			name = ""
		}
		tag := fmt.Sprintf(`json:"%s%s"`, name, rapid.SampledFrom([]string{"", ",omitempty", ",omitzero"}).Draw(t, "optional"))
		if f.Type == reflect.TypeFor[string]() {
			tag += rapid.SampledFrom([]string{"", ` enum:"a,b"`, ` jsonschema:"what it says"`}).Draw(t, "tag")
		}
		f.Tag = reflect.StructTag(tag)
		fields = append(fields, f)
	}
	return reflect.StructOf(fields)
}

type color string

func (color) Enum() []any { return []any{"red", "green"} }

type level int

func (level) Enum() []any { return []any{1, 2, 3} }

type list struct {
	Value int   `json:"value"`
	Next  *list `json:"next,omitempty"`
}

// TestProviders asks models of both protocols for values of 1,000 Go types: no server refuses a
// schema. An answer that the projection allows is accepted only if it fits the type's own schema.
func TestProviders(t *testing.T) {
	answers := script.Func(func(int, *llm.Request) script.Answer { return script.Text("{}") })
	url := provider(t, answers)
	asked, caught, enforced := 0, 0, map[string]int{}
	for range 10 {
		rapid.Check(t, func(t *rapid.T) {
			typ := types(t, 3)
			if rapid.IntRange(0, 3).Draw(t, "struct") > 0 {
				typ = structs(t, 3)
			}
			s, err := schema.ForType(typ)
			if err != nil {
				t.Fatalf("%s: %v", typ, err)
			}
			asked++
			form := structured.Of(typ.String(), s)
			for name, m := range models(url) {
				req := &llm.Request{Messages: []llm.Message{llm.User("go")}, ResponseFormat: form.Format()}
				if _, err := llm.Collect(t.Context(), m, req); err != nil {
					t.Fatalf("%s refuses %s: %v", name, s, err)
				}
			}
			for name, d := range dialects {
				projected := d.Schema(form.Format())
				if projected == nil {
					continue
				}
				enforced[name]++
				if faults := published[name].inspect(projected); faults != nil {
					t.Fatalf("%s refuses %s of %s: %s", name, projected, s, faults)
				}
				p, err := schema.Parse(projected)
				if err != nil {
					t.Fatalf("%s: %v", projected, err)
				}
				answer := draw(t, projected)
				if err := p.Validate(t.Context(), answer); err != nil {
					t.Fatalf("the test draws %s, which is none of %s: %v", answer, projected, err)
				}
				data, misfit := form.Read(t.Context(), &llm.Reply{Text: string(answer)})
				if misfit != nil {
					caught++
				} else if err := s.Validate(t.Context(), data); err != nil {
					t.Fatalf("%s: accepted %s as %s, which is none of %s: %v", name, answer, data, s, err)
				}
			}
		})
	}
	t.Logf("%d types, no refusal; enforced by %v; %d answers fitted the projection and not the schema", asked, enforced, caught)
	if asked < 200 || caught == 0 {
		t.Errorf("%d types, %d answers caught: too few, also for -short", asked, caught)
	}
	for name, n := range enforced { // all but those that are too large
		if n < asked*97/100 {
			t.Errorf("%s enforces %d of %d types", name, n, asked)
		}
	}
}
