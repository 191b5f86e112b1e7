package event

import (
	"log/slog"
	"strings"
	"time"

	"github.com/stonelayer/stone/budget"
)

// Data is the content of an event: one of the types of this package, passed by value.
//
// The tag json names a field in logs, in trace files and in attributes of spans. Fields with the tag event:"content" hold texts
// from models and tools, which appear only in files and logs at level debug.
type Data interface {
	about() (name string, level slog.Level)
}

// Level returns the level of the event.
func (e Event) Level() slog.Level { _, level := e.Data.about(); return level }

// Type returns the event's name in trace files, such as "run-start". The types "delta" and "retracted" are never in a trace file.
func (e Event) Type() string { name, _ := e.Data.about(); return name }

// RunStarted: a run, or its continuation, has started.
type RunStarted struct {
	Fingerprint  string `json:"fingerprint"` // of the pipeline
	Conversation string `json:"conversation,omitempty"`
}

// RunEnded: the run has ended.
type RunEnded struct {
	Fingerprint string        `json:"fingerprint"`
	Elapsed     time.Duration `json:"elapsed"`
	OK          bool          `json:"ok"`
}

// StepStarted: an ashlar of any form is visited.
type StepStarted struct {
	Form string `json:"form"` // "leaf", "seq", …
}

// StepDone: the visit has ended. If it failed, StepFailed came first.
type StepDone struct {
	Form     string        `json:"form"`
	Elapsed  time.Duration `json:"elapsed"`
	OK       bool          `json:"ok"`
	Replayed bool          `json:"replayed,omitempty"` // the result of a leaf was taken from the recorder
	Usage    budget.Usage  `json:",inline"`            // of a leaf, from the meta of its node

	// Result holds the booleans and numbers in a leaf's result, such as "passed=false".
	Result string `json:"result,omitempty" event:"content"`
}

// StepReplayed: a result was taken from the recorder.
type StepReplayed struct {
	Kind string `json:"step"` // "leaf", "decision" or "step"
}

// StepFailed: a step has failed. A failure is reported once, at the step that failed
// first.
type StepFailed struct {
	Kind   string `json:"kind"`
	Reason string `json:"reason"`
}

// AttemptFailed: a leaf failed and is retried.
type AttemptFailed struct {
	Attempt int    `json:"attempt"` // from 1
	Kind    string `json:"kind"`
	Reason  string `json:"reason"`
}

// LaneStarted: a lane of a fan-out has started.
type LaneStarted struct {
	Lane  int    `json:"lane"` // from 0
	Lanes int    `json:"lanes"`
	Label string `json:"label,omitempty"` // the name of a branch, or a label of a map's item
}

// LaneEnded: a lane has ended.
type LaneEnded struct {
	Lane    int           `json:"lane"`
	Lanes   int           `json:"lanes"`
	Elapsed time.Duration `json:"elapsed"`
	OK      bool          `json:"ok"`
	Lost    bool          `json:"lost,omitempty"` // it failed, and the run continues without it
}

// QuestionAsked: a person is asked.
type QuestionAsked struct {
	Question string `json:"question"`
	Problem  string `json:"reason"` // why the previous answer was rejected, or ""
}

// QuestionAnswered: a person has answered.
type QuestionAnswered struct {
	Answer string `json:"answer"`           // empty if the question was canceled
	By     string `json:"by"`               // the author, such as "token ops"; empty if unknown
	Client bool   `json:"client,omitempty"` // the answer is the result of a call; see ask.Call.Client
}

// AgentStarted: an agent has started.
type AgentStarted struct{}

// AgentEnded: an agent has ended.
type AgentEnded struct {
	OK      bool          `json:"ok"`
	Turns   int           `json:"turns"`
	Elapsed time.Duration `json:"elapsed"`
	Usage   budget.Usage  `json:",inline"` // usage of all its requests to models
}

// ModelRequest: a request is sent to a model.
type ModelRequest struct {
	Turn         int    `json:"turn-number,omitempty"` // turn of the agent, from 1; 0 outside an agent
	Model        string `json:"model"`
	MessageCount int    `json:"message-count"`
	Provider     string `json:"provider,omitempty"` // the protocol, such as "openai"
	Server       string `json:"server,omitempty"`   // host, with an unusual port
	Stream       bool   `json:"stream,omitempty"`   // the server is asked to stream its answer

	System   string `json:"system,omitempty" event:"content"`
	Messages any    `json:"messages,omitempty" event:"content"` // as encoding/json writes them
	Tools    any    `json:"tools,omitempty" event:"content"`    // likewise
}

// ModelResponse: a model has answered or has failed to answer.
type ModelResponse struct {
	Turn     int           `json:"turn-number,omitempty"`
	Model    string        `json:"model"`
	OK       bool          `json:"ok"`
	Elapsed  time.Duration `json:"elapsed"`
	Replayed bool          `json:"replayed,omitempty"` // taken from the recorder, without a ModelRequest
	Usage    budget.Usage  `json:",inline"`            // including a failed answer
	Reply    *ModelReply   `json:",inline"`            // nil without an answer
}

// A ModelReply is the answer of a model.
type ModelReply struct {
	StopReason    string `json:"stop-reason"`
	ID            string `json:"response-id,omitempty"`
	Model         string `json:"response-model,omitempty"` // the model that answered
	Reasoned      int    `json:"reasoning-tokens,omitempty"`
	Text          string `json:"text,omitempty" event:"content"`
	Reasoning     string `json:"reasoning,omitempty" event:"content"`
	Refusal       string `json:"refusal,omitempty" event:"content"`
	ToolCallCount int    `json:"tool-call-count"`
	ToolCalls     any    `json:"tool-calls,omitempty" event:"content"` // as encoding/json writes them
}

// ModelRestarted: a failed attempt to obtain an answer is repeated.
type ModelRestarted struct {
	Turn  int           `json:"turn-number,omitempty"`
	Error string        `json:"error,omitempty"` // "" if unknown
	Wait  time.Duration `json:"wait"`
}

// Progress: an answer is still streaming.
type Progress struct {
	Turn    int           `json:"turn-number,omitempty"` // turn of an agent, 0 outside one
	Elapsed time.Duration `json:"elapsed"`               // since the request

	// Message, Done and Total come from the server, if it reports them. They are not part of the answer.
	Message string  `json:"message,omitempty"`
	Done    float64 `json:"done,omitempty"`
	Total   float64 `json:"total,omitempty"`
}

// MiddlewareRan: a turn of an agent reached a middleware.
type MiddlewareRan struct {
	Turn       int    `json:"turn-number,omitempty"`
	Middleware string `json:"middleware"`
	Active     bool   `json:"active"` // false if its guard skipped it
}

// A ToolCall identifies a tool call of an agent.
type ToolCall struct {
	Turn     int    `json:"turn-number"` // from 1
	Position int    `json:"position"`    // from 1
	Tool     string `json:"tool-name"`
	ID       string `json:"tool-call-id,omitempty"`          // given by the provider
	Input    any    `json:"input,omitempty" event:"content"` // as encoding/json writes it
}

// ToolStarted: a tool starts.
type ToolStarted struct{ ToolCall }

// ToolDone: a tool call has ended or was rejected. A rejected call has no ToolStarted.
type ToolDone struct {
	ToolCall
	OK      bool          `json:"ok"`
	Elapsed time.Duration `json:"elapsed"`
	Text    string        `json:"result-text,omitempty" event:"content"` // for the model
	Meta    any           `json:"result-meta,omitempty" event:"content"` // stored with the result, as encoded by encoding/json
}

// ToolPanicked: a tool panicked; ToolDone follows.
type ToolPanicked struct {
	Tool  string `json:"tool-name"`
	Error string `json:"error"`
	Stack string `json:"stack"`
}

// CallAttempt: an attempt of a call has ended.
type CallAttempt struct {
	Call    string        `json:"call"`
	Cap     string        `json:"cap"`
	Attempt int           `json:"attempt"` // attempt of this capability, from 1
	Repair  bool          `json:"repair,omitempty"`
	Latency time.Duration `json:"latency"`
	Usage   budget.Usage  `json:",inline"`
	Score   *float64      `json:"score,omitempty"`   // nil without a verdict
	Failure string        `json:"failure,omitempty"` // "" if the answer was accepted
}

// CallVerdict: a call has ended.
type CallVerdict struct {
	Call     string        `json:"call"`
	Intent   string        `json:"intent"`
	Cap      string        `json:"cap"`
	Attempts int           `json:"attempts"`
	Latency  time.Duration `json:"latency"`
	Usage    budget.Usage  `json:",inline"`
	Score    *float64      `json:"score,omitempty"`
	Failure  string        `json:"failure,omitempty"`
}

// PlanChecked: a plan in the answer of a capability was checked.
type PlanChecked struct {
	Plan     string   `json:"plan"`               // the step of the answer
	Findings []string `json:"findings,omitempty"` // why it was rejected
}

// A DeltaKind is the kind of text in a Delta.
type DeltaKind uint8

// The kinds of deltas.
const (
	Text DeltaKind = iota
	Thinking
	Refusal
	Arguments // of a tool call
)

func (k DeltaKind) String() string {
	return [...]string{"text", "thinking", "refusal", "arguments"}[k&3]
}

// Delta: the next piece of an answer arrived.
type Delta struct {
	Source  string    `json:"source"`  // name of the model, or id of the capability
	Attempt int       `json:"attempt"` // from 1, at this path
	Kind    DeltaKind `json:"kind"`
	Index   int       `json:"index,omitempty"` // with Arguments: index of the tool call, from 0
	Tool    string    `json:"tool,omitempty"`  // with Arguments: the name of the tool, in the first piece
	Text    string    `json:"text,omitempty"`
	End     bool      `json:"end,omitempty"` // the answer is complete; Text is empty
}

// Retracted: an answer is void. Without a Source, it is every answer streamed so far at
// the path of the event and below.
type Retracted struct {
	Source  string `json:"source,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Reason  string `json:"reason"`
}

// Covers reports whether the retraction, in an event with the path at, applies to an answer streamed before.
func (r Retracted) Covers(at, path, source string, attempt int) bool {
	if r.Source != "" {
		return at == path && r.Source == source && r.Attempt == attempt
	}
	below, ok := strings.CutPrefix(path, at)
	return ok && (below == "" || strings.IndexByte("/[~", below[0]) >= 0)
}

// Notice is something that a person should know about a run that continues. It is also in the run's result. If several notices at
// one place in the pipeline have the same Code, a run sends only the first.
type Notice struct {
	Code string `json:"code"`           // such as "prompt-changed", "pipeline-changed" or "unused-records" of a resumed run
	Path string `json:"path,omitempty"` // path of the step; empty means the sender
	Text string `json:"text"`           // for people, at most a few lines
}

// Custom is an event that a body defines.
type Custom struct {
	Name  string // such as "cache-hit"
	At    slog.Level
	Attrs []slog.Attr
}

func (RunStarted) about() (string, slog.Level)       { return "run-start", slog.LevelInfo }
func (RunEnded) about() (string, slog.Level)         { return "run-end", slog.LevelInfo }
func (StepStarted) about() (string, slog.Level)      { return "ashlar-start", slog.LevelDebug }
func (StepDone) about() (string, slog.Level)         { return "ashlar-end", slog.LevelDebug }
func (StepReplayed) about() (string, slog.Level)     { return "step-replayed", slog.LevelInfo }
func (StepFailed) about() (string, slog.Level)       { return "failure", slog.LevelError }
func (AttemptFailed) about() (string, slog.Level)    { return "attempt-failed", slog.LevelWarn }
func (LaneStarted) about() (string, slog.Level)      { return "lane-start", slog.LevelDebug }
func (LaneEnded) about() (string, slog.Level)        { return "lane-end", slog.LevelDebug }
func (QuestionAsked) about() (string, slog.Level)    { return "question-asked", slog.LevelInfo }
func (QuestionAnswered) about() (string, slog.Level) { return "question-answered", slog.LevelInfo }
func (AgentStarted) about() (string, slog.Level)     { return "agent-ashlar-start", slog.LevelInfo }
func (AgentEnded) about() (string, slog.Level)       { return "agent-ashlar-end", slog.LevelInfo }
func (ModelRequest) about() (string, slog.Level)     { return "api-call", slog.LevelInfo }
func (ModelResponse) about() (string, slog.Level)    { return "api-response", slog.LevelInfo }
func (ModelRestarted) about() (string, slog.Level)   { return "api-restart", slog.LevelWarn }
func (Progress) about() (string, slog.Level)         { return "streaming-progress", slog.LevelInfo }
func (MiddlewareRan) about() (string, slog.Level)    { return "middleware-run", slog.LevelDebug }
func (ToolStarted) about() (string, slog.Level)      { return "tool-start", slog.LevelDebug }
func (ToolDone) about() (string, slog.Level)         { return "tool-dispatch", slog.LevelInfo }
func (ToolPanicked) about() (string, slog.Level)     { return "tool-panic", slog.LevelError }
func (CallAttempt) about() (string, slog.Level)      { return "call-attempt", slog.LevelInfo }
func (CallVerdict) about() (string, slog.Level)      { return "call-verdict", slog.LevelInfo }
func (PlanChecked) about() (string, slog.Level)      { return "plan-checked", slog.LevelInfo }
func (Delta) about() (string, slog.Level)            { return "delta", LevelDelta }
func (Retracted) about() (string, slog.Level)        { return "retracted", LevelDelta }
func (Notice) about() (string, slog.Level)           { return "notice", slog.LevelWarn }
func (c Custom) about() (string, slog.Level)         { return c.Name, c.At }
