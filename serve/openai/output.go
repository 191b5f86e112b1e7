package openai

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/stonelayer/stone/llm"
)

// message is an item of the output.
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

// functionCall is an item of the output.
type functionCall struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Status    string `json:"status"`
}

func textOf(text string) outputText {
	return outputText{Type: "output_text", Text: text, Annotations: []any{}, Logprobs: []any{}}
}

// outputOf returns the items of an answer. Their ids are always the same.
func outputOf(id string, r *llm.Reply) []any {
	out := []any{}
	suffix := strings.TrimPrefix(id, "resp_")
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
	for i, c := range r.ToolCalls {
		args, status := string(c.Input), "completed"
		if c.Input == nil {
			args, status = c.InputText, "incomplete"
		}
		out = append(out, functionCall{Type: "function_call", ID: fmt.Sprintf("fc_%s_%d", suffix, i), CallID: c.ID, Name: c.Name, Arguments: args, Status: status})
	}
	return out
}

// events writes the events of a response, in the same order and with the same numbers
// whenever it is asked for them.
type events struct {
	*stream
	next, after int // numbers of the next event, and of the last one that the client has
}

func (e *events) send(kind string, fields map[string]any) {
	fields["type"], fields["sequence_number"] = kind, e.next
	if e.next++; e.next-1 > e.after {
		e.stream.send(kind, fields)
	}
}

// stream writes the events after a number. The answer follows when the run is done.
func (resp *response) stream(w http.ResponseWriter, r *http.Request, b Backend, m Model, after int) error {
	e := &events{stream: newStream(w), after: after}
	e.send("response.created", map[string]any{"response": *resp})
	e.send("response.in_progress", map[string]any{"response": *resp})
	e.beat()
	run, err := wait(r.Context(), b, resp.ID, r.Method == http.MethodPost && !resp.Background, e.beat)
	if err != nil {
		return nil // the client has gone, or comes back
	}
	if err := resp.end(m, run); err != nil {
		resp.Status, resp.Error = "failed", &responseError{"internal", "the result of the run cannot be read"}
	}
	for i, it := range resp.Output {
		e.item(i, it)
	}
	name := "response." + resp.Status
	switch {
	case !run.Over() && resp.Background:
		return nil // it waits for a person, and the client comes back
	case !run.Over():
		resp.Status = "failed"
		fallthrough
	case resp.Status == "cancelled":
		failure := ofRun(run)
		resp.Error, name = &responseError{failure.Code, failure.Message}, "response.failed"
	}
	e.send(name, map[string]any{"response": *resp})
	return nil
}

// item writes the events of an item.
func (e *events) item(index int, it any) {
	whole := map[string]any{"output_index": index, "item": it}
	switch it := it.(type) {
	case message:
		empty := it
		empty.Status, empty.Content = "in_progress", []any{}
		e.send("response.output_item.added", map[string]any{"output_index": index, "item": empty})
		for i, part := range it.Content {
			e.part(map[string]any{"item_id": it.ID, "output_index": index, "content_index": i}, part)
		}
	case functionCall:
		empty := it
		empty.Status, empty.Arguments = "in_progress", ""
		e.send("response.output_item.added", map[string]any{"output_index": index, "item": empty})
		e.send("response.function_call_arguments.delta", map[string]any{"item_id": it.ID, "output_index": index, "delta": it.Arguments})
		e.send("response.function_call_arguments.done", map[string]any{"item_id": it.ID, "output_index": index, "arguments": it.Arguments, "name": it.Name})
	}
	e.send("response.output_item.done", whole)
}

// part writes the events of a part of a message.
func (e *events) part(at map[string]any, part any) {
	with := func(more map[string]any) map[string]any {
		for k, v := range at {
			more[k] = v
		}
		return more
	}
	switch p := part.(type) {
	case outputText:
		e.send("response.content_part.added", with(map[string]any{"part": textOf("")}))
		e.send("response.output_text.delta", with(map[string]any{"delta": p.Text, "logprobs": []any{}}))
		e.send("response.output_text.done", with(map[string]any{"text": p.Text, "logprobs": []any{}}))
	case refusal:
		e.send("response.content_part.added", with(map[string]any{"part": refusal{Type: "refusal"}}))
		e.send("response.refusal.delta", with(map[string]any{"delta": p.Refusal}))
		e.send("response.refusal.done", with(map[string]any{"refusal": p.Refusal}))
	}
	e.send("response.content_part.done", with(map[string]any{"part": part}))
}

// finished is the reason for which a chat's answer ends.
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
