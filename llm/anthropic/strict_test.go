package anthropic_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/test/fakeserver"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
)

// TestTooComplex checks a schema that the provider cannot compile, which it tells only when it is
// asked: the model is told the schema instead, and later requests do not try again.
func TestTooComplex(t *testing.T) {
	refusal, asked := "", []string{}
	url := fakeserver.Serve(t, func(w http.ResponseWriter, _ *http.Request, sent []byte) {
		var body struct {
			System       string
			OutputConfig json.RawMessage `json:"output_config"`
		}
		if err := json.Unmarshal(sent, &body); err != nil {
			t.Error(err)
		}
		how := "told"
		if body.OutputConfig != nil {
			how = "enforced"
		}
		if !strings.Contains(body.System, `"integer"`) { // of a foreign server, always
			t.Errorf("system %q", body.System)
		}
		if asked = append(asked, how); how == "enforced" && refusal != "" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"type":"error","error":{"type":"invalid_request_error","message":%q}}`, refusal)
			return
		}
		fakeserver.Stream(w, answer("m", "end_turn", `{"type":"text","text":"{}"}`))
	})
	req := func(name string) *llm.Request {
		return &llm.Request{Messages: []llm.Message{llm.User("hi")}, ResponseFormat: &llm.Format{Schema: json.RawMessage(`{"properties":{"` + name + `":{"type":"integer"}}}`)}}
	}
	for _, message := range []string{"Schema is too complex for compilation.", "The compiled grammar is too large, which would cause performance issues."} {
		m := anthropic.New(anthropic.Config{Model: "m", URL: url, Key: "test-key"})
		refusal, asked = message, nil
		for range 2 {
			if reply, err := llm.Collect(t.Context(), m, req("a")); err != nil || reply.Text != "{}" {
				t.Fatalf("%s: %q, %v", message, reply.Text, err)
			}
		}
		refusal = ""
		if _, err := llm.Collect(t.Context(), m, req("b")); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(asked, " "); got != "enforced told told enforced" {
			t.Errorf("%s: requests were %s", message, got)
		}
	}
	refusal, asked = "max_tokens: must be at least 1", nil
	m := anthropic.New(anthropic.Config{Model: "m", URL: url, Key: "test-key"})
	if _, err := llm.Collect(t.Context(), m, req("a")); !errors.As(err, new(*llm.HTTPError)) || len(asked) != 1 {
		t.Errorf("another refusal: %v after %v", err, asked)
	}
}

// own answers for the provider's own server, which alone gets strict tools.
type own func(*http.Request) (status int, body string)

func (o own) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := o(r)
	return &http.Response{StatusCode: status, Request: r, Body: io.NopCloser(strings.NewReader(body)),
		Header: http.Header{"Content-Type": {map[bool]string{true: "text/event-stream", false: "application/json"}[status == 200]}}}, nil
}

// TestStrictRefused checks that a model that does not take strict tools, or whose grammar of them is
// too large, is asked without, and is not asked again.
func TestStrictRefused(t *testing.T) {
	for _, message := range []string{"The compiled grammar is too large.", "tools.0.custom.strict: Extra inputs are not permitted"} {
		var asked []bool
		m := anthropic.New(anthropic.Config{Model: "m", Key: "test-key", HTTPClient: &http.Client{Transport: own(func(r *http.Request) (int, string) {
			body, _ := io.ReadAll(r.Body)
			strict := strings.Contains(string(body), `"strict":true`)
			if asked = append(asked, strict); strict {
				return 400, fmt.Sprintf(`{"type":"error","error":{"type":"invalid_request_error","message":%q}}`, message)
			}
			return 200, answer("m", "end_turn", `{"type":"text","text":"ok"}`)
		})}})
		req := &llm.Request{Messages: []llm.Message{llm.User("hi")},
			Tools: []llm.Tool{{Name: "f", Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`)}}}
		for range 2 {
			if reply, err := llm.Collect(t.Context(), m, req); err != nil || reply.Text != "ok" {
				t.Fatalf("%s: %v", message, err)
			}
		}
		if got := fmt.Sprint(asked); got != "[true false false]" {
			t.Errorf("%s: strict %s", message, got)
		}
	}
}
