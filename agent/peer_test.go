package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/internal/test/peer"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
	"github.com/stonelayer/stone/llm/gemini"
	"github.com/stonelayer/stone/llm/openai"
)

// fixtures are the answers of the peer @copilotkit/aimock.
const fixtures = `{"fixtures": [
	{"match": {"userMessage": "two cities", "toolCallId": "call_b"}, "response": {"toolCalls": [{"id": "call_c", "name": "compare", "arguments": {"text": "sun, rain"}}]}},
	{"match": {"userMessage": "two cities", "toolCallId": "call_c"}, "response": {"content": "Bern is sunnier."}},
	{"match": {"userMessage": "two cities"}, "response": {"content": "Both at once.", "toolCalls": [
		{"id": "call_a", "name": "weather", "arguments": {"city": "Bern"}}, {"id": "call_b", "name": "weather", "arguments": {"city": "Oslo"}}]}},
	{"match": {"userMessage": "no such tool", "toolCallId": "call_a"}, "response": {"toolCalls": [{"id": "call_b", "name": "weather", "arguments": {"town": 1}}]}},
	{"match": {"userMessage": "no such tool", "toolCallId": "call_b"}, "response": {"content": "I give up."}},
	{"match": {"userMessage": "no such tool"}, "response": {"toolCalls": [{"id": "call_a", "name": "wether", "arguments": {"city": "Bern"}}]}},
	{"match": {"userMessage": "think"}, "response": {"content": "Forty-two.", "reasoning": "Six times nine.", "reasoningSignature": "c2ln"}},
	{"match": {"userMessage": "a ticket"}, "response": {"content": "{\"title\":\"leak\",\"level\":2}"}},
	{"match": {"userMessage": "busy", "sequenceIndex": 0}, "response": {"error": {"message": "slow down", "type": "rate_limit_error"}, "status": 429, "retryAfter": 1}},
	{"match": {"userMessage": "busy", "sequenceIndex": 1}, "response": {"content": "Now."}},
	{"match": {"userMessage": "broken"}, "response": {"error": {"message": "out of order", "type": "server_error"}, "status": 500}},
	{"match": {"userMessage": "cut"}, "response": {"content": "This sentence is never going to be finished by anybody."}, "truncateAfterChunks": 4, "chunkSize": 5, "latency": 20},
	{"match": {"userMessage": "stall"}, "response": {"content": "This sentence takes its time."}, "chunkSize": 5, "streamingProfile": {"ttft": 10, "tps": 0.1}}
]}`

// peerModels make a model of each protocol. The peer counts requests by id.
var peerModels = map[string]func(url, id string, client *http.Client, limits llm.Timeouts) llm.Model{
	"openai": func(url, id string, client *http.Client, limits llm.Timeouts) llm.Model {
		return openai.New(openai.Config{Model: "gpt-5-mini", URL: url, Key: "test-key", Header: map[string]llm.Secret{"X-Test-Id": llm.Secret(id)},
			HTTPClient: client, Timeouts: limits, Retry: llm.Retry{Wait: time.Millisecond}})
	},
	"responses": func(url, id string, client *http.Client, limits llm.Timeouts) llm.Model {
		return openai.New(openai.Config{Protocol: openai.Responses, Model: "gpt-5-mini", URL: url, Key: "test-key", Header: map[string]llm.Secret{"X-Test-Id": llm.Secret(id)},
			HTTPClient: client, Timeouts: limits, Retry: llm.Retry{Wait: time.Millisecond}})
	},
	"anthropic": func(url, id string, client *http.Client, limits llm.Timeouts) llm.Model {
		return anthropic.New(anthropic.Config{Model: "claude-sonnet-4-5", URL: url, Key: "test-key", Header: map[string]llm.Secret{"X-Test-Id": llm.Secret(id)},
			HTTPClient: client, Timeouts: limits, Retry: llm.Retry{Wait: time.Millisecond}})
	},
	"gemini": func(url, id string, client *http.Client, limits llm.Timeouts) llm.Model {
		return gemini.New(gemini.Config{Model: "gemini-3-pro-preview", URL: url, Key: "test-key", Header: map[string]llm.Secret{"X-Test-Id": llm.Secret(id)},
			HTTPClient: client, Timeouts: limits, Retry: llm.Retry{Wait: time.Millisecond}})
	},
}

// TestPeer runs agents against a third-party model server, over HTTP and in all
// protocols. Every error of the server is a failure, never an answer.
func TestPeer(t *testing.T) {
	need.Time(t)
	url := peer.Aimock(t, fixtures)
	for protocol, newModel := range peerModels {
		for _, c := range []struct {
			user, chaos string
			want        string // the draft, or the kind of the failure
			talk        string // the conversation after the first message
			cause       func(error) bool
		}{
			{user: "two cities", want: `{"text":"Bern is sunnier."}`,
				talk: "assistant: Both at once.\ncall: weather {\"city\":\"Bern\"}\ncall: weather {\"city\":\"Oslo\"}\ntool: weather of Bern\ntool: weather of Oslo\n" +
					"call: compare {\"text\":\"sun, rain\"}\ntool: compared sun, rain\nassistant: Bern is sunnier.\n"},
			{user: "no such tool", want: `{"text":"I give up."}`,
				talk: "call: wether {\"city\":\"Bern\"}\ntool error: There is no tool \"wether\". The tools are: weather, compare.\n" +
					"call: weather {\"town\":1}\ntool error: The arguments do not fit the schema of the tool, so it was not run: | (root): property \"city\" is required, but missing\nassistant: I give up.\n"},
			{user: "think", want: `{"text":"Forty-two."}`, talk: "assistant: Forty-two.\n"},
			{user: "a ticket", want: `{"level":2,"title":"leak"}`, talk: "assistant: {\"title\":\"leak\",\"level\":2}\n"},
			{user: "busy", want: `{"text":"Now."}`, talk: "assistant: Now.\n"},
			{user: "broken", want: string(reasons.ModelFailed), cause: func(err error) bool { h, ok := errors.AsType[*llm.HTTPError](err); return ok && h.Status == 500 }},
			{user: "cut", want: string(reasons.ModelFailed), cause: is[*llm.TruncatedError]},
			{user: "stall", want: string(reasons.ModelFailed), cause: func(err error) bool {
				late, ok := errors.AsType[*llm.TimeoutError](err)
				return ok && late.Phase == "silence"
			}},
			{user: "think", chaos: `{"malformedRate":1}`, want: string(reasons.ModelFailed), cause: is[*llm.ProtocolError]},
			{user: "think", chaos: `{"disconnectRate":1}`, want: string(reasons.ModelFailed), cause: llm.Retryable},
		} {
			t.Run(protocol+"/"+c.user+c.chaos, func(t *testing.T) {
				id, client := t.Name(), &http.Client{Transport: &http.Transport{}}
				defer client.CloseIdleConnections()
				if c.chaos != "" {
					peer.Chaos(t, url, id, c.chaos)
				}
				limits := llm.Timeouts{}
				if c.user == "stall" {
					limits.Silence = 300 * time.Millisecond
				}
				res, err := run(t, peerAgent(c.user, newModel(url, id, client, limits)), stone.Config{})
				if got := outcome(t, res, err); got != c.want || c.cause != nil && !c.cause(err) {
					t.Fatalf("got %s (%v), want %s", got, err, c.want)
				}
				if err != nil {
					return
				}
				if got := transcript(conversation(t, res)[1:]); got != c.talk {
					t.Errorf("conversation\n%s\nwant\n%s", got, c.talk)
				}
			})
		}
	}
}

func is[E error](err error) bool { _, ok := errors.AsType[E](err); return ok }

// peerAgent has two tools, and produces a ticket if the prompt asks for one.
func peerAgent(user string, m llm.Model) stone.Ashlar {
	weather := agent.Tool{
		Tool: llm.Tool{Name: "weather", Schema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)},
		Run: func(_ context.Context, input json.RawMessage) (agent.Result, error) {
			var in struct{ City string }
			err := json.Unmarshal(input, &in)
			return agent.Result{Text: "weather of " + in.City}, err
		},
		Parallel: true,
	}
	compare := tool("compare", func(text string) (agent.Result, error) { return agent.Result{Text: "compared " + text}, nil })
	cfg := agent.Config{System: agent.Say("You know the weather."), User: agent.Say(fmt.Sprintf("Please: %s.", user)),
		Use: []agent.Middleware{agent.Use(weather), agent.Use(compare)}}
	if user == "a ticket" {
		return agent.New("talk", ticket, m, cfg)
	}
	return agent.New("talk", note, m, cfg)
}
