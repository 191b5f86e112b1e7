package script

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"path"
	"strconv"
	"unicode/utf8"

	"github.com/stonelayer/stone/internal/retryafter"
	"github.com/stonelayer/stone/llm"
)

// maxBody is the maximum size of a request, in bytes.
const maxBody = 64 << 20

// ServeHTTP answers a request of any protocol: Messages if the path ends in /messages,
// Responses if it ends in /responses, the Gemini API if it ends in one of its methods, otherwise
// Chat Completions. It always streams.
func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	endpoint := path.Base(r.URL.Path)
	model, gemini := geminiModel(endpoint)
	var req *llm.Request
	if gemini {
		req, err = parseGemini(body, model)
	} else {
		req, err = parse(body, endpoint)
	}
	if err != nil {
		http.Error(w, "script: the request is not of the protocol: "+err.Error(), http.StatusBadRequest)
		return
	}
	a := m.answer(req)
	if retryafter.Sleep(r.Context(), a.Wait) != nil {
		return // the client has gone
	}
	id := a.Reply.RequestID
	var h *llm.HTTPError
	if errors.As(a.Err, &h) {
		if h.RequestID != "" {
			id = h.RequestID
		}
		w.Header().Set("X-Request-Id", id)
		if h.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(h.RetryAfter.Seconds()))))
		}
		w.WriteHeader(h.Status)
		io.WriteString(w, h.Body) // if this fails, the client notices that the answer is truncated
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Request-Id", id)
	s := &stream{w: w, model: req.Model}
	switch {
	case gemini:
		s.gemini(&a)
	case endpoint == "messages":
		s.messages(&a)
	case endpoint == "responses":
		s.responses(&a)
	default:
		s.completions(&a)
	}
}

// stream writes the events of an answer.
type stream struct {
	w     io.Writer
	model string
	index int // the index of the content block
}

type object = map[string]any

func (s *stream) send(name string, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		raw = fmt.Appendf(nil, `{"error":{"message":%q}}`, "script: "+err.Error())
	}
	if name != "" {
		fmt.Fprintf(s.w, "event: %s\n", name)
	}
	fmt.Fprintf(s.w, "data: %s\n\n", raw)
	if f, ok := s.w.(http.Flusher); ok {
		f.Flush()
	}
}

// completions writes the answer in the format of Chat Completions.
func (s *stream) completions(a *Answer) {
	r := &a.Reply
	id := cmp.Or(r.ID, "chatcmpl-script")
	chunk := func(delta object, finish any) {
		s.send("", object{"id": id, "object": "chat.completion.chunk", "model": cmp.Or(r.Model, s.model),
			"choices": []object{{"index": 0, "delta": delta, "finish_reason": finish}}})
	}
	chunk(object{"role": "assistant"}, nil)
	for _, text := range pieces(r.Reasoning) {
		chunk(object{"reasoning_content": text}, nil)
	}
	for _, text := range pieces(r.Text) {
		chunk(object{"content": text}, nil)
	}
	for _, text := range pieces(r.Refusal) {
		chunk(object{"refusal": text}, nil)
	}
	for i, call := range r.ToolCalls {
		chunk(object{"tool_calls": []object{{"index": i, "id": call.ID, "type": "function", "function": object{"name": call.Name, "arguments": ""}}}}, nil)
		for _, args := range pieces(string(call.Input) + call.InputText) {
			chunk(object{"tool_calls": []object{{"index": i, "function": object{"arguments": args}}}}, nil)
		}
	}
	if a.Err != nil {
		s.fail("", a.Err)
		return
	}
	chunk(object{}, stopReason(r, "stop", "tool_calls"))
	if u := r.Usage; u.InputTokens != nil || u.OutputTokens != nil {
		s.send("", object{"id": id, "choices": []object{}, "usage": object{
			"prompt_tokens": u.InputTokens, "completion_tokens": u.OutputTokens,
			"prompt_tokens_details":     object{"cached_tokens": u.CachedInputTokens, "cache_write_tokens": u.CacheWriteTokens},
			"completion_tokens_details": object{"reasoning_tokens": u.ReasoningTokens},
		}})
	}
	fmt.Fprint(s.w, "data: [DONE]\n\n")
}

// messages writes the answer in the format of Messages.
func (s *stream) messages(a *Answer) {
	r := &a.Reply
	s.send("message_start", object{"type": "message_start", "message": object{
		"id": cmp.Or(r.ID, "msg_script"), "type": "message", "role": "assistant",
		"model": cmp.Or(r.Model, s.model), "content": []object{}, "usage": object{},
	}})
	if r.Reasoning != "" {
		s.block(object{"type": "thinking", "thinking": ""}, "thinking_delta", "thinking", r.Reasoning)
	}
	if r.Text != "" {
		s.block(object{"type": "text", "text": ""}, "text_delta", "text", r.Text)
	}
	for _, call := range r.ToolCalls {
		s.block(object{"type": "tool_use", "id": call.ID, "name": call.Name, "input": object{}},
			"input_json_delta", "partial_json", string(call.Input)+call.InputText)
	}
	if a.Err != nil {
		s.fail("error", a.Err)
		return
	}
	end := object{"stop_reason": stopReason(r, "end_turn", "tool_use")}
	if r.Refusal != "" {
		end["stop_reason"], end["stop_details"] = "refusal", object{"type": "refusal", "explanation": r.Refusal}
	}
	usage := object{}
	if u := r.Usage; u.InputTokens != nil || u.OutputTokens != nil {
		input := u.InputTokens
		if input != nil { // in Messages, this number does not include cached tokens
			input = new(*input - u.CachedInputTokens - u.CacheWriteTokens)
		}
		usage = object{"input_tokens": input, "output_tokens": u.OutputTokens,
			"cache_read_input_tokens": u.CachedInputTokens, "cache_creation_input_tokens": u.CacheWriteTokens}
	}
	s.send("message_delta", object{"type": "message_delta", "delta": end, "usage": usage})
	s.send("message_stop", object{"type": "message_stop"})
}

func (s *stream) block(start object, delta, field, text string) {
	s.send("content_block_start", object{"type": "content_block_start", "index": s.index, "content_block": start})
	for _, piece := range pieces(text) {
		s.send("content_block_delta", object{"type": "content_block_delta", "index": s.index, "delta": object{"type": delta, field: piece}})
	}
	s.send("content_block_stop", object{"type": "content_block_stop", "index": s.index})
	s.index++
}

// fail sends a provider's error. For any other error, it cuts off the stream.
func (s *stream) fail(name string, err error) {
	var p *llm.ProviderError
	if errors.As(err, &p) {
		s.send(name, object{"type": "error", "error": object{"message": p.Message, "type": p.Type, "code": p.Code}})
	}
}

// pieces cuts text into pieces of a few bytes, like the pieces that a model streams.
func pieces(text string) []string {
	const size = 12
	var out []string
	for len(text) > size {
		n := size
		for n < len(text) && !utf8.RuneStart(text[n]) {
			n++
		}
		out, text = append(out, text[:n]), text[n:]
	}
	if text != "" {
		out = append(out, text)
	}
	return out
}
