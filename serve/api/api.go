// Package api defines the requests and replies of stone serve's HTTP interface under /v1, and a client for it. A server's OpenAPI
// document is generated from these types.
//
//	c := api.Client{URL: "http://127.0.0.1:8080", Token: os.Getenv("STONE_TOKEN")}
//	run, err := c.Start(ctx, "t-17", api.Start{Pipeline: "triage", Input: input})
//	…
//	run, err = c.Result(ctx, run.ID)
//
// The server stores the runs, so a caller may exit and fetch the result later. A Start with an id is safe to repeat: the same
// request returns the same run.
//
// An error that the server reports is a *[Problem]. If a request does not match its pipeline's input, the problem lists the
// validator's findings.
//
// # Servers that restart
//
// If no server answers, or the server is closing or busy, the client retries requests that are
// safe to repeat, for up to Patience. These are all requests except Answer, Cancel, Resume,
// Remove, and Act without an id. Result and Events wait for as long as the run takes.
//
// [Client.Stream] yields the answer of a capability as it arrives, in a [Chunk] for each piece.
package api

import (
	"encoding/json"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/journal"
)

// Pipeline is a published pipeline.
type Pipeline struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"input"`             // JSON Schema of Start.Input
	Output      json.RawMessage `json:"output,omitempty"`  // JSON Schema of the result; absent if it varies
	Effects     []string        `json:"effects,omitempty"` // effects that its steps need
	// Undeclared lists the pipeline's steps, tools and capabilities that do not state their effects.
	Undeclared []string `json:"undeclared,omitempty"`
	Asks       bool     `json:"asks,omitempty"`      // the pipeline may ask a person
	Continues  bool     `json:"continues,omitempty"` // the pipeline accepts Start.After
	Files      []string `json:"files,omitempty"`     // media types that a message may contain, such as "image/*"
}

// Pipelines lists the published pipelines, sorted by name.
type Pipelines struct {
	Pipelines []Pipeline `json:"pipelines"`
}

// Start starts a run.
type Start struct {
	Pipeline string          `json:"pipeline"`
	Input    json.RawMessage `json:"input,omitempty"` // must match Pipeline.Input; may be a plain text if the input requires only one string
	// After is the id of an ended run of the same pipeline. The new run continues the conversation of its agent, which is read
	// from the record, never from the client.
	After  string            `json:"after,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Budget *Budget           `json:"budget,omitempty"` // limited by the budgets of the pipeline and the caller
	// Interactive means that a person is waiting for the run. When requests have to wait for a rate limit, those of the run are
	// sent first. It has no effect unless the caller's token allows it.
	Interactive bool `json:"interactive,omitempty"`
	// Priority orders waiting runs: from -100 to 100, highest first. Values above 0 count as 0 unless the caller's token allows
	// Interactive.
	Priority int `json:"priority,omitempty"`
	// Batch sends model requests in their providers' batches, which are answered within a day and cost half the price. Meanwhile,
	// the run waits with a question named "batch", which shows the progress.
	Batch bool `json:"batch,omitempty"`
	// Grant narrows the effects that the run may have; null leaves them unchanged. It requires the role "grant".
	Grant []string `json:"grant,omitzero"`
}

// Search requests passages of documents from a capability of the kind search.
type Search struct {
	Capability string            `json:"capability,omitempty"` // id of the capability; required if the server has several
	Text       string            `json:"text"`                 // question to search for, up to 8 KiB
	K          int               `json:"k,omitempty"`          // maximum number of passages, 1 to 100; 10 if zero
	Under      string            `json:"under,omitempty"`      // folder or single document to which the search is restricted
	Where      map[string]string `json:"where,omitempty"`      // metadata that documents must have
	Words      bool              `json:"words,omitempty"`      // compare only words, not vectors
}

// Found lists the passages that were found, best first.
type Found struct {
	Capability string       `json:"capability"`
	Hits       []Hit        `json:"hits"`
	By         string       `json:"by"` // rankings used: "words" or "words and vectors"
	Usage      budget.Usage `json:"usage"`
}

// Hit is a passage with its ranks.
type Hit struct {
	File       string            `json:"file"`
	From       int               `json:"from,omitempty"` // first line of the passage, counted from 1
	To         int               `json:"to,omitempty"`
	Page       int               `json:"page,omitempty"` // page of the passage, in a file without lines
	Heading    string            `json:"heading,omitempty"`
	Text       string            `json:"text"`
	Meta       map[string]string `json:"meta,omitempty"`        // metadata of the document
	Score      float64           `json:"score"`                 // sum of 1/(60+rank) over the ranks by words and by vectors
	WordRank   int               `json:"word-rank,omitempty"`   // rank by words; 0 means that its words were not found
	VectorRank int               `json:"vector-rank,omitempty"` // rank by vectors; 0 means that its vector is not among the nearest
	FusedRank  int               `json:"fused-rank,omitempty"`  // rank by Score, if a reranker has changed the order
	Relevance  *float64          `json:"relevance,omitempty"`   // score given by the reranker, if any
}

// Budget limits the spending of a run. Absent fields mean unlimited, and 0 means nothing may be spent.
type Budget struct {
	USD        *float64 `json:"usd,omitempty"`
	Tokens     *int     `json:"tokens,omitempty"`
	Roundtrips *int     `json:"roundtrips,omitempty"`
	Seconds    *float64 `json:"seconds,omitempty"` // at most 9,000,000,000; applies to each process of the run
}

// SharedBudget describes a budget that several runs share, in its current period. It applies to the runs that have all the Labels
// and, unless Pipeline is empty, belong to Pipeline.
type SharedBudget struct {
	budget.Balance
	Pipeline string            `json:"pipeline,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
}

// Budgets lists the budgets that several runs share.
type Budgets struct {
	Budgets []SharedBudget `json:"budgets"`
}

// Run describes a run.
type Run struct {
	ID       string            `json:"id"`
	Pipeline string            `json:"pipeline"`
	State    journal.State     `json:"state"`
	Started  time.Time         `json:"started,omitzero"`
	Ended    time.Time         `json:"ended,omitzero"`
	Labels   map[string]string `json:"labels,omitempty"`
	Attempt  int               `json:"attempt,omitempty"` // 0 until the run is resumed for the first time after an end, then 2, and so on
	Steps    int               `json:"steps"`             // number of steps with a result; counted when the run ends or stops
	Usage    budget.Total      `json:"usage,omitzero"`
	Failure  *journal.Failure  `json:"failure,omitempty"` // absent while the run waits for answers
	Lanes    dag.Losses        `json:"lanes,omitzero"`
	Notices  []event.Notice    `json:"notices,omitempty"` // notices from the last process of the run
	Result   *Node             `json:"result,omitempty"`  // only if a result was requested
}

// Over reports whether the run has stopped and will not continue by itself, as far as its server knows.
func (r Run) Over() bool {
	return r.State == journal.Done || r.State == journal.Failed || r.State == journal.Canceled || r.State == journal.Refused
}

// Node is a node of a run. The Meta of a call's node contains the call's record as JSON, which call.RecordIn reads.
type Node struct {
	ID      dag.ID            `json:"id"`
	Type    string            `json:"type"`
	Parents []dag.ID          `json:"parents,omitempty"`
	Content json.RawMessage   `json:"content"`
	Meta    map[string]string `json:"meta,omitempty"`
	Time    time.Time         `json:"time,omitzero"`
}

// Runs is a page of runs, newest first.
type Runs struct {
	Runs []Run  `json:"runs"`
	Next string `json:"next,omitempty"` // value of the parameter before for the next page; a page of large runs may end before its limit
}

// Thread is a conversation. Its turns are the runs with the label chat=ID.
type Thread struct {
	ID       string        `json:"id"`
	Pipeline string        `json:"pipeline"`
	Turns    int           `json:"turns"`
	Newest   string        `json:"newest"` // id of the newest turn's run
	State    journal.State `json:"state"`  // state of the newest turn
	Started  time.Time     `json:"started"`
	Last     time.Time     `json:"last"` // start of the newest turn
	Usage    budget.Total  `json:"usage,omitzero"`
	Partly   bool          `json:"partly,omitempty"` // the conversation is long: turns, started and usage cover only its newest 1,000 turns
}

// Threads is a page of conversations, sorted by their newest turn, newest first.
type Threads struct {
	Threads []Thread `json:"threads"`
	Next    string   `json:"next,omitempty"` // value of the parameter before for the next page; a page may end before its limit
}

// Questions is a page of questions, oldest first.
type Questions struct {
	Questions []Question `json:"questions"`
	Next      string     `json:"next,omitempty"` // value of the parameter from for the next page; a large page ends before its limit
}

// Question is a question that a run asks.
type Question struct {
	Run      string          `json:"run"`
	Path     string          `json:"path"`
	Name     string          `json:"name"`
	Text     string          `json:"text"`
	Choices  []string        `json:"choices,omitempty"`
	Schema   json.RawMessage `json:"schema,omitempty"`  // schema of a JSON answer
	Problem  string          `json:"problem,omitempty"` // reason why the previous answer was not accepted
	Asked    time.Time       `json:"asked"`
	Answered time.Time       `json:"answered,omitzero"` // zero while the question is open
	Response string          `json:"response,omitempty"`
	By       string          `json:"by,omitempty"`      // who answered, such as "token ops"; empty if unknown
	Version  string          `json:"version,omitempty"` // changes whenever the content of the question changes
	Call     *ask.Call       `json:"call,omitempty"`    // tool call that the answer approves or refuses
	Given    time.Time       `json:"given,omitzero"`    // for a standing answer: time at which the earlier question was answered
	Due      time.Time       `json:"due,omitzero"`      // time at which the default answer applies, or at which the question is cancelled if there is none
	Default  string          `json:"default,omitempty"`
	Standing []string        `json:"standing,omitempty"` // choices that also answer all later questions of this name, in the run and its conversation
}

// Answer answers a question.
type Answer struct {
	Question string `json:"question"` // path of the question, its name, its number from 1, or the end of its path
	Response string `json:"response,omitempty"`
	Cancel   bool   `json:"cancel,omitempty"`  // cancels the question instead of answering it; a step that needs an answer fails with the kind declined
	Version  string `json:"version,omitempty"` // version of the question that was shown; if it has changed, the answer is refused
}

// Resume is the body of a request to resume a run. It may be omitted.
type Resume struct {
	// Force resumes a run even if its pipeline has changed. Its records remain valid. Force requires the role "force".
	Force bool `json:"force,omitempty"`
	// Lost repeats the run's lost lanes and the steps that read them. The run may be done.
	Lost bool `json:"lost,omitempty"`
}

// Problem is an error as defined in RFC 9457.
type Problem struct {
	// Type is a relative reference: "invalid" (the request cannot be read, or does not match the pipeline's input), "not-found"
	// (there is no such object, or the caller may not see it), "conflict" (the object's state does not allow the request),
	// "refused" (the run's pipeline has changed), "forbidden", "unauthorized" (the caller is not identified), "too-many" (the
	// caller has sent too many requests), "unavailable" (the server is shutting down, or its database does not answer: send the
	// request again), "internal", "no-such-path", "no-such-pipeline", or "unanswered" (a capability failed).
	Type     string         `json:"type"`
	Title    string         `json:"title"`
	Status   int            `json:"status"`
	Detail   string         `json:"detail,omitempty"` // what is wrong, and what to do
	Findings stone.Findings `json:"findings,omitempty"`
	Run      *Run           `json:"run,omitempty"` // the refused run, if its result was requested
}

// Error returns the detail, or else the title.
func (p *Problem) Error() string {
	if p.Detail != "" {
		return p.Detail
	}
	return p.Title
}

// Event is the data of a server-sent event of a run.
type Event struct {
	ID   string       `json:"-"`              // id of the event; a stream can continue after it
	Step *journal.Row `json:"step,omitempty"` // for an event "step": a step started or ended
	Run  *Run         `json:"run,omitempty"`  // for an event "state": the run's state changed
	// Reset is true in an event "reset": the run has no event with the requested id, for example because it was removed and
	// started again. All events of the run follow, from the first.
	Reset bool `json:"reset,omitempty"`
	// Said, in an event "said", contains the answers that models are currently writing in the run, at most 8, if the client
	// requested them. No gate has accepted them and nothing is recorded, so the event has no id.
	Said []Piece `json:"said,omitzero"`
}

// Notice is the body of a webhook.
type Notice struct {
	Type      string    `json:"type"` // "run.done", "run.failed", "run.canceled", "run.refused" or "question.asked"
	Timestamp time.Time `json:"timestamp"`
	Run       *Run      `json:"run,omitempty"`      // the run that has ended or was refused, without its result
	Question  *Question `json:"question,omitempty"` // the question for whose answer the run is waiting
	URL       string    `json:"url,omitempty"`      // address of the question's page, if the server knows its own address
}

// Capabilities lists the capabilities of a server, sorted by name.
type Capabilities struct {
	Capabilities []Capability `json:"capabilities"`
}

// Capability describes a capability, with the fields of call.Metadata.
type Capability struct {
	ID         string          `json:"cap/id"`
	Kind       string          `json:"cap/kind"`
	Version    string          `json:"cap/version,omitempty"`
	Intents    []string        `json:"cap/intents,omitempty"` // no intents means that any intent is accepted
	In         string          `json:"io/in-schema,omitempty"`
	Out        string          `json:"io/out-schema,omitempty"`
	CanProduce []string        `json:"cap/can-produce,omitempty"`
	Needs      []string        `json:"cap/needs,omitempty"`
	Effects    []string        `json:"cap/effects-allowed,omitempty"`
	Tags       []string        `json:"cap/tags,omitempty"`
	Cost       json.RawMessage `json:"cap/cost,omitempty"`
	Limits     json.RawMessage `json:"cap/limits,omitempty"`
}

// Reply is the reply to a capability request. It contains either a Result or an Error.
type Reply struct {
	Proto  int       `json:"proto"`
	Trace  Trace     `json:"trace,omitzero"` // trace of the request
	Result *Result   `json:"result,omitempty"`
	Error  *ActError `json:"error,omitempty"`
}

// Trace identifies a capability request.
type Trace struct {
	ID   string `json:"id,omitempty"`
	Turn int    `json:"turn,omitempty"`
}

// Result is the answer of a capability.
type Result struct {
	Type  string          `json:"type"`            // "value" or "plan"
	Out   json.RawMessage `json:"out,omitempty"`   // answer, if the type is "value"
	Plan  json.RawMessage `json:"plan,omitempty"`  // plan, if the type is "plan"
	Usage json.RawMessage `json:"usage,omitempty"` // cost and origin of the answer
}

// ActError reports why no capability returned an answer.
type ActError struct {
	Type      string          `json:"type"` // kind of the error, such as "schema/invalid"
	Message   string          `json:"message,omitempty"`
	Retryable bool            `json:"retryable?,omitempty"`
	Where     string          `json:"where,omitempty"`
	Details   json.RawMessage `json:"details,omitempty"`
}

// Error returns the type and the message.
func (e *ActError) Error() string {
	if e.Message == "" {
		return e.Type
	}
	return e.Type + ": " + e.Message
}

// Piece is a piece of a streamed answer.
type Piece struct {
	Type    string `json:"type"` // "delta", "retracted" or "progress"; in an Event "said", Text is the answer so far, or its end if it is long
	Path    string `json:"path"` // path of the step
	Source  string `json:"source,omitempty"`
	Text    string `json:"text,omitempty"`    // text of a delta
	Reason  string `json:"reason,omitempty"`  // reason of a retraction: earlier deltas of this path and source are void
	Message string `json:"message,omitempty"` // message of a progress report
}
