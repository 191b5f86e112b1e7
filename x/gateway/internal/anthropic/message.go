package anthropic

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/x/gateway/internal/openai"
)

// An answer is a message from the model.
type answer struct {
	ID           string   `json:"id"`
	Type         string   `json:"type"` // always "message"
	Role         string   `json:"role"` // always "assistant"
	Model        string   `json:"model"`
	Content      []object `json:"content"`
	StopReason   *string  `json:"stop_reason"`
	StopSequence *string  `json:"stop_sequence"`
	StopDetails  object   `json:"stop_details,omitempty"`
	Usage        usage    `json:"usage"`
}

type usage struct {
	InputTokens      int     `json:"input_tokens"` // not including cached tokens
	CacheWriteTokens int     `json:"cache_creation_input_tokens"`
	CacheReadTokens  int     `json:"cache_read_input_tokens"`
	OutputTokens     int     `json:"output_tokens"`
	Cost             float64 `json:"cost,omitempty"` // in USD, as in the other protocols
}

func post(w http.ResponseWriter, r *http.Request, b openai.Backend) error {
	a, err := read(r, b)
	if err == nil {
		err = openai.Recall(r.Context(), b, &a.Request, a.recalled)
	}
	if err != nil {
		return err
	}
	t, err := openai.Ask(w, r, b, "msg_", a.model, &a.Request, openai.Start{Live: a.stream})
	if err != nil {
		return err
	}
	if a.stream {
		return a.write(w, t)
	}
	said, err := t.Answer(func() {})
	if err != nil {
		return err
	}
	out := a.message(t)
	out.end(t, said)
	out.Content = append(append(out.Content, a.thought(t, said)...), contentOf(said)...)
	return reply(w, out)
}

// count replies with an estimate of a request's tokens.
func count(w http.ResponseWriter, r *http.Request, b openai.Backend) error {
	a, err := read(r, b)
	if err == nil {
		_, err = openai.Find(b, a.model)
	}
	if err != nil {
		return err
	}
	in, _ := a.Tokens()
	return reply(w, object{"input_tokens": in})
}

// message returns an empty message.
func (a *asked) message(t *openai.Turn) answer {
	return answer{ID: t.Run.ID, Type: "message", Role: "assistant", Model: a.model, Content: []object{}}
}

// end sets the stop reason and the usage.
func (m *answer) end(t *openai.Turn, said *llm.Reply) {
	u := t.Run.Usage
	m.Usage = usage{max(u.InputTokens-u.CacheReadTokens-u.CacheWriteTokens, 0), u.CacheWriteTokens, u.CacheReadTokens, u.OutputTokens, u.USD}
	why := "end_turn"
	switch {
	case slices.Contains([]string{"stop_sequence", "pause_turn", "model_context_window_exceeded"}, said.StopReason):
		why = said.StopReason
	case said.Refused():
		why = "refusal"
		m.StopDetails = object{"type": "refusal", "category": nil, "explanation": said.Refusal}
	case said.Cut():
		why = "max_tokens"
	case len(said.ToolCalls) > 0:
		why = "tool_use"
	}
	m.StopReason = &why
}

// thought returns the thinking of an answer if the client has requested it, or if the answer contains tool calls and the provider
// needs the thinking in the next turn. Otherwise it returns no thinking.
func (a *asked) thought(t *openai.Turn, said *llm.Reply) []object {
	wanted := a.thinking.Type == "enabled" || a.thinking.Type == "adaptive"
	sealed := openai.Sealed + t.Run.ID
	switch {
	case wanted && said.Reasoning != "" && a.thinking.Display != "omitted":
		return []object{{"type": "thinking", "thinking": said.Reasoning, "signature": sealed}}
	case (wanted || len(said.ToolCalls) > 0) && len(said.Metadata) > 0:
		return []object{{"type": "redacted_thinking", "data": sealed}}
	}
	return nil
}

// contentOf returns the text and the tool calls of an answer as blocks.
func contentOf(said *llm.Reply) (out []object) {
	if said.Text != "" {
		out = append(out, object{"type": "text", "text": said.Text})
	}
	for _, c := range said.ToolCalls {
		if c.Input == nil { // the arguments were cut off
			c.Input = json.RawMessage("{}")
		}
		out = append(out, object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": c.Input})
	}
	return out
}

// events writes the events of a message.
type events struct {
	*openai.Stream
	begin func() // sends the first event
	block int    // index of the next block
	open  bool   // a text block has been started
}

func (e *events) send(name string, fields object) {
	if begin := e.begin; begin != nil {
		e.begin = nil
		begin()
	}
	fields["type"] = name
	e.Send(name, fields)
}

func (e *events) ping() { e.send("ping", object{}) }

func (e *events) start(block object) {
	e.send("content_block_start", object{"index": e.block, "content_block": block})
}

// delta writes a delta event of the current block.
func (e *events) delta(kind, field string, value any) {
	e.send("content_block_delta", object{"index": e.block, "delta": object{"type": kind, field: value}})
}

func (e *events) stop() {
	e.send("content_block_stop", object{"index": e.block})
	e.block++
}

// say writes a piece of text.
func (e *events) say(text string) {
	if !e.open {
		e.start(object{"type": "text", "text": ""})
		e.open = true
	}
	e.delta("text_delta", "text", text)
}

// whole writes all events of a block.
func (e *events) whole(b object) {
	switch b["type"] {
	case "text":
		e.say(b["text"].(string))
		e.open = false
	case "thinking":
		e.start(object{"type": "thinking", "thinking": "", "signature": ""})
		e.delta("thinking_delta", "thinking", b["thinking"])
		e.delta("signature_delta", "signature", b["signature"])
	case "tool_use":
		e.start(object{"type": "tool_use", "id": b["id"], "name": b["name"], "input": object{}})
		e.delta("input_json_delta", "partial_json", string(b["input"].(json.RawMessage)))
	default:
		e.start(b)
	}
	e.stop()
}

// write streams a message. Nothing is sent until there is text, the run is done, or some time has passed.
func (a *asked) write(w http.ResponseWriter, t *openai.Turn) error {
	named(w)
	m, e := a.message(t), &events{}
	e.begin = func() {
		e.Stream = openai.NewStream(w)
		e.send("message_start", object{"message": m})
	}
	t.Speak(e.ping, e.say)
	said, err := t.Answer(e.ping)
	if err != nil && e.begin != nil {
		return err
	}
	if err != nil {
		if failed, ok := errors.AsType[*openai.Error](err); ok {
			_, f := failureOf(failed, w)
			e.Send("error", f)
		}
		return nil // the client is gone, or will reconnect
	}
	m.end(t, said)
	if e.open {
		if rest := said.Text[len(t.Said):]; rest != "" {
			e.say(rest)
		}
		e.stop()
		e.open, said.Text = false, ""
	}
	for _, b := range append(a.thought(t, said), contentOf(said)...) {
		e.whole(b)
	}
	e.send("message_delta", object{"delta": object{"stop_reason": m.StopReason, "stop_sequence": nil, "stop_details": m.StopDetails}, "usage": m.Usage})
	e.send("message_stop", object{})
	return nil
}
