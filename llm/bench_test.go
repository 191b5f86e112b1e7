package llm_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
	"github.com/stonelayer/stone/llm/gemini"
	"github.com/stonelayer/stone/llm/openai"
)

// BenchmarkStream measures the throughput of an event stream, from the transport to the
// complete reply, with both repetition detectors on both channels.
func BenchmarkStream(b *testing.B) {
	words := strings.Fields(strings.Repeat("the model writes some words and numbers about stones that lie on each other in a wall ", 1))
	rng := rand.New(rand.NewPCG(1, 2))
	var chat, messages, chunks, events bytes.Buffer
	messages.WriteString(`event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

`)
	for range 4000 {
		word := fmt.Sprintf(" %s%d", words[rng.IntN(len(words))], rng.IntN(100))
		fmt.Fprintf(&chat, `data: {"id":"chatcmpl-D8Z5oo6uDh67AD85p73ksdT1KxhE0","object":"chat.completion.chunk","created":1770933892,"model":"gpt-4.1-nano-2025-04-14","service_tier":"default","system_fingerprint":"fp_de604bd877","choices":[{"index":0,"delta":{"content":"%s"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"Qup1BsQ3"}`+"\n\n", word)
		fmt.Fprintf(&messages, "event: content_block_delta\n"+`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}   }`+"\n\n", word)
		fmt.Fprintf(&events, "event: response.output_text.delta\n"+`data: {"type":"response.output_text.delta","sequence_number":7,"item_id":"msg_68c3509b2ee0819eba32735182d275ad0f2d670b80edc507","output_index":0,"content_index":0,"delta":"%s","logprobs":[],"obfuscation":"Qup1BsQ3"}`+"\n\n", word)
		fmt.Fprintf(&chunks, `data: {"candidates": [{"content": {"parts": [{"text": "%s"}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 18,"candidatesTokenCount": 31,"totalTokenCount": 84,"promptTokensDetails": [{"modality": "TEXT","tokenCount": 18}],"thoughtsTokenCount": 35},"modelVersion": "gemini-2.5-flash","responseId": "ru1garvBEoOiqtsP2fznmQw"}`+"\n\n", word)
	}
	events.WriteString(`data: {"type":"response.completed","response":{"status":"completed","output":[]}}` + "\n\n")
	chunks.WriteString(`data: {"candidates": [{"finishReason": "STOP"}]}` + "\n\n")
	chat.WriteString("data: [DONE]\n\n")
	messages.WriteString(`data: {"type":"content_block_stop","index":0}` + "\n\n" + `data: {"type":"message_stop"}` + "\n\n")

	for _, c := range []struct {
		name  string
		body  []byte
		model func(*http.Client) llm.Model
	}{
		{"openai", chat.Bytes(), func(h *http.Client) llm.Model {
			return openai.New(openai.Config{Model: "m", URL: "http://test.invalid", HTTPClient: h, Repetition: llm.NewWatcher})
		}},
		{"responses", events.Bytes(), func(h *http.Client) llm.Model {
			return openai.New(openai.Config{Protocol: openai.Responses, Model: "m", URL: "http://test.invalid", HTTPClient: h, Repetition: llm.NewWatcher})
		}},
		{"anthropic", messages.Bytes(), func(h *http.Client) llm.Model {
			return anthropic.New(anthropic.Config{Model: "m", URL: "http://test.invalid", HTTPClient: h, Repetition: llm.NewWatcher})
		}},
		{"gemini", chunks.Bytes(), func(h *http.Client) llm.Model {
			return gemini.New(gemini.Config{Model: "m", URL: "http://test.invalid", HTTPClient: h, Repetition: llm.NewWatcher})
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			m := c.model(cutter(c.body, 4096))
			req := &llm.Request{Messages: []llm.Message{llm.User("hi")}}
			b.SetBytes(int64(len(c.body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := llm.Collect(context.Background(), m, req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
