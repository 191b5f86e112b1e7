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
	// Panic is a body that panicked; the node's meta holds the stack.
	Panic Kind = "panic"
	// Canceled is a run that was cancelled.
	Canceled Kind = "canceled"
	// Timeout is a step or a run that exceeded its time limit.
	Timeout Kind = "timeout"
	// MissingInput is a read of a type that has no node.
	MissingInput Kind = "missing-input"
	// UndeclaredQuery is a read that the step had not declared.
	UndeclaredQuery Kind = "undeclared-query"
	// BadContent is content that JSON cannot represent, or that is not of the declared type.
	BadContent Kind = "bad-content"

	// Invalid is a pipeline made during a run that was rejected before any part of it
	// ran.
	Invalid Kind = "invalid"
	// EmptySequence is a sequence without steps, which Validate finds before any run.
	EmptySequence Kind = "empty-sequence"
	// LoopExhausted is a loop whose condition never held.
	LoopExhausted Kind = "loop-exhausted"
	// MatchFailed is a match without a branch for the value.
	MatchFailed Kind = "match-failed"
	// MapEmpty is a map over an empty list.
	MapEmpty Kind = "map-empty"
	// ParallelEmpty is a parallel without lanes, which Validate finds before any run.
	ParallelEmpty Kind = "parallel-empty"
	// LanesFailed is a fan-out of which too few lanes survived.
	LanesFailed Kind = "lanes-failed"

	// NoFrontend is a question in a run without a frontend.
	NoFrontend Kind = "no-frontend"
	// Unanswered is a question that got no usable answer.
	Unanswered Kind = "unanswered"
	// Declined is a question that a person cancelled, where the step needs an answer.
	Declined Kind = "declined"
	// Waiting is a question still waiting for its answer when the run ended: resume the run once the question is answered.
	Waiting Kind = "waiting"
	// Recorder is a recorder that failed; the run stops, since it could not be resumed.
	Recorder Kind = "recorder-failed"
	// Replay is a record that does not match the pipeline or was changed.
	Replay Kind = "replay-mismatch"
)

// All returns the kinds of this package.
func All() []Kind {
	return []Kind{
		Error, Panic, Canceled, Timeout, MissingInput, UndeclaredQuery, BadContent, Invalid, EmptySequence,
		LoopExhausted, MatchFailed, MapEmpty, ParallelEmpty, LanesFailed, NoFrontend, Unanswered, Declined, Waiting, Recorder, Replay,
	}
}
