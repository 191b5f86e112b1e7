package agui

import (
	"encoding/json"
	"strings"

	"github.com/stonelayer/stone/internal/turn"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// An Event is an event of AG-UI.
type Event = map[string]any

// A Stream produces the events of one AG-UI run.
type Stream struct {
	Input
	Name string // name of the run

	sent turn.Progress[sent]
	out  []Event
}

// sent records how much of a part has been sent.
type sent struct {
	begun, ended, over, void bool
	text                     int
}

// of returns the record that says how much of a part has been sent.
func (at *sent) of(p *turn.Part) string {
	if at.ended { // in the record, its text may have another length
		return p.Text
	}
	return strings.TrimSuffix(p.Text, p.After(at.text))
}

// Start starts the run. A client that has joined the conversation is sent its messages.
func (s *Stream) Start() []Event {
	metadata := map[string]any{"run": s.Name}
	if s.Notice != "" {
		metadata["notice"] = s.Notice
	}
	out := []Event{{"type": "RUN_STARTED", "threadId": s.Thread, "runId": s.Input.Run, "protocolVersion": "1.0", "metadata": metadata}}
	if s.Join {
		out = append(out, Event{"type": "MESSAGES_SNAPSHOT", "messages": s.Messages})
	}
	return out
}

// Next returns events for everything that was added to the parts since the previous call.
func (s *Stream) Next(parts []turn.Part) []Event {
	s.out = nil
	back := false
	s.sent.Each(parts, func(p *turn.Part, at *sent) {
		switch {
		case at.over && (p.State != turn.Void || at.void):
		case p.Kind == turn.Step:
			s.stepped(p, at)
		case p.Kind == turn.Ask:
		case !at.begun && s.Seen.Has(s.Name, p):
			s.had(p, at)
			at.void = p.State == turn.Void
			back = back || at.void
		case p.State == turn.Void: // this may happen after the leaf is done, because the step around it may fail
			if at.begun && !at.over {
				s.end(p, at)
			}
			back = back || at.begun || at.over
			at.over, at.void = true, true
		case p.Kind == turn.Tool:
			s.tool(p, at)
		default:
			s.said(p, at)
		}
	})
	if back {
		s.send(Event{"type": "MESSAGES_SNAPSHOT", "messages": s.snapshot(parts)})
	}
	return s.out
}

// End ends the AG-UI run with the state and the result of the run, and the open questions among the parts.
func (s *Stream) End(run api.Run, parts []turn.Part) []Event {
	s.out = nil
	s.sent.Each(parts, func(p *turn.Part, at *sent) {
		if p.Kind == turn.Step && at.begun && !at.over {
			s.send(Event{"type": "STEP_FINISHED", "stepName": p.ID})
		} else if at.begun && !at.over {
			s.end(p, at)
		}
	})
	end := Event{"type": "RUN_FINISHED", "threadId": s.Thread, "runId": s.Input.Run}
	switch run.State {
	case journal.Done:
		end["outcome"] = map[string]any{"type": "success"}
		text, value := turn.Result(run.Result)
		switch {
		case value != nil:
			end["result"] = value
			s.send(Event{"type": "STATE_SNAPSHOT", "snapshot": map[string]any{run.Result.Type: value}})
		case run.Result != nil:
			end["result"] = text
		}
	case journal.Waiting:
		open, calls := s.interrupts(parts)
		switch {
		case len(open) > 0:
			end["outcome"] = map[string]any{"type": "interrupt", "interrupts": open}
		case calls: // calls of the client's tools; the client will send their results
			end["outcome"] = map[string]any{"type": "success"}
		default:
			return append(s.out, s.Fail("waiting", "the turn waits, but not for a person: send the messages again later")...)
		}
	case journal.Canceled: // clients before version 1.0 cannot decode an outcome that reports this
		return append(s.out, s.Fail("canceled", "the run was canceled")...)
	default:
		code := string(run.State)
		if run.Failure != nil {
			code = string(run.Failure.Kind)
		}
		return append(s.out, s.Fail(code, turn.Why(run))...)
	}
	return append(s.out, end)
}

// Fail ends the run with an error.
func (s *Stream) Fail(code, text string) []Event {
	return []Event{{"type": "RUN_ERROR", "code": code, "message": text}}
}

func (s *Stream) send(e ...Event) { s.out = append(s.out, e...) }

func (s *Stream) id(p *turn.Part) string { return turn.ID(s.Name, p.ID) }

func (s *Stream) stepped(p *turn.Part, at *sent) {
	if !at.begun {
		s.send(Event{"type": "STEP_STARTED", "stepName": p.ID})
		at.begun = true
	}
	if p.State == turn.Done {
		s.send(Event{"type": "STEP_FINISHED", "stepName": p.ID})
		at.over = true
	}
}

// had handles a part that the client already has. If the part is a call whose result the client does not have yet, had sends the
// result.
func (s *Stream) had(p *turn.Part, at *sent) {
	if p.Kind != turn.Tool || p.State == turn.Void {
		at.over = true
	} else if p.Output != nil {
		if !s.Seen.HasResult(s.Name, p) {
			s.output(p)
		}
		at.over = true
	}
}

func (s *Stream) said(p *turn.Part, at *sent) {
	if p.Text == "" {
		return
	}
	id := s.id(p)
	kind := "TEXT_MESSAGE"
	if !at.begun {
		if p.Kind == turn.Reasoning {
			s.send(Event{"type": "REASONING_START", "messageId": id}, Event{"type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning"})
		} else {
			s.send(Event{"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"})
		}
		at.begun = true
	}
	if p.Kind == turn.Reasoning {
		kind = "REASONING_MESSAGE"
	}
	if more := p.After(at.text); more != "" {
		s.send(Event{"type": kind + "_CONTENT", "messageId": id, "delta": more})
		at.text = len(p.Text)
	}
	if p.State == turn.Done {
		s.end(p, at)
		at.over = true
	}
}

func (s *Stream) tool(p *turn.Part, at *sent) {
	id := s.id(p)
	if !at.begun {
		if p.Tool == "" {
			return
		}
		s.send(Event{"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": p.Tool, "parentMessageId": s.parent(p)})
		at.begun = true
	}
	if more := p.After(at.text); more != "" && !at.ended {
		s.send(Event{"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": more})
		at.text = len(p.Text)
	}
	if p.Input != nil || p.Output != nil {
		s.end(p, at)
	}
	if p.Output != nil {
		s.output(p)
		at.over = true
	}
}

// parent returns the id of the message that contains a call.
func (s *Stream) parent(p *turn.Part) string { return turn.ID(s.Name, p.Turn) + "/text" }

func (s *Stream) output(p *turn.Part) {
	s.send(Event{"type": "TOOL_CALL_RESULT", "messageId": s.id(p) + "/result", "toolCallId": s.id(p), "role": "tool", "content": *p.Output})
}

// end ends the messages of a part that are open.
func (s *Stream) end(p *turn.Part, at *sent) {
	if at.ended {
		return
	}
	at.ended = true
	switch p.Kind {
	case turn.Text:
		s.send(Event{"type": "TEXT_MESSAGE_END", "messageId": s.id(p)})
	case turn.Reasoning:
		s.send(Event{"type": "REASONING_MESSAGE_END", "messageId": s.id(p)}, Event{"type": "REASONING_END", "messageId": s.id(p)})
	case turn.Tool:
		s.send(Event{"type": "TOOL_CALL_END", "toolCallId": s.id(p)})
	}
}

// interrupts returns the open questions, and reports whether the run waits for calls that the client has to execute.
func (s *Stream) interrupts(parts []turn.Part) (out []map[string]any, calls bool) {
	for i := range parts {
		q := parts[i].Question
		if parts[i].Kind != turn.Ask {
			continue
		}
		if q.Call != nil && q.Call.Client {
			calls = true
			continue
		}
		it := map[string]any{"id": turn.QuestionID(s.Name, q), "reason": "input_required", "message": q.Text}
		if q.Call != nil {
			it["reason"], it["toolCallId"] = "tool_call", turn.ID(s.Name, q.Path)
			it["responseSchema"] = json.RawMessage(`{"type":"object","properties":{"approved":{"type":"boolean"},"reason":{"type":"string"}},"required":["approved"]}`)
		} else if len(q.Schema) > 0 {
			it["responseSchema"] = json.RawMessage(`{"type":"object","properties":{"response":{"type":"string"}},"required":["response"]}`)
		}
		about := map[string]any{}
		if len(q.Choices) > 0 {
			about["choices"] = q.Choices
		}
		if len(q.Schema) > 0 {
			about["schema"] = q.Schema // schema of the JSON in the response
		}
		if q.Problem != "" {
			about["problem"] = q.Problem
		}
		it["metadata"] = about
		out = append(out, it)
	}
	return out, calls
}

// snapshot returns all messages that have not been retracted.
func (s *Stream) snapshot(parts []turn.Part) []any {
	void, has := map[string]bool{}, map[string]bool{}
	for i := range parts {
		if p := &parts[i]; p.State == turn.Void {
			void[s.id(p)] = true
		}
	}
	out := []any{}
	for _, raw := range s.Messages {
		var m message
		if json.Unmarshal(raw, &m) == nil && !void[m.ID] {
			has[m.ID] = true
			out = append(out, raw)
		}
	}
	by := map[string]map[string]any{}
	message := func(id, role string) map[string]any {
		if by[id] == nil {
			by[id] = map[string]any{"id": id, "role": role}
			out = append(out, by[id])
		}
		return by[id]
	}
	s.sent.Each(parts, func(p *turn.Part, at *sent) {
		id := s.id(p)
		if !at.begun || p.State == turn.Void || has[id] {
			return
		}
		switch p.Kind {
		case turn.Text:
			message(id, "assistant")["content"] = at.of(p)
		case turn.Reasoning:
			message(id, "reasoning")["content"] = at.of(p)
		case turn.Tool:
			m := message(s.parent(p), "assistant")
			calls, _ := m["toolCalls"].([]any)
			m["toolCalls"] = append(calls, map[string]any{"id": id, "type": "function", "function": map[string]any{"name": p.Tool, "arguments": at.of(p)}})
			if p.Output != nil && at.over {
				out = append(out, map[string]any{"id": id + "/result", "role": "tool", "toolCallId": id, "content": *p.Output})
			}
		}
	})
	return out
}
