// Package kind names the kinds of failure. A program branches on them:
//
//	if errors.Is(err, kind.LoopExhausted) { … }
//
// A step sets the kind of its failure with stone.Fail.
package kind

import "strings"

// A Kind classifies a failure, for programs. It is an error, so that errors.Is finds it
// in the error of stone.Run: in the failure of the run and in its causes.
type Kind string

// Error returns the kind's name.
func (k Kind) Error() string { return string(k) }

// Trim removes the kind's name from the beginning of a reason, for texts that show both. The text of an error often begins with
// its kind.
func (k Kind) Trim(reason string) string {
	for {
		rest, found := strings.CutPrefix(reason, string(k)+": ")
		if !found {
			return reason
		}
		reason = rest
	}
}

// Kinds of failure that a run itself produces. Packages that add their own steps may define further kinds.
const (
	// Error is the kind of a failure whose error has no kind.
	Error Kind = "error"
	// Panic means that a body panicked; the node's meta contains the stack.
	Panic Kind = "panic"
	// Canceled means that the run was canceled.
	Canceled Kind = "canceled"
	// Timeout means that a step or a run exceeded its time limit.
	Timeout Kind = "timeout"
	// MissingInput means that a step read a type that no node has.
	MissingInput Kind = "missing-input"
	// UndeclaredQuery means that a step read something that it had not declared.
	UndeclaredQuery Kind = "undeclared-query"
	// BadContent means that content cannot be represented in JSON, or is not of the declared type.
	BadContent Kind = "bad-content"

	// Invalid means that a pipeline made during a run was rejected before any part of it ran.
	Invalid Kind = "invalid"
	// EmptySequence means that a sequence has no steps. Validate reports it before any run.
	EmptySequence Kind = "empty-sequence"
	// LoopExhausted means that the condition of a loop never held.
	LoopExhausted Kind = "loop-exhausted"
	// MatchFailed means that a match has no branch for the value.
	MatchFailed Kind = "match-failed"
	// MapEmpty means that the list of a map is empty.
	MapEmpty Kind = "map-empty"
	// ParallelEmpty means that a parallel has no lanes. Validate reports it before any run.
	ParallelEmpty Kind = "parallel-empty"
	// LanesFailed means that too few lanes of a fan-out survived.
	LanesFailed Kind = "lanes-failed"

	// NoFrontend means that a step asked a question in a run without a frontend.
	NoFrontend Kind = "no-frontend"
	// Unanswered means that a question received no usable answer.
	Unanswered Kind = "unanswered"
	// Declined means that a person canceled a question to which the step needs an answer.
	Declined Kind = "declined"
	// Waiting means that a question was still unanswered when the run ended. Resume the run once the question is answered.
	Waiting Kind = "waiting"
	// Recorder means that the recorder failed. The run then stops, since it could not be resumed.
	Recorder Kind = "recorder-failed"
	// Replay means that a record does not match the pipeline or was changed.
	Replay Kind = "replay-mismatch"
)

// All returns the kinds of this package.
func All() []Kind {
	return []Kind{
		Error, Panic, Canceled, Timeout, MissingInput, UndeclaredQuery, BadContent, Invalid, EmptySequence,
		LoopExhausted, MatchFailed, MapEmpty, ParallelEmpty, LanesFailed, NoFrontend, Unanswered, Declined, Waiting, Recorder, Replay,
	}
}
