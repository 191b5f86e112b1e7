package script

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/stonelayer/stone/llm"
)

// wireItem is an input item of the Responses protocol.
type wireItem struct {
	Type      string          `json:"type"`
	Role      llm.Role        `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
}

// conversation reads input items. The items of one model turn become one message.
func conversation(input json.RawMessage) ([]llm.Message, error) {
	var items []wireItem
	if err := json.Unmarshal(input, &items); err != nil {
		return nil, err
	}
	var list []llm.Message
	assistant := func() *llm.Message {
		if n := len(list); n == 0 || list[n-1].Role != llm.RoleAssistant {
			list = append(list, llm.Message{Role: llm.RoleAssistant})
		}
		return &list[len(list)-1]
	}
	for _, it := range items {
		switch it.Type {
		case "function_call":
			m := assistant()
			m.ToolCalls = append(m.ToolCalls, llm.ToolCall{ID: it.CallID, Name: it.Name, Input: json.RawMessage(it.Arguments)})
		case "function_call_output":
			list = append(list, llm.ToolResult(it.CallID, textOf(it.Output)))
		case "message", "":
			m := &llm.Message{Role: it.Role}
			if it.Role == llm.RoleAssistant {
				m = assistant()
			}
			if s := textOf(it.Content); s != "" {
				m.Content = append(m.Content, llm.Part{Text: s})
			}
			if it.Role != llm.RoleAssistant {
				list = append(list, *m)
			}
		}
	}
	return list, nil
}

// responses writes the answer in the format of Responses.
type responses struct {
	*stream
	response object
	output   []object
	events   int
}

func (s *stream) responses(a *Answer) {
	r := &a.Reply
	w := &responses{stream: s, output: []object{}, response: object{
		"id": cmp.Or(r.ID, "resp_script"), "object": "response", "created_at": 0, "completed_at": nil,
		"status": "in_progress", "incomplete_details": nil, "model": cmp.Or(r.Model, s.model), "previous_response_id": nil,
		"instructions": nil, "error": nil, "tools": []object{}, "tool_choice": "auto", "truncation": "disabled",
		"parallel_tool_calls": true, "text": object{"format": object{"type": "text"}}, "top_p": 1, "presence_penalty": 0,
		"frequency_penalty": 0, "top_logprobs": 0, "temperature": 1, "reasoning": nil, "usage": nil, "max_output_tokens": nil,
		"max_tool_calls": nil, "store": false, "background": false, "service_tier": "default", "metadata": object{},
		"safety_identifier": nil, "prompt_cache_key": nil, "output": []object{},
	}}
	w.event("response.created", object{"response": w.response})
	if r.Reasoning != "" {
		w.reasoning(r.Reasoning)
	}
	if r.Text != "" {
		w.message(object{"type": "output_text", "text": "", "annotations": []object{}, "logprobs": []object{}}, "text", "output_text", r.Text)
	}
	if r.Refusal != "" {
		w.message(object{"type": "refusal", "refusal": ""}, "refusal", "refusal", r.Refusal)
	}
	for _, call := range r.ToolCalls {
		w.call(call)
	}
	if a.Err != nil {
		var p *llm.ProviderError
		if errors.As(a.Err, &p) {
			w.event("error", object{"error": object{"type": p.Type, "code": p.Code, "message": p.Message, "param": nil}})
		}
		return
	}
	w.end(r)
}

// event writes an event with its type and number.
func (w *responses) event(name string, fields object) {
	fields["type"], fields["sequence_number"] = name, w.events
	w.events++
	w.send(name, fields)
}

// end writes the end of the response. A stop reason other than "completed" means that the response is incomplete.
func (w *responses) end(r *llm.Reply) {
	name := "response.completed"
	w.response["status"], w.response["output"] = "completed", w.output
	if r.StopReason != "" && r.StopReason != "completed" {
		name = "response.incomplete"
		w.response["status"], w.response["incomplete_details"] = "incomplete", object{"reason": r.StopReason}
	}
	if u := r.Usage; u.InputTokens != nil && u.OutputTokens != nil {
		w.response["usage"] = object{
			"input_tokens": u.InputTokens, "output_tokens": u.OutputTokens, "total_tokens": *u.InputTokens + *u.OutputTokens,
			"input_tokens_details":  object{"cached_tokens": u.CachedInputTokens, "cache_write_tokens": u.CacheWriteTokens},
			"output_tokens_details": object{"reasoning_tokens": u.ReasoningTokens},
		}
	}
	w.event(name, object{"response": w.response})
}

// item writes an item: its start, the output of deltas, and its end with the changed fields.
func (w *responses) item(start, end object, deltas func(at object)) {
	index := len(w.output)
	w.event("response.output_item.added", object{"output_index": index, "item": start})
	deltas(object{"item_id": start["id"], "output_index": index})
	whole := merged(start, end)
	w.output = append(w.output, whole)
	w.event("response.output_item.done", object{"output_index": index, "item": whole})
}

func (w *responses) reasoning(text string) {
	summary := object{"type": "summary_text", "text": text}
	start := object{"type": "reasoning", "id": w.id("rs"), "summary": []object{}}
	// A test cannot depend on the encrypted content, only on its return.
	w.item(start, object{"summary": []object{summary}, "encrypted_content": "script"}, func(at object) {
		at["summary_index"] = 0
		w.event("response.reasoning_summary_part.added", merged(at, object{"part": object{"type": "summary_text", "text": ""}}))
		for _, piece := range pieces(text) {
			w.event("response.reasoning_summary_text.delta", merged(at, object{"delta": piece}))
		}
		w.event("response.reasoning_summary_text.done", merged(at, object{"text": text}))
		w.event("response.reasoning_summary_part.done", merged(at, object{"part": summary}))
	})
}

// message writes a message with one part, whose text is in field.
func (w *responses) message(part object, field, event, text string) {
	start := object{"type": "message", "id": w.id("msg"), "role": "assistant", "status": "in_progress", "content": []object{}}
	whole := merged(part, object{field: text})
	w.item(start, object{"status": "completed", "content": []object{whole}}, func(at object) {
		at["content_index"] = 0
		extra := object{}
		if event == "output_text" {
			extra["logprobs"] = []object{}
		}
		w.event("response.content_part.added", merged(at, object{"part": part}))
		for _, piece := range pieces(text) {
			w.event("response."+event+".delta", merged(at, extra, object{"delta": piece}))
		}
		w.event("response."+event+".done", merged(at, extra, object{field: text}))
		w.event("response.content_part.done", merged(at, object{"part": whole}))
	})
}

func (w *responses) call(call llm.ToolCall) {
	args, status := string(call.Input), "completed"
	if call.Input == nil {
		args, status = call.InputText, "incomplete"
	}
	start := object{"type": "function_call", "id": w.id("fc"), "call_id": call.ID, "name": call.Name, "arguments": "", "status": "in_progress"}
	w.item(start, object{"arguments": args, "status": status}, func(at object) {
		for _, piece := range pieces(args) {
			w.event("response.function_call_arguments.delta", merged(at, object{"delta": piece}))
		}
		w.event("response.function_call_arguments.done", merged(at, object{"arguments": args}))
	})
}

// id returns the ID of the next item.
func (w *responses) id(kind string) string { return fmt.Sprintf("%s_script_%d", kind, len(w.output)) }

// merged returns an object with the fields of all the objects.
func merged(list ...object) object {
	all := object{}
	for _, o := range list {
		maps.Copy(all, o)
	}
	return all
}
