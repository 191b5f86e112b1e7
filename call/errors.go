package call

import (
	"time"
)

// Types of failure of a call. Capabilities may define further ones.
const (
	SchemaInvalid   = "schema/invalid"        // the reply is malformed, of the wrong type, or does not fit its schema
	FormatDrift     = "format/drift"          // a model's answer was not in the form it was asked for
	LowScore        = "eval/low-score"        // the gate's score is below score-min
	disagreed       = "eval/disagreed"        // the first candidates of an agreement disagree, and no other is left
	MustFailed      = "eval/must-failed"      // a must did not pass
	CheckBroken     = "eval/check-broken"     // a check cannot judge any answer; no further candidate is asked
	judgeInvalid    = "judge/invalid"         // the judge gave no score within 0..1
	SoftTimeout     = "timeout/soft"          // the capability took longer than its limit
	NotRecorded     = "runtime/not-recorded"  // a recording has no answer to the request
	Unavailable     = "runtime/unavailable"   // the capability is not available
	InvokeFailed    = "runtime/invoke-failed" // an error or a panic of the capability
	NoCandidate     = "dispatch/no-candidate" // every candidate was rejected
	BudgetExhausted = "budget/exhausted"      // the next attempt would overdraw the account
	ForbiddenEffect = "auth/forbidden-effect" // the cause of a request refused for effects that are not granted
	PlanInvalid     = "plan/invalid"
	PlanTooDeep     = "plan/too-deep"
	InvalidRequest  = "invalid-request"
	InputRejected   = "input/rejected"       // a check of the input did not pass; no capability was invoked
	InputInvalid    = "input/schema-invalid" // the input does not fit its schema; no capability was invoked
)

// An Error is the failure of a capability or of a call.
type Error struct {
	Type      string `json:"type"` // as "schema/invalid"
	Message   string `json:"message,omitempty"`
	Retryable bool   `json:"retryable?,omitempty"`
	Where     string `json:"where,omitempty"`
	Details   JSON   `json:"details,omitempty"`
	// RetryAfter is the time to wait before the next attempt; zero if unknown.
	RetryAfter time.Duration `json:"-"`
	Cause      error         `json:"-"`
	// Record describes the failed call; nil for a capability.
	Record *Record `json:"-"`
	// Usage is the capability's usage before it failed; zero if unknown.
	Usage Usage `json:"-"`
}

// Error returns type and message.
func (e *Error) Error() string {
	if e.Message == "" {
		return e.Type
	}
	return e.Type + ": " + e.Message
}

// FailureKind returns the type, which becomes the step's failure kind.
func (e *Error) FailureKind() string { return e.Type }

// FailureMeta notes the Record beside the failure of the step.
func (e *Error) FailureMeta() map[string]string {
	if e.Record == nil {
		return nil
	}
	return e.Record.meta()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }
