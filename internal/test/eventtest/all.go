package eventtest

import (
	"encoding/json"
	"log/slog"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/event"
)

// All returns a value of each type of event data, with every field set. It is meant for tests that a watcher accepts all of them.
// Every text in the values contains "SECRET".
func All() []event.Data {
	n, score := 1, .5
	usage := budget.Usage{InputTokens: n, OutputTokens: n, USD: .25}
	const text = "a SECRET text"
	raw := json.RawMessage(`{"k":"a SECRET text"}`)
	call := event.ToolCall{Turn: 1, Position: 1, Tool: text, Input: raw}
	return []event.Data{
		event.RunStarted{Fingerprint: text},
		event.StepStarted{Form: text},
		event.StepReplayed{Kind: text},
		event.AttemptFailed{Attempt: 1, Kind: text, Reason: text},
		event.LaneStarted{Lane: 1, Lanes: 2, Label: text},
		event.LaneEnded{Lane: 1, Lanes: 2, Elapsed: time.Second, OK: true, Lost: true},
		event.QuestionAsked{Question: text, Problem: text},
		event.QuestionAnswered{Answer: text},
		event.AgentStarted{},
		event.MiddlewareRan{Turn: 1, Middleware: text, Active: true},
		event.ModelRequest{Turn: 1, Model: text, MessageCount: 1, System: text, Messages: raw, Tools: raw},
		event.Progress{Turn: 1, Elapsed: time.Second, Message: text, Done: 1, Total: 2},
		event.ModelRestarted{Turn: 1, Error: text, Wait: time.Second},
		event.Delta{Source: text, Attempt: 1, Text: text, Kind: event.Arguments, Tool: text},
		event.Retracted{Source: text, Attempt: 1, Reason: text},
		event.ModelResponse{Turn: 1, Model: text, OK: true, Elapsed: time.Second, Usage: usage, Reply: &event.ModelReply{
			StopReason: text, Text: text, Reasoning: text, Refusal: text, ToolCallCount: 1, ToolCalls: raw}},
		event.ToolStarted{ToolCall: call},
		event.ToolPanicked{Tool: text, Error: text, Stack: text},
		event.ToolDone{ToolCall: call, OK: true, Elapsed: time.Second, Text: text, Meta: raw},
		event.AgentEnded{OK: true, Turns: 1, Elapsed: time.Second, Usage: usage},
		event.CallAttempt{Call: text, Cap: text, Attempt: 1, Repair: true, Latency: time.Second, Usage: usage, Score: &score, Failure: text},
		event.CallVerdict{Call: text, Intent: text, Cap: text, Attempts: 1, Latency: time.Second, Usage: usage, Score: &score, Failure: text},
		event.PlanChecked{Plan: text, Findings: []string{text}},
		event.Notice{Code: "SECRET", Path: "SECRET", Text: "SECRET"},
		event.Custom{Name: "SECRET", At: slog.LevelInfo, Attrs: []slog.Attr{
			slog.String("a", text), slog.Any("b", raw), slog.Group("c", slog.String("d", text))}},
		event.StepFailed{Kind: text, Reason: text},
		event.StepDone{Form: text, Result: text, Elapsed: time.Second, OK: true, Replayed: true, Usage: usage},
		event.RunEnded{Fingerprint: text, Elapsed: time.Second, OK: true},
	}
}
