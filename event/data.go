package event

import (
	"log/slog"
	"strings"
	"time"

	"github.com/stonelayer/stone/budget"
)

// Data is the part of an event that depends on its type. Its dynamic type is one of the types of this package, not a pointer to
// it.
//
// The json tag of a field is its name in logs, in trace files and in span attributes. Fields with the tag event:"content" contain
// texts from models and tools, which appear only in files and logs at level debug.
type Data interface {
	about() (name string, level slog.Level)
}

// Level returns the level of the event.
func (e Event) Level() slog.Level { _, level := e.Data.about(); return level }

// Type returns the name of the event's type in trace files, such as "run-start". The types "delta" and "retracted" never occur in
// a trace file.
func (e Event) Type() string { name, _ := e.Data.about(); return name }

// RunStarted reports that a run has started or has been resumed.
type RunStarted struct {
	Fingerprint  string `json:"fingerprint"` // the fingerprint of the pipeline
	Conversation string `json:"conversation,omitempty"`
}

// RunEnded reports that the run has ended.
type RunEnded struct {
	Fingerprint string        `json:"fingerprint"`
	Elapsed     time.Duration `json:"elapsed"`
	OK          bool          `json:"ok"`
}

// StepStarted reports that one execution of an ashlar of any form, called a visit, has started.
type StepStarted struct {
	Form string `json:"form"` // "leaf", "seq", …
}

// StepDone reports that a visit has ended. If the visit failed, StepFailed precedes it.
type StepDone struct {
	Form     string        `json:"form"`
	Elapsed  time.Duration `json:"elapsed"`
	OK       bool          `json:"ok"`
	Replayed bool          `json:"replayed,omitempty"` // whether the result of a leaf was taken from the recorder
	Usage    budget.Usage  `json:",inline"`            // the usage of a leaf, from the meta of its node

	// Result contains booleans and numbers from a leaf's result, in a form such as "passed=false".
	Result string `json:"result,omitempty" event:"content"`
}

// StepReplayed reports that a step's result was taken from the recorder.
type StepReplayed struct {
	Kind string `json:"step"` // "leaf", "decision" or "step"
}

// StepFailed reports that a step has failed. A failure is reported once, at the step that failed first.
type StepFailed struct {
	Kind   string `json:"kind"`
	Reason string `json:"reason"`
}

// AttemptFailed reports that a leaf has failed and will be retried.
type AttemptFailed struct {
	Attempt int    `json:"attempt"` // from 1
	Kind    string `json:"kind"`
	Reason  string `json:"reason"`
}

// LaneStarted reports that a lane of a fan-out has started.
type LaneStarted struct {
	Lane  int    `json:"lane"` // counted from 0
	Lanes int    `json:"lanes"`
	Label string `json:"label,omitempty"` // the name of a branch, or a label of a map's item
}

// LaneEnded reports that a lane has ended.
type LaneEnded struct {
	Lane    int           `json:"lane"`
	Lanes   int           `json:"lanes"`
	Elapsed time.Duration `json:"elapsed"`
	OK      bool          `json:"ok"`
	Lost    bool          `json:"lost,omitempty"` // whether the lane failed and the run continues without it
}

// QuestionAsked reports that the run has put a question to a person.
type QuestionAsked struct {
	Question string `json:"question"`
	Problem  string `json:"reason"` // why the previous answer was rejected, or ""
}

// QuestionAnswered reports that a person has answered a question.
type QuestionAnswered struct {
	Answer string `json:"answer"`           // empty if the question was canceled
	By     string `json:"by"`               // the author, such as "token ops"; empty if unknown
	Client bool   `json:"client,omitempty"` // whether the answer is the result of a call; see ask.Call.Client
}

// AgentStarted reports that an agent has started.
type AgentStarted struct{}

// AgentEnded reports that an agent has ended.
type AgentEnded struct {
	OK      bool          `json:"ok"`
	Turns   int           `json:"turns"`
	Elapsed time.Duration `json:"elapsed"`
	Usage   budget.Usage  `json:",inline"` // the total usage of the agent's requests to models
}

// ModelRequest reports that a request is about to be sent to a model.
type ModelRequest struct {
	Turn         int    `json:"turn-number,omitempty"` // the agent's turn, counted from 1; 0 outside an agent
	Model        string `json:"model"`
	MessageCount int    `json:"message-count"`
	Provider     string `json:"provider,omitempty"` // the protocol, such as "openai"
	Server       string `json:"server,omitempty"`   // the host, with the port if it is not the default
	Stream       bool   `json:"stream,omitempty"`   // whether the server is asked to stream its answer

	System   string `json:"system,omitempty" event:"content"`
	Messages any    `json:"messages,omitempty" event:"content"` // written as encoding/json would write them
	Tools    any    `json:"tools,omitempty" event:"content"`    // likewise
}

// ModelResponse reports that a model has answered a request or has failed to do so.
type ModelResponse struct {
	Turn     int           `json:"turn-number,omitempty"`
	Model    string        `json:"model"`
	OK       bool          `json:"ok"`
	Elapsed  time.Duration `json:"elapsed"`
	Replayed bool          `json:"replayed,omitempty"` // whether the answer was taken from the recorder, without a ModelRequest
	Usage    budget.Usage  `json:",inline"`            // the usage of the request, even if no answer arrived
	Reply    *ModelReply   `json:",inline"`            // nil if there is no answer
}

// A ModelReply is a model's answer to a request.
type ModelReply struct {
	StopReason    string `json:"stop-reason"`
	ID            string `json:"response-id,omitempty"`
	Model         string `json:"response-model,omitempty"` // the model that answered
	Reasoned      int    `json:"reasoning-tokens,omitempty"`
	Text          string `json:"text,omitempty" event:"content"`
	Reasoning     string `json:"reasoning,omitempty" event:"content"`
	Refusal       string `json:"refusal,omitempty" event:"content"`
	ToolCallCount int    `json:"tool-call-count"`
	ToolCalls     any    `json:"tool-calls,omitempty" event:"content"` // written as encoding/json would write them
}

// ModelRestarted reports that a request is sent again, because the previous attempt to obtain an answer failed.
type ModelRestarted struct {
	Turn  int           `json:"turn-number,omitempty"`
	Error string        `json:"error,omitempty"` // "" if unknown
	Wait  time.Duration `json:"wait"`
}

// Progress reports that an answer is still streaming.
type Progress struct {
	Turn    int           `json:"turn-number,omitempty"` // the agent's turn; 0 outside an agent
	Elapsed time.Duration `json:"elapsed"`               // the time since the request

	// Message, Done and Total are reported by some servers. They are not part of the answer.
	Message string  `json:"message,omitempty"`
	Done    float64 `json:"done,omitempty"`
	Total   float64 `json:"total,omitempty"`
}

// MiddlewareRan reports that an agent has run one of its middlewares in a turn, or has skipped it.
type MiddlewareRan struct {
	Turn       int    `json:"turn-number,omitempty"`
	Middleware string `json:"middleware"`
	Active     bool   `json:"active"` // whether the middleware took part; false if its guard skipped it
}

// A ToolCall identifies a tool call of an agent.
type ToolCall struct {
	Turn     int    `json:"turn-number"` // from 1
	Position int    `json:"position"`    // from 1
	Tool     string `json:"tool-name"`
	ID       string `json:"tool-call-id,omitempty"`          // given by the provider
	Input    any    `json:"input,omitempty" event:"content"` // written as encoding/json would write it
}

// ToolStarted reports that a tool call has started.
type ToolStarted struct{ ToolCall }

// ToolDone reports that a tool call has ended or was rejected. No ToolStarted precedes it for a rejected call.
type ToolDone struct {
	ToolCall
	OK      bool          `json:"ok"`
	Elapsed time.Duration `json:"elapsed"`
	Text    string        `json:"result-text,omitempty" event:"content"` // the text for the model
	Meta    any           `json:"result-meta,omitempty" event:"content"` // stored with the result, as encoded by encoding/json
}

// ToolPanicked reports that a tool has panicked. ToolDone follows.
type ToolPanicked struct {
	Tool  string `json:"tool-name"`
	Error string `json:"error"`
	Stack string `json:"stack"`
}

// CallAttempt reports that one attempt of a call to obtain an answer from a capability has ended.
type CallAttempt struct {
	Call    string        `json:"call"`
	Cap     string        `json:"cap"`
	Attempt int           `json:"attempt"` // the number of the capability's attempt, counted from 1
	Repair  bool          `json:"repair,omitempty"`
	Latency time.Duration `json:"latency"`
	Usage   budget.Usage  `json:",inline"`
	Score   *float64      `json:"score,omitempty"`   // nil if the answer was not judged
	Failure string        `json:"failure,omitempty"` // "" if the answer was accepted
}

// CallVerdict reports that a call has ended, and its outcome.
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

// PlanChecked reports that a plan returned by a capability has been checked.
type PlanChecked struct {
	Plan     string   `json:"plan"`               // the name of the step that recorded the plan
	Findings []string `json:"findings,omitempty"` // why the plan was rejected
}

// A DeltaKind is the kind of text in a Delta.
type DeltaKind uint8

// The kinds of deltas.
const (
	Text DeltaKind = iota
	Thinking
	Refusal
	Arguments // the arguments of a tool call
)

func (k DeltaKind) String() string {
	return [...]string{"text", "thinking", "refusal", "arguments"}[k&3]
}

// Delta reports that the next piece of an answer has arrived.
type Delta struct {
	Source  string    `json:"source"`  // the name of the model, or the id of the capability
	Attempt int       `json:"attempt"` // the number of the attempt at this path, counted from 1
	Kind    DeltaKind `json:"kind"`
	Index   int       `json:"index,omitempty"` // with Arguments: the index of the tool call, counted from 0
	Tool    string    `json:"tool,omitempty"`  // with Arguments: the name of the tool, in the first piece
	Text    string    `json:"text,omitempty"`
	End     bool      `json:"end,omitempty"` // whether the answer is complete; Text is then empty
}

// Retracted reports that an answer is void. If Source is empty, every answer that has been streamed at the event's path or below
// is void.
type Retracted struct {
	Source  string `json:"source,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Reason  string `json:"reason"`
}

// Covers reports whether the retraction applies to an answer that was streamed before. The path at is the path of the
// retraction's event.
func (r Retracted) Covers(at, path, source string, attempt int) bool {
	if r.Source != "" {
		return at == path && r.Source == source && r.Attempt == attempt
	}
	below, ok := strings.CutPrefix(path, at)
	return ok && (below == "" || strings.IndexByte("/[~", below[0]) >= 0)
}

// Notice is a message to people about a run that continues. The run's result contains it too. If several notices at one place in
// the pipeline have the same Code, a run sends only the first.
type Notice struct {
	Code string `json:"code"`           // such as "prompt-changed", "pipeline-changed" or "unused-records" of a resumed run
	Path string `json:"path,omitempty"` // the path of the step; empty means the sender's path
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
