package openai

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/llm"
)

// A message is an output item that contains text.
type message struct {
	Type    string `json:"type"`
	ID      string `json:"id"`
	Status  string `json:"status"`
	Role    string `json:"role"`
	Content []any  `json:"content"`
}

type outputText struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Annotations []any  `json:"annotations"`
	Logprobs    []any  `json:"logprobs"`
}

type refusal struct {
	Type    string `json:"type"`
	Refusal string `json:"refusal"`
}

// A functionCall is an output item that calls a function.
type functionCall struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
	Arguments string `json:"arguments"`
	Status    string `json:"status"`
}

// A customCall is an output item that calls a custom tool.
type customCall struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Namespace string `json:"namespace,omitempty"`
	Input     string `json:"input"`
	Status    string `json:"status"`
}

func textOf(text string) outputText {
	return outputText{Type: "output_text", Text: text, Annotations: []any{}, Logprobs: []any{}}
}

// outputOf returns the output items of an answer. Their ids are always the same for the same answer. Reasoning comes first,
// unless a message was streamed before the reasoning was complete.
func (resp *response) outputOf(r *llm.Reply) []any {
	out := []any{}
	suffix := strings.TrimPrefix(resp.ID, "resp_")
	thought, thinks := resp.thoughtOf(r)
	if thinks && !resp.live {
		out = append(out, thought)
	}
	m := message{Type: "message", ID: "msg_" + suffix, Status: "completed", Role: "assistant"}
	if r.Text != "" || r.Refusal == "" && len(r.ToolCalls) == 0 {
		m.Content = append(m.Content, textOf(r.Text))
	}
	if r.Refusal != "" {
		m.Content = append(m.Content, refusal{"refusal", r.Refusal})
	}
	if len(m.Content) > 0 {
		out = append(out, m)
	}
	if thinks && resp.live {
		out = append(out, thought)
	}
	for i, c := range r.ToolCalls {
		name, space := resp.tools.of(c.Name)
		if slices.Contains(resp.tools.Custom, c.Name) {
			out = append(out, customCall{Type: "custom_tool_call", ID: fmt.Sprintf("ctc_%s_%d", suffix, i), CallID: c.ID, Name: name, Namespace: space, Input: textOfCall(c), Status: "completed"})
			continue
		}
		args, status := string(c.Input), "completed"
		if c.Input == nil {
			args, status = c.InputText, "incomplete"
		}
		out = append(out, functionCall{Type: "function_call", ID: fmt.Sprintf("fc_%s_%d", suffix, i), CallID: c.ID, Name: name, Namespace: space, Arguments: args, Status: status})
	}
	return out
}

// events writes the events of a response. Their order and their numbers are always the same.
type events struct {
	*Stream
	next, after int  // number of the next event, and of the last event that the client has received
	opened      bool // the message has started

	live  string // id of the message that is streamed before acceptance, or ""
	said  string // text of this message that was streamed
	first int    // number of the event that follows the start of the message
	lost  bool   // the client has received a different text than the answer
}

func (e *events) send(kind string, fields map[string]any) {
	fields["type"], fields["sequence_number"] = kind, e.next
	if e.next++; e.next-1 > e.after {
		e.Stream.Send(kind, fields)
	}
}

// stream writes the events of a response after the last event that the client has received. The answer is sent when the run is
// done or, for a live model, while it is written.
func (resp *response) stream(w http.ResponseWriter, r *http.Request, b Backend, m Model, after int) error {
	e := &events{Stream: NewStream(w), after: after}
	e.send("response.created", map[string]any{"response": *resp})
	e.send("response.in_progress", map[string]any{"response": *resp})
	e.beat()
	if resp.live {
		e.live = "msg_" + strings.TrimPrefix(resp.ID, "resp_")
		speak(r.Context(), b.Live(resp.ID), e.beat, e.grow)
	}
	run, err := wait(r.Context(), b, resp.ID, r.Method == http.MethodPost && !resp.Background && !resp.named, e.beat)
	if err != nil {
		return nil // the client is gone, or will reconnect
	}
	resp.ended(r.Context(), m, run)
	if resp.live && run.State == journal.Done && !e.accepted(resp.Output) {
		resp.Status, resp.Output, resp.CompletedAt = "failed", []any{}, nil
		resp.Error = lost(string(Retracted), elsewhere).failure()
	}
	for i, it := range resp.Output {
		e.item(i, it)
	}
	name := "response." + resp.Status
	switch {
	case !run.Over() && resp.Background:
		return nil // the run waits for a person, and the client will reconnect
	case !run.Over():
		resp.Status = "failed"
		fallthrough
	case resp.Status == "cancelled":
		resp.Error, name = ofRun(run).failure(), "response.failed"
	}
	if resp.live && resp.Error != nil {
		e.next = max(e.next, e.after+1) // the client's position may be within a text that was discarded
	}
	e.send(name, map[string]any{"response": *resp})
	return nil
}

// item writes the events of an output item.
func (e *events) item(index int, it any) {
	whole := map[string]any{"output_index": index, "item": it}
	switch it := it.(type) {
	case reasoning:
		e.thought(index, it)
	case message:
		e.message(index, it.ID)
		for i, part := range it.Content {
			e.part(map[string]any{"item_id": it.ID, "output_index": index, "content_index": i}, part)
		}
	case functionCall:
		empty := it
		empty.Status, empty.Arguments = "in_progress", ""
		e.send("response.output_item.added", map[string]any{"output_index": index, "item": empty})
		e.send("response.function_call_arguments.delta", map[string]any{"item_id": it.ID, "output_index": index, "delta": it.Arguments})
		e.send("response.function_call_arguments.done", map[string]any{"item_id": it.ID, "output_index": index, "arguments": it.Arguments, "name": it.Name})
	case customCall:
		empty := it
		empty.Status, empty.Input = "in_progress", ""
		e.send("response.output_item.added", map[string]any{"output_index": index, "item": empty})
		e.send("response.custom_tool_call_input.delta", map[string]any{"item_id": it.ID, "output_index": index, "delta": it.Input})
		e.send("response.custom_tool_call_input.done", map[string]any{"item_id": it.ID, "output_index": index, "input": it.Input})
	}
	e.send("response.output_item.done", whole)
}

// message writes the event that starts the message, once.
func (e *events) message(index int, id string) {
	if e.opened {
		return
	}
	e.opened = true
	e.send("response.output_item.added", map[string]any{"output_index": index, "item": message{"message", id, "in_progress", "assistant", []any{}}})
}

// thought writes all events of an item of reasoning except the last.
func (e *events) thought(index int, it reasoning) {
	empty := it
	empty.Summary, empty.Encrypted = []summaryText{}, ""
	e.send("response.output_item.added", map[string]any{"output_index": index, "item": empty})
	for i, part := range it.Summary {
		with := in(map[string]any{"item_id": it.ID, "output_index": index, "summary_index": i})
		e.send("response.reasoning_summary_part.added", with(map[string]any{"part": summaryText{Type: part.Type}}))
		e.send("response.reasoning_summary_text.delta", with(map[string]any{"delta": part.Text}))
		e.send("response.reasoning_summary_text.done", with(map[string]any{"text": part.Text}))
		e.send("response.reasoning_summary_part.done", with(map[string]any{"part": part}))
	}
}

// in returns a function that adds the position of a part to the fields of an event.
func in(place map[string]any) func(map[string]any) map[string]any {
	return func(more map[string]any) map[string]any {
		maps.Copy(more, place)
		return more
	}
}

// part writes the events for one part of a message.
func (e *events) part(at map[string]any, part any) {
	with := in(at)
	switch p := part.(type) {
	case outputText:
		if e.said == "" { // otherwise the text has already been streamed
			e.send("response.content_part.added", with(map[string]any{"part": textOf("")}))
			e.send("response.output_text.delta", with(map[string]any{"delta": p.Text, "logprobs": []any{}}))
		}
		e.send("response.output_text.done", with(map[string]any{"text": p.Text, "logprobs": []any{}}))
	case refusal:
		e.send("response.content_part.added", with(map[string]any{"part": refusal{Type: "refusal"}}))
		e.send("response.refusal.delta", with(map[string]any{"delta": p.Refusal}))
		e.send("response.refusal.done", with(map[string]any{"refusal": p.Refusal}))
	}
	e.send("response.content_part.done", with(map[string]any{"part": part}))
}

// finished returns the finish reason of an answer in a chat.
func finished(r *llm.Reply) string {
	switch why := cutOff(r); {
	case why == "max_output_tokens":
		return "length"
	case why != "":
		return why
	case len(r.ToolCalls) > 0:
		return "tool_calls"
	}
	return "stop"
}
