package call

import (
	"time"
)

// An Error is the failure of a capability or a call. Its Type is one of the following, or a type that a capability defines:
//
//   - schema/invalid: the reply is malformed, of the wrong type, or does not fit its schema
//   - format/drift: a model's answer was not in the requested form
//   - eval/low-score, eval/must-failed: the answer's score is below score-min, or the answer failed a must
//   - eval/check-broken: a check cannot judge any answer; no further candidate is invoked
//   - eval/disagreed: the first candidates of an agreement disagree, and there are no other candidates
//   - judge/invalid: the judge did not return a score between 0 and 1
//   - timeout/soft: the capability took longer than its limit
//   - runtime/unavailable: the capability is not available
//   - runtime/invoke-failed: the capability returned an error or panicked
//   - runtime/not-recorded: a recording has no answer to the request
//   - dispatch/no-candidate: every candidate was rejected
//   - budget/exhausted: the next attempt would overdraw the account
//   - auth/forbidden-effect: the request needs an effect that is not granted
//   - plan/invalid, plan/too-deep: a returned plan cannot run
//   - invalid-request: the request itself is malformed
//   - input/schema-invalid, input/rejected: the input does not fit its schema, or a check of the input did not
//     pass; no capability was invoked
type Error struct {
	Type      string `json:"type"`
	Message   string `json:"message,omitempty"`
	Retryable bool   `json:"retryable?,omitempty"`
	Where     string `json:"where,omitempty"`
	Details   JSON   `json:"details,omitempty"`
	// RetryAfter is the time to wait before the next attempt; zero if unknown.
	RetryAfter time.Duration `json:"-"`
	Cause      error         `json:"-"`
	// Record describes the failed call. It is nil if a capability, rather than a call, has failed.
	Record *Record `json:"-"`
	// Usage is the capability's usage before it failed; zero if unknown.
	Usage Usage `json:"-"`
}

// Error returns the type and the message.
func (e *Error) Error() string {
	if e.Message == "" {
		return e.Type
	}
	return e.Type + ": " + e.Message
}

// FailureKind returns the error's Type, which becomes the failure kind of the step.
func (e *Error) FailureKind() string { return e.Type }

// FailureMeta returns the meta of the step's failure, which contains the Record. It returns nil without a Record.
func (e *Error) FailureMeta() map[string]string {
	if e.Record == nil {
		return nil
	}
	return e.Record.meta()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }
