// Package ask defines the interface between a run and the people who answer its questions. Only a [Frontend] needs this package;
// a program that only asks questions, with stone.Ask, does not.
//
// A [Channel] passes the questions to the program around a run. Package cli asks them at the terminal; package serve offers them
// on pages and over an API, MCP and webhooks, and records the answers in a journal.
//
// A choice that ends in "…" accepts any text in place of the "…": [Blank] returns the text before it, and [Chosen] reports
// whether a response is one of the choices. The name of the person who answers can be at most [MaxBy] bytes long.
package ask

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stonelayer/stone/schema"
)

// A Question is a question to a person. In a program that serves several runs, RunID
// and Path together identify an open question.
type Question struct {
	Name    string         // the name of the asking ashlar; unique in a pipeline
	RunID   string         // the id of the run; empty before a run
	Path    string         // the address of the ashlar; empty before a run
	Text    string         // the text shown to the person; empty before a run
	Choices []string       // if not empty, the answer must be one of the choices; see Blank
	Schema  *schema.Schema // if not nil, the answer must be JSON that fits the schema
	Problem string         // why the previous answer was rejected, or ""

	// Standing lists the choices that, once given, also answer all later questions with the same Name in the run. A journal can
	// extend such an answer to all runs of a session.
	Standing []string
	// Deadline is how long a run waits for an answer; zero means unlimited. Default is the answer that applies after the
	// Deadline; if it is empty, the question is cancelled.
	Deadline time.Duration
	Default  string
	// Call is the tool call that the answer approves or refuses, or nil.
	Call *Call
}

// A Call is a model's tool call that needs a person's decision.
type Call struct {
	ID      string          `json:"id,omitempty"` // the id that the model has given the call
	Tool    string          `json:"tool"`
	Input   json.RawMessage `json:"input"`             // the complete arguments
	Request string          `json:"request,omitempty"` // the user's request to the agent
	Said    string          `json:"said,omitempty"`    // the model's text in the message with the call
	Client  bool            `json:"client,omitempty"`  // whether the run's client executes the call, so that the answer is its result
}

// Version returns a digest of the Text, Choices, Schema and Call of the question. It is the same in every process. An answer
// applies to one version only: if a resumed run asks a different version of the question, a journal asks again.
func (q *Question) Version() string {
	parts := append([]string{q.Text}, q.Choices...)
	if q.Schema != nil {
		parts = append(parts, "schema", string(q.Schema.JSON()))
	}
	if c := q.Call; c != nil {
		parts = append(parts, "call", c.ID, c.Tool, string(c.Input))
	}
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return fmt.Sprintf("%x", h.Sum(nil))[:versionDigits]
}

// versionDigits is the length of a version: 128 bits, in hexadecimal.
const versionDigits = 32

// Blank returns the text before the "…" of a choice that ends in "…". It returns false for any other choice. A response may have
// any text in place of the "…": "no: …" accepts "no: not today".
func Blank(choice string) (before string, ok bool) { return strings.CutSuffix(choice, "…") }

// Chosen reports whether the response matches one of the choices.
func Chosen(choices []string, response string) bool {
	return slices.ContainsFunc(choices, func(c string) bool {
		before, blank := Blank(c)
		text, begins := strings.CutPrefix(response, before)
		return !blank && c == response || blank && begins && strings.Trim(text, " …") != ""
	})
}

// Check returns an error if the response is rejected, otherwise nil. The empty response, which cancels the question, is never
// rejected. A [Frontend] that calls Check can ask again at once.
func (q *Question) Check(response string) error {
	if response == "" {
		return nil
	}
	if len(q.Choices) > 0 && !Chosen(q.Choices, response) {
		return fmt.Errorf("%.200q is not an answer: want one of: %s", response, strings.Join(q.Choices, ", "))
	}
	if q.Schema != nil {
		if err := q.Schema.Validate(context.Background(), []byte(response)); err != nil {
			return fmt.Errorf("%.200q is not an answer: want JSON that fits the schema: %w", response, err)
		}
	}
	return nil
}

// A Frontend shows questions to a person and returns the answers. It is not part of the
// pipeline: the same pipeline runs with a terminal, a web page or a test.
type Frontend interface {
	// Ask shows the question to a person and returns the answer, with its author if known. It must return when ctx is done.
	// Several goroutines may call it at once. If the answer does not fit the question, Ask is called again, with the Problem. An
	// error is a failure of the step.
	//
	// Ask returns [kind.Waiting], or an error that wraps it, if it has passed the
	// question on but this process should not wait for the answer. Other lanes
	// continue and may ask their own questions; then the run fails with that kind. The
	// failure is neither rescued nor recorded, so that the same run with the same
	// Recorder asks again and continues once the answer exists.
	Ask(ctx context.Context, q Question) (Answer, error)
}

// An Answer is an answer to a question, with its author.
type Answer struct {
	Response string // empty if the person cancelled the question
	// By is the author of the answer, such as "user ada" or "token ops", at most MaxBy bytes long. It is empty if unknown.
	By string
	// Given is the time at which the question was answered. For a standing answer, it is the time of the answer to the earlier
	// question. Zero means now.
	Given time.Time
	// To is the version of the answered question; it is empty if unknown.
	To string
}

// MaxBy is the maximum length of Answer.By, in bytes.
const MaxBy = 256
