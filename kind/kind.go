// Package kind names the kinds of failure. A program branches on them:
//
//	var f *stone.Failure
//	if errors.As(err, &f) && f.Kind == kind.LoopExhausted { … }
//
// A step gives a failure a kind of its own with stone.Fail.
package kind

// Kinds of failure that a run itself produces. Packages that add steps of their
// own may use further ones and name them.
const (
	// Error is the kind of a failure whose error has none.
	Error = "error"
	// Panic is a body that panicked; the node's meta holds the stack.
	Panic = "panic"
	// Canceled is a run that was cancelled.
	Canceled = "canceled"
	// Timeout is a step or a run that took longer than it may.
	Timeout = "timeout"
	// MissingInput is a read of a type of which there is no node.
	MissingInput = "missing-input"
	// UndeclaredQuery is a read that the step had not declared.
	UndeclaredQuery = "undeclared-query"
	// BadContent is a content that JSON cannot hold, or that is not of the declared type.
	BadContent = "bad-content"

	// Invalid is a pipeline made during a run that was refused before anything of
	// it ran.
	Invalid = "invalid"
	// EmptySequence is a sequence without steps.
	EmptySequence = "empty-sequence"
	// LoopExhausted is a loop whose condition never held.
	LoopExhausted = "loop-exhausted"
	// MatchFailed is a match without a branch for the value.
	MatchFailed = "match-failed"
	// MapEmpty is a map over no items.
	MapEmpty = "map-empty"
	// ParallelEmpty is a parallel without lanes.
	ParallelEmpty = "parallel-empty"
	// LanesFailed is a fan-out of which too few lanes survived.
	LanesFailed = "lanes-failed"

	// NoFrontend is a question in a run that has nobody to ask.
	NoFrontend = "no-frontend"
	// Unanswered is a question that got no usable answer.
	Unanswered = "unanswered"
	// Waiting is a question whose answer the run does not wait for: resume it
	// when the answer is there.
	Waiting = "waiting"
	// Recorder is a recorder that failed; the run stops, since it could not be resumed.
	Recorder = "recorder-failed"
	// Executor is an executor that could not get the work done; the run stops, and
	// can be resumed.
	Executor = "executor-failed"
	// Replay is a recorded step that does not fit what the run does now.
	Replay = "replay-mismatch"
)
