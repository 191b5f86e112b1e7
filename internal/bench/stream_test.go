package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
	"github.com/stonelayer/stone/llm/openai"
)

// answerWords is the length of the answers of BenchmarkStream and BenchmarkNGram.
const answerWords = 8_000

// BenchmarkStream is an answer of a provider, from the bytes of its event stream to the
// complete reply, with both repetition detectors, on one processor. The stream arrives in
// reads of 4 KB from memory.
func BenchmarkStream(b *testing.B) {
	client := func(body []byte) *http.Client { return &http.Client{Transport: recorded(body)} }
	chat, messages := chatStream(), messageStream()
	const nowhere = "http://test.invalid"
	for _, c := range []struct {
		name  string
		body  []byte
		model llm.Model
	}{
		{"openai/stone", chat, openai.New(openai.Config{Model: "m", URL: nowhere, HTTPClient: client(chat), Repetition: llm.NewWatcher})},
		{"anthropic/stone", messages, anthropic.New(anthropic.Config{Model: "m", URL: nowhere, HTTPClient: client(messages), Repetition: llm.NewWatcher})},
	} {
		b.Run(c.name, func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			req := &llm.Request{Messages: []llm.Message{llm.User("Go on.")}}
			measure(b, len(c.body), "byte", func() error {
				reply, err := llm.Collect(context.Background(), c.model, req)
				if err == nil && len(strings.Fields(reply.Text)) != answerWords {
					err = fmt.Errorf("%d of %d words came", len(strings.Fields(reply.Text)), answerWords)
				}
				return err
			})
		})
	}
}

// BenchmarkNGram is the counter of windows alone: with an answer at once, and word by
// word, on one processor.
func BenchmarkNGram(b *testing.B) {
	words := answer()
	text := strings.Join(words, "")
	for _, c := range []struct {
		name  string
		parts []string
	}{{"whole/stone", []string{text}}, {"words/stone", words}} {
		b.Run(c.name, func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			parts := make([][]byte, len(c.parts))
			for i, p := range c.parts {
				parts[i] = []byte(p)
			}
			measure(b, len(text), "byte", func() error {
				var n llm.NGram
				for _, p := range parts {
					n.Write(p)
				}
				if hit := n.Tripped(); hit != nil {
					return fmt.Errorf("a repetition was found at byte %d, which has none", hit.Position)
				}
				return nil
			})
		})
	}
}

// answer returns similar words without a repetition.
func answer() []string {
	stems := strings.Fields("the model writes some words and numbers about stones that lie on each other in a wall")
	rng := rand.New(rand.NewPCG(1, 2))
	words := make([]string, answerWords)
	for i := range words {
		words[i] = fmt.Sprintf(" %s%d", stems[rng.IntN(len(stems))], rng.IntN(100))
	}
	return words
}

// chatStream returns the events that OpenAI's API sends for an answer.
func chatStream() []byte {
	const chunk = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1770933892,"model":"m","service_tier":"default","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{%s},"logprobs":null,"finish_reason":%s}],"usage":null}` + "\n\n"
	var b bytes.Buffer
	for _, word := range answer() {
		fmt.Fprintf(&b, chunk, `"content":"`+word+`"`, "null")
	}
	fmt.Fprintf(&b, chunk, "", `"stop"`)
	b.WriteString("data: [DONE]\n\n")
	return b.Bytes()
}

// messageStream returns the events that Anthropic's API sends for an answer.
func messageStream() []byte {
	var b bytes.Buffer
	event := func(name, data string) { fmt.Fprintf(&b, "event: %s\ndata: {\"type\":%q%s}\n\n", name, name, data) }
	event("message_start", `,"message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"usage":{"input_tokens":3,"output_tokens":1}}`)
	event("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`)
	for _, word := range answer() {
		event("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":"`+word+`"}`)
	}
	event("content_block_stop", `,"index":0`)
	event("message_delta", `,"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":8000}`)
	event("message_stop", "")
	return b.Bytes()
}

// recorded is the body of an event stream that answers every request.
type recorded []byte

func (body recorded) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK,
		Header:     http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}},
		Body:       io.NopCloser(&inPieces{bytes.NewReader(body)}),
		Request:    r,
	}, nil
}

// inPieces reads at most 4 KB per call.
type inPieces struct{ r *bytes.Reader }

func (p *inPieces) Read(to []byte) (int, error) { return p.r.Read(to[:min(len(to), 4096)]) }
