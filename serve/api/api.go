// Package api defines the requests and replies of stone serve's HTTP interface under /v1, and a client for it. A server's OpenAPI
// document is generated from these types.
//
//	c := api.Client{URL: "http://127.0.0.1:8080", Token: os.Getenv("STONE_TOKEN")}
//	run, err := c.Start(ctx, "t-17", api.Start{Pipeline: "triage", Input: input})
//	…
//	run, err = c.Result(ctx, run.ID)
//
// Because the server stores the runs, a caller may exit and fetch the result later. A Start with an id can be repeated safely: an
// identical request returns the same run.
//
// Errors reported by the server are of type *[Problem]. If a request does not match the input of its pipeline, the problem
// contains the validator's findings.
//
// # Servers that restart
//
// If no server answers, or if the server is closing or busy, the client retries the request for up to Patience. It never retries
// Answer, Cancel, Resume, Remove, and Act without an id, because these are not safe to repeat. Result and Events wait until the
// run stops, however long that takes.
//
// [Client.Stream] yields the answer of a capability while it arrives, piece by piece. Each piece is a [Chunk].
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
	Output      json.RawMessage `json:"output,omitempty"`  // JSON Schema of the result; absent if the result's type varies
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
	Pipeline string `json:"pipeline"`
	// must match Pipeline.Input; may be a plain string if the input requires only one string
	Input json.RawMessage `json:"input,omitempty"`
	// After is the id of an ended run with the same pipeline. The new run continues the conversation of that run's agent, which the
	// server reads from the run's record.
	After  string            `json:"after,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	Budget *Budget           `json:"budget,omitempty"` // limited by the budgets of the pipeline and the caller
	// Interactive means that a person is waiting for the run. When model requests must wait for a rate limit, the requests of
	// interactive runs are sent first. Interactive has no effect unless the caller's token allows it.
	Interactive bool `json:"interactive,omitempty"`
	// Priority is a number from -100 to 100. Of several waiting runs, the run with the highest priority starts first. A positive
	// value counts as 0 unless the caller's token allows Interactive.
	Priority int `json:"priority,omitempty"`
	// Batch sends the run's model requests through the batch APIs of their providers, which answer within a day at half the
	// price. Meanwhile, the run waits with a question named "batch", whose text shows the progress.
	Batch bool `json:"batch,omitempty"`
	// Grant restricts the effects that the run may have to the listed effects; null means no further restriction. Only a caller
	// with the role "grant" may set it.
	Grant []string `json:"grant,omitzero"`
}

// Search is a request for passages of documents from a capability of the kind "search".
type Search struct {
	Capability string            `json:"capability,omitempty"` // id of the capability; required if the server has several
	Text       string            `json:"text"`                 // question to search for, up to 8 KiB
	K          int               `json:"k,omitempty"`          // maximum number of passages, 1 to 100; 10 if zero
	Under      string            `json:"under,omitempty"`      // folder or single document to which the search is restricted
	Where      map[string]string `json:"where,omitempty"`      // metadata that documents must have
	Words      bool              `json:"words,omitempty"`      // compare only words, not vectors
}

// Found is the reply to a Search: the passages that were found, best first.
type Found struct {
	Capability string       `json:"capability"`
	Hits       []Hit        `json:"hits"`
	By         string       `json:"by"` // rankings used: "words" or "words and vectors"
	Usage      budget.Usage `json:"usage"`
}

// Hit is a passage with its ranks.
type Hit struct {
	File    string            `json:"file"`
	From    int               `json:"from,omitempty"` // first line of the passage, counted from 1
	To      int               `json:"to,omitempty"`
	Page    int               `json:"page,omitempty"` // page of the passage, if the file has no lines
	Heading string            `json:"heading,omitempty"`
	Text    string            `json:"text"`
	Meta    map[string]string `json:"meta,omitempty"` // metadata of the document
	Score   float64           `json:"score"`          // sum of 1/(60+rank) over the ranks by words and by vectors
	// rank in the search by words; 0 if that search did not find the passage
	WordRank int `json:"word-rank,omitempty"`
	// rank in the search by vectors; 0 if the passage is not among the nearest
	VectorRank int      `json:"vector-rank,omitempty"`
	FusedRank  int      `json:"fused-rank,omitempty"` // rank by Score; only if a reranker has changed the order
	Relevance  *float64 `json:"relevance,omitempty"`  // score given by the reranker, if any
}

// Budget limits what a run may spend. An absent field means unlimited; 0 means that nothing may be spent.
type Budget struct {
	USD        *float64 `json:"usd,omitempty"`
	Tokens     *int     `json:"tokens,omitempty"`
	Roundtrips *int     `json:"roundtrips,omitempty"`
	Seconds    *float64 `json:"seconds,omitempty"` // at most 9,000,000,000; applies to each process of the run
}

// SharedBudget is the current state of a budget that several runs share. The budget applies to all runs that have all Labels and,
// if Pipeline is not empty, are runs of this pipeline.
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
	Attempt  int               `json:"attempt,omitempty"` // 0 until the run is resumed after it has ended; then 2, 3 and so on
	Steps    int               `json:"steps"`             // number of steps with a result, as of the run's last stop
	Usage    budget.Total      `json:"usage,omitzero"`
	Failure  *journal.Failure  `json:"failure,omitempty"` // absent while the run waits for answers
	Lanes    dag.Losses        `json:"lanes,omitzero"`
	Notices  []event.Notice    `json:"notices,omitempty"` // notices from the last process of the run
	Result   *Node             `json:"result,omitempty"`  // only if a result was requested
}

// Over reports whether, according to its server, the run has stopped and will not continue by itself.
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
	Runs []Run `json:"runs"`
	// value of the parameter before that requests the next page; a page may have fewer runs than its limit if they are large
	Next string `json:"next,omitempty"`
}

// Thread is a conversation. Each run with the label chat=ID is a turn of the conversation with this ID.
type Thread struct {
	ID       string        `json:"id"`
	Pipeline string        `json:"pipeline"`
	Turns    int           `json:"turns"`
	Newest   string        `json:"newest"` // id of the newest turn's run
	State    journal.State `json:"state"`  // state of the newest turn
	Started  time.Time     `json:"started"`
	Last     time.Time     `json:"last"` // start of the newest turn
	Usage    budget.Total  `json:"usage,omitzero"`
	// turns, started and usage cover only the newest 1,000 turns, because the conversation is longer
	Partly bool `json:"partly,omitempty"`
}

// Threads is a page of conversations, sorted by their newest turn, newest first.
type Threads struct {
	Threads []Thread `json:"threads"`
	// value of the parameter before that requests the next page; a page may have fewer threads than its limit
	Next string `json:"next,omitempty"`
}

// Questions is a page of questions, oldest first.
type Questions struct {
	Questions []Question `json:"questions"`
	// value of the parameter from that requests the next page; a page may have fewer questions than its limit if they are large
	Next string `json:"next,omitempty"`
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
	// time at which the earlier question was answered, if this answer is a standing answer
	Given   time.Time `json:"given,omitzero"`
	Due     time.Time `json:"due,omitzero"` // time at which the default answer applies or, without one, the question is canceled
	Default string    `json:"default,omitempty"`
	// choices that also answer all later questions with the same name in the run and its conversation
	Standing []string `json:"standing,omitempty"`
}

// Answer answers a question.
type Answer struct {
	// identifies the question: its path, the end of its path, its name, or its number, counted from 1
	Question string `json:"question"`
	Response string `json:"response,omitempty"`
	// cancels the question instead of answering it; a step that needs the answer then fails with kind "declined"
	Cancel bool `json:"cancel,omitempty"`
	// version of the question that was answered; if the question has changed since, the answer is refused
	Version string `json:"version,omitempty"`
}

// Resume is the body of a request to resume a run. It may be omitted.
type Resume struct {
	// Force resumes a run even if its pipeline has changed. Its records remain valid. Force requires the role "force".
	Force bool `json:"force,omitempty"`
	// Lost repeats the lanes that the run has lost and the steps that read the results of lanes, even if the run is done.
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

// Event is the data of a server-sent event about a run.
type Event struct {
	ID   string       `json:"-"`              // id of the event; a stream can continue after the event with this id
	Step *journal.Row `json:"step,omitempty"` // for an event "step": a step started or ended
	Run  *Run         `json:"run,omitempty"`  // for an event "state": the run's state changed
	// Reset is true in an event "reset", which means that the run has no event with the requested id, for example because the run
	// was removed and started again. All events of the run follow, beginning with the first.
	Reset bool `json:"reset,omitempty"`
	// Said is set in an event "said", which is sent only if the client requested it. It contains at most 8 of the answers that
	// models are currently writing in the run. The answers are neither checked nor recorded, so the event has no id.
	Said []Piece `json:"said,omitzero"`
}

// Notice is the body of a webhook.
type Notice struct {
	Type      string    `json:"type"` // "run.done", "run.failed", "run.canceled", "run.refused" or "question.asked"
	Timestamp time.Time `json:"timestamp"`
	// the run that has ended or was refused, without its result; absent in a notice "question.asked"
	Run      *Run      `json:"run,omitempty"`
	Question *Question `json:"question,omitempty"` // the question that the run is waiting for, in a notice "question.asked"
	// address of the page on which to answer the question, if the server knows its own address
	URL string `json:"url,omitempty"`
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
	// "delta", "retracted" or "progress"; for an Event "said", Text is the answer so far, or only its end if it is long
	Type   string `json:"type"`
	Path   string `json:"path"` // path of the step
	Source string `json:"source,omitempty"`
	Text   string `json:"text,omitempty"` // text of a delta
	// why the answer was retracted; all earlier deltas with the same path and source are void
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"` // message of a progress report
}
