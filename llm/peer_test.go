package llm_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/internal/test/peer"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
	"github.com/stonelayer/stone/llm/gemini"
	"github.com/stonelayer/stone/llm/openai"
)

// fixtures are the answers of the peer @copilotkit/aimock.
const fixtures = `{"fixtures": [
	{"match": {"userMessage": "weather", "hasToolResult": false}, "response": {"content": "Two places.", "toolCalls": [
		{"id": "call_a", "name": "weather", "arguments": {"city": "Bern"}}, {"id": "call_b", "name": "weather", "arguments": {"city": "Zürich"}}]}},
	{"match": {"userMessage": "weather", "hasToolResult": true}, "response": {"content": "Sun in Bern, rain in Zürich."}},
	{"match": {"userMessage": "think"}, "response": {"content": "Forty-two.", "reasoning": "Six times nine.", "reasoningSignature": "c2ln"}},
	{"match": {"userMessage": "as JSON"}, "response": {"content": "{\"answer\":42}"}},
	{"match": {"userMessage": "busy", "sequenceIndex": 0}, "response": {"error": {"message": "slow down", "type": "rate_limit_error"}, "status": 429, "retryAfter": 1}},
	{"match": {"userMessage": "busy", "sequenceIndex": 1}, "response": {"content": "Now."}},
	{"match": {"userMessage": "broken"}, "response": {"error": {"message": "out of order", "type": "server_error"}, "status": 500}},
	{"match": {"userMessage": "cut"}, "response": {"content": "This sentence is never going to be finished by anybody."}, "truncateAfterChunks": 8, "chunkSize": 5, "latency": 20},
	{"match": {"userMessage": "stall"}, "response": {"content": "This sentence takes its time."}, "chunkSize": 5, "streamingProfile": {"ttft": 10, "tps": 0.1}},
	{"match": {"userMessage": "plain"}, "response": {"content": "Grüezi 🌟"}, "chunkSize": 7}
]}`

// TestPeer asks a model server of another project, in every protocol.
func TestPeer(t *testing.T) {
	need.Time(t)
	url := peer.Aimock(t, fixtures)
	for protocol, newModel := range map[string]func(id string, silence time.Duration) llm.Model{
		"openai": func(id string, silence time.Duration) llm.Model {
			return openai.New(openai.Config{Model: "gpt-5-mini", URL: url, Key: "test-key", Header: map[string]llm.Secret{"X-Test-Id": llm.Secret(id)},
				Timeouts: llm.Timeouts{Silence: silence}, Retry: llm.Retry{Wait: time.Millisecond}})
		},
		"responses": func(id string, silence time.Duration) llm.Model {
			return openai.New(openai.Config{Protocol: openai.Responses, Model: "gpt-5-mini", URL: url, Key: "test-key", Header: map[string]llm.Secret{"X-Test-Id": llm.Secret(id)},
				Timeouts: llm.Timeouts{Silence: silence}, Retry: llm.Retry{Wait: time.Millisecond}})
		},
		"anthropic": func(id string, silence time.Duration) llm.Model {
			return anthropic.New(anthropic.Config{Model: "claude-sonnet-4-5", URL: url, Key: "test-key", Header: map[string]llm.Secret{"X-Test-Id": llm.Secret(id)},
				Timeouts: llm.Timeouts{Silence: silence}, Retry: llm.Retry{Wait: time.Millisecond}})
		},
		"gemini": func(id string, silence time.Duration) llm.Model {
			return gemini.New(gemini.Config{Model: "gemini-3-pro-preview", URL: url, Key: "test-key", Header: map[string]llm.Secret{"X-Test-Id": llm.Secret(id)},
				Timeouts: llm.Timeouts{Silence: silence}, Retry: llm.Retry{Wait: time.Millisecond}})
		},
	} {
		t.Run(protocol, func(t *testing.T) {
			m := newModel(protocol, 0)
			say := func(text string) *llm.Request { return &llm.Request{Messages: []llm.Message{llm.User(text)}} }
			t.Run("tools", func(t *testing.T) { peerTools(t, m) })
			t.Run("media", func(t *testing.T) { peerMedia(t, m) })
			t.Run("unicode", func(t *testing.T) { wantReply(t, m, say("plain"), "Grüezi 🌟", "") })
			t.Run("thinking", func(t *testing.T) { wantReply(t, m, say("think"), "Forty-two.", "Six times nine.") })
			t.Run("format", func(t *testing.T) {
				req := say("as JSON")
				req.ResponseFormat = &llm.Format{Schema: json.RawMessage(`{"type":"object"}`)}
				wantReply(t, m, req, `{"answer":42}`, "")
			})
			t.Run("busy, then good", func(t *testing.T) { wantReply(t, m, say("busy"), "Now.", "") })
			t.Run("broken", func(t *testing.T) {
				var h *llm.HTTPError
				if _, err := llm.Collect(t.Context(), m, say("broken")); !errors.As(err, &h) || h.Status != 500 || !strings.Contains(h.Body, "out of order") {
					t.Errorf("error %v, want status 500 with its body", err)
				}
			})
			t.Run("cut", func(t *testing.T) {
				var cut *llm.TruncatedError
				if reply, err := llm.Collect(t.Context(), m, say("cut")); !errors.As(err, &cut) || !strings.HasPrefix(reply.Text, "This ") {
					t.Errorf("%q, %v; want the partial text, and a truncated stream", reply.Text, err)
				}
			})
			t.Run("stall", func(t *testing.T) {
				var late *llm.TimeoutError
				if _, err := llm.Collect(t.Context(), newModel(protocol+"-stall", 300*time.Millisecond), say("stall")); !errors.As(err, &late) || late.Phase != "silence" {
					t.Errorf("error %v, want a timeout by silence", err)
				}
			})
			t.Run("malformed", func(t *testing.T) {
				id := protocol + "-chaos"
				peer.Chaos(t, url, id, `{"malformedRate":1}`)
				var broken *llm.ProtocolError
				if _, err := llm.Collect(t.Context(), newModel(id, 0), say("plain")); !errors.As(err, &broken) {
					t.Errorf("error %v, want a protocol error", err)
				}
			})
			t.Run("disconnected", func(t *testing.T) {
				id := protocol + "-gone"
				peer.Chaos(t, url, id, `{"disconnectRate":1}`)
				_, err := llm.Collect(t.Context(), newModel(id, 0), say("plain"))
				if err == nil || !llm.Retryable(err) {
					t.Errorf("error %v, want a retryable one", err)
				}
			})
		})
	}
}

func wantReply(t *testing.T, m llm.Model, req *llm.Request, text, reasoning string) {
	t.Helper()
	reply, err := llm.Collect(t.Context(), m, req)
	if err != nil || reply.Text != text || reply.Reasoning != reasoning {
		t.Errorf("%q, %q, %v; want %q, %q", reply.Text, reply.Reasoning, err, text, reasoning)
	}
}

// peerTools has two calls in one turn, and continues with their results.
func peerTools(t *testing.T, m llm.Model) {
	req := &llm.Request{
		System:   "You know the weather.",
		Messages: []llm.Message{llm.User("What is the weather?")},
		Tools:    []llm.Tool{{Name: "weather", Description: "The weather of a city.", Schema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}}}`)}},
	}
	reply, err := llm.Collect(t.Context(), m, req)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"id":"call_a","input":{"city":"Bern"},"name":"weather"},{"id":"call_b","input":{"city":"Zürich"},"name":"weather"}]`
	if got := show(t, reply.ToolCalls); got != want || reply.Text != "Two places." {
		t.Errorf("%q, calls %s\nwant %s", reply.Text, got, want)
	}
	req.Messages = append(req.Messages, reply.Message(), llm.ToolResult("call_a", "sun"), llm.ToolResult("call_b", "rain"))
	wantReply(t, m, req, "Sun in Bern, rain in Zürich.", "")
}

// peerMedia shows a picture and a document, and a picture in the result of a tool.
func peerMedia(t *testing.T, m llm.Model) {
	picture := &llm.Media{Type: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}
	document := &llm.Media{Type: "application/pdf", Data: []byte("%PDF-1.7"), Name: "a.pdf"}
	wantReply(t, m, &llm.Request{Messages: []llm.Message{llm.User("plain", picture, document)}}, "Grüezi 🌟", "")
	result := llm.ToolResult("call_a", "sun")
	result.Content = append(result.Content, llm.Part{Media: picture})
	wantReply(t, m, &llm.Request{Messages: []llm.Message{
		llm.User("weather"), {Role: llm.RoleAssistant, ToolCalls: []llm.ToolCall{{ID: "call_a", Name: "weather", Input: json.RawMessage(`{}`)}}}, result, llm.User("plain"),
	}}, "Grüezi 🌟", "")
}

const sloppyConfig = `apiKey: 'test-key'
responses:
  - id: 'tool'
    messages:
      - {role: 'user', content: 'weather', matcher: 'contains'}
      - role: 'assistant'
        tool_calls:
          - {id: 'call_a', type: 'function', function: {name: 'weather', arguments: '{"city": "Bern"}'}}
          - {id: 'call_b', type: 'function', function: {name: 'weather', arguments: '{"city": "Basel"}'}}
  - id: 'text'
    messages:
      - {role: 'user', content: 'hello', matcher: 'contains'}
      - {role: 'assistant', content: "Hello! I'm here."}
`

// TestSloppyPeer asks a server that does not follow the protocol strictly. The server binds
// every interface, so it and the test run in a network namespace of their own.
func TestSloppyPeer(t *testing.T) {
	dir := peer.Module(t, "openai-mock-api")
	const inside = "STONE_TEST_INSIDE_NAMESPACE"
	if os.Getenv(inside) == "" {
		cmd := exec.CommandContext(t.Context(), "unshare", "-n", "sh", "-c", `ip link set lo up && exec "$0" -test.run='^TestSloppyPeer$' -test.v`, os.Args[0])
		cmd.Env = append(os.Environ(), inside+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil && !bytes.Contains(out, []byte("--- FAIL")) {
			need.Absent(t, fmt.Sprintf("no network namespace: %v: %s", err, firstLine(out))) // which a kernel may forbid
		}
		if err != nil {
			t.Errorf("%s", out)
		}
		return
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(sloppyConfig), 0o600); err != nil {
		t.Fatal(err)
	}
	port := peer.FreePort(t)
	url := peer.Start(t, port, filepath.Join(dir, "dist", "cli.js"), "-c", file, "-p", fmt.Sprint(port))
	m := openai.New(openai.Config{Model: "gpt-4o", URL: url, Key: "test-key"})
	wantReply(t, m, &llm.Request{Messages: []llm.Message{llm.User("hello")}}, "Hello! I'm here.", "")
	reply, err := llm.Collect(t.Context(), m, &llm.Request{Messages: []llm.Message{llm.User("weather")}})
	want := `[{"id":"call_a","input":{"city":"Bern"},"name":"weather"},{"id":"call_b","input":{"city":"Basel"},"name":"weather"}]`
	if got := show(t, reply.ToolCalls); err != nil || got != want {
		t.Errorf("calls %s, %v\nwant %s", got, err, want)
	}
	wrong := openai.New(openai.Config{Model: "gpt-4o", URL: url, Key: "wrong-key"})
	var h *llm.HTTPError
	if _, err := llm.Collect(context.Background(), wrong, &llm.Request{Messages: []llm.Message{llm.User("hello")}}); !errors.As(err, &h) || h.Status != 401 {
		t.Errorf("with a wrong key: %v, want status 401", err)
	}
}

func firstLine(out []byte) string {
	s := bufio.NewScanner(bytes.NewReader(out))
	s.Scan()
	return s.Text()
}
