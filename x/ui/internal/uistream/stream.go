package uistream

import (
	"encoding/json"

	"github.com/stonelayer/stone/internal/turn"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// A Chunk is a chunk of the stream.
type Chunk = map[string]any

// A Stream produces the chunks of one reply from the server.
type Stream struct {
	Run     string    // name of the run
	Notice  string    // notice about the request
	Message string    // id of the message that is sent; if empty, the client chooses it
	Seen    turn.Seen // parts that the client already has

	sent turn.Progress[sent]
	turn string // turn of the last part
	step bool   // a step is open
	out  []Chunk
}

// sent records how much of a part has been sent.
type sent struct {
	begun, input, asked, over, void bool
	text                            int
}

// Start starts the reply.
func (s *Stream) Start() []Chunk {
	metadata := map[string]any{"run": s.Run}
	if s.Notice != "" {
		metadata["notice"] = s.Notice
	}
	c := Chunk{"type": "start", "messageMetadata": metadata}
	if s.Message != "" {
		c["messageId"] = s.Message
	}
	return []Chunk{c}
}

// Next returns chunks for everything that was added to the parts since the previous call.
func (s *Stream) Next(parts []turn.Part) []Chunk {
	s.out = nil
	s.sent.Each(parts, func(p *turn.Part, at *sent) {
		switch p.Kind {
		case turn.Text, turn.Reasoning:
			s.said(p, at)
		case turn.Tool:
			s.tool(p, at)
		case turn.Ask:
			s.ask(p, at)
		}
	})
	return s.out
}

// End ends the reply with the state of the run.
func (s *Stream) End(run api.Run, parts []turn.Part) []Chunk {
	s.out = nil
	s.sent.Each(parts, func(p *turn.Part, at *sent) {
		if p.Kind <= turn.Reasoning && at.begun && !at.over {
			p.State = turn.Done
			s.said(p, at)
		}
	})
	if s.step {
		s.send(Chunk{"type": "finish-step"})
	}
	end := Chunk{"type": "finish", "finishReason": "stop", "messageMetadata": map[string]any{"run": s.Run, "state": run.State}}
	switch run.State {
	case journal.Done:
		if _, value := turn.Result(run.Result); value != nil {
			s.send(Chunk{"type": "data-result", "id": turn.ID(s.Run, "result"), "data": value})
		}
	case journal.Waiting:
		end["finishReason"] = "other"
	case journal.Canceled:
		end = Chunk{"type": "abort", "reason": "the run was canceled"}
	default:
		return append(s.out, s.Fail("", turn.Why(run))...)
	}
	return append(s.out, end)
}

// Fail ends the reply with an error. The client ignores everything that follows.
func (s *Stream) Fail(_, text string) []Chunk {
	return []Chunk{{"type": "error", "errorText": text}}
}

func name(k turn.Kind) string {
	if k == turn.Reasoning {
		return "reasoning"
	}
	return "text"
}

func (s *Stream) send(c ...Chunk) { s.out = append(s.out, c...) }

// begin starts a part, in a step of its turn.
func (s *Stream) begin(p *turn.Part) {
	if p.Turn != s.turn {
		s.send(Chunk{"type": "start-step"})
		s.turn, s.step = p.Turn, true
	}
}

func (s *Stream) said(p *turn.Part, at *sent) {
	name := name(p.Kind)
	id := turn.ID(s.Run, p.ID)
	metadata := map[string]any{"part": id}
	if !at.begun && !at.over {
		switch had := s.Seen.Has(s.Run, p); {
		case !had && p.State == turn.Open && p.Text == "":
			return
		case had:
			at.over = true
		case p.State == turn.Void:
			at.over, at.void = true, true
		}
	}
	if at.over {
		s.takeBack(p, at)
		return
	}
	if !at.begun {
		s.begin(p)
		s.send(Chunk{"type": name + "-start", "id": id, "providerMetadata": map[string]any{"stone": metadata}})
		at.begun = true
	}
	if more := p.After(at.text); more != "" {
		s.send(Chunk{"type": name + "-delta", "id": id, "delta": more})
		at.text = len(p.Text)
	}
	if p.State == turn.Open {
		return
	}
	end := Chunk{"type": name + "-end", "id": id}
	if p.State == turn.Void {
		metadata["retracted"], at.void = p.Reason, true
		end["providerMetadata"] = map[string]any{"stone": metadata}
	}
	s.send(end)
	at.over = true
}

// takeBack retracts a part that has already ended, possibly in an earlier message. This happens, for example, when the step
// around its leaf fails.
func (s *Stream) takeBack(p *turn.Part, at *sent) {
	if p.State == turn.Void && !at.void {
		id := turn.ID(s.Run, p.ID)
		s.send(Chunk{"type": "data-retracted", "id": id, "data": map[string]any{"part": id, "reason": p.Reason}})
		at.void = true
	}
}

func (s *Stream) tool(p *turn.Part, at *sent) {
	id := turn.ID(s.Run, p.ID)
	if !at.begun && s.Seen.Has(s.Run, p) {
		at.begun, at.input = true, true
	}
	if !at.begun {
		if at.over || p.State == turn.Void || p.Tool == "" {
			return
		}
		s.begin(p)
		s.send(Chunk{"type": "tool-input-start", "toolCallId": id, "toolName": p.Tool, "providerExecuted": true})
		at.begun = true
	}
	if more := p.After(at.text); more != "" && !at.input {
		s.send(Chunk{"type": "tool-input-delta", "toolCallId": id, "inputTextDelta": more})
		at.text = len(p.Text)
	}
	if p.Input != nil && !at.input && p.State != turn.Void {
		s.send(Chunk{"type": "tool-input-available", "toolCallId": id, "toolName": p.Tool, "input": p.Input, "providerExecuted": true})
		at.input = true
	}
	switch {
	case at.over:
		s.takeBack(p, at)
		return
	case p.State == turn.Void:
		at.void = true
		s.send(Chunk{"type": "tool-input-error", "toolCallId": id, "toolName": p.Tool, "input": p.Text, "providerExecuted": true, "errorText": "retracted: " + p.Reason})
	case p.Output == nil:
		return
	case s.Seen.HasResult(s.Run, p):
	case p.Denied:
		s.send(Chunk{"type": "tool-output-denied", "toolCallId": id})
	case p.Failed:
		s.send(Chunk{"type": "tool-output-error", "toolCallId": id, "errorText": *p.Output, "providerExecuted": true})
	default:
		s.send(Chunk{"type": "tool-output-available", "toolCallId": id, "output": *p.Output, "providerExecuted": true})
	}
	at.over = true
}

// question is the data in a part of the type data-question.
type question struct {
	Question string          `json:"question"` // id to use in the answer
	Text     string          `json:"text"`
	Choices  []string        `json:"choices,omitempty"`
	Schema   json.RawMessage `json:"schema,omitempty"`
	Problem  string          `json:"problem,omitempty"` // reason why the last answer was rejected
}

// ask sends an open question.
func (s *Stream) ask(p *turn.Part, at *sent) {
	q := p.Question
	if at.asked || s.Seen.HasQuestion(s.Run, q) {
		return
	}
	at.asked = true
	id := turn.QuestionID(s.Run, q)
	if q.Call == nil {
		s.send(Chunk{"type": "data-question", "id": id, "data": question{id, q.Text, q.Choices, q.Schema, q.Problem}})
		return
	}
	call := turn.CallID(s.Run, q)
	// A call that waits for the client is not marked as executed by the server, because clients ignore calls that are.
	s.send(Chunk{"type": "tool-input-available", "toolCallId": call, "toolName": q.Call.Tool, "input": q.Call.Input, "providerExecuted": false})
	if !q.Call.Client {
		s.send(Chunk{"type": "tool-approval-request", "approvalId": id, "toolCallId": call})
	}
}
