// Package reasons declares the names of failures of calls and agents. Programs compare the Type of a call.Error, or the Kind of a
// stone.Failure, with these strings, which are documented in packages call and agent.
package reasons

import "github.com/stonelayer/stone/kind"

// Failures of a call. Capabilities may define others.
const (
	SchemaInvalid   = "schema/invalid"
	FormatDrift     = "format/drift"
	LowScore        = "eval/low-score"
	Disagreed       = "eval/disagreed"
	MustFailed      = "eval/must-failed"
	CheckBroken     = "eval/check-broken"
	JudgeInvalid    = "judge/invalid"
	SoftTimeout     = "timeout/soft"
	NotRecorded     = "runtime/not-recorded"
	Unavailable     = "runtime/unavailable"
	InvokeFailed    = "runtime/invoke-failed"
	NoCandidate     = "dispatch/no-candidate"
	BudgetExhausted = "budget/exhausted"
	ForbiddenEffect = "auth/forbidden-effect" // cause of a refusal because effects are not granted
	PlanInvalid     = "plan/invalid"
	PlanTooDeep     = "plan/too-deep"
	InvalidRequest  = "invalid-request"
	InputRejected   = "input/rejected"
	InputInvalid    = "input/schema-invalid"
	Down            = "availability/down" // a candidate is not available
	Unpriced        = "budget/unpriced"   // an account limits money, but a price is unknown
)

// Failures of an agent.
const (
	MaxTurns         kind.Kind = "max-turns"
	EmptyResponse    kind.Kind = "agent-empty-response"
	Degenerate       kind.Kind = "output-degenerate"
	Truncated        kind.Kind = "output-truncated"
	ModelRefused     kind.Kind = "llm-refused"
	ParseFailed      kind.Kind = "llm-parse-failed"
	ModelFailed      kind.Kind = "llm-error"
	Overflow         kind.Kind = "context-overflow"
	HealingExhausted kind.Kind = "healing-exhausted"
	NotAdmitted      kind.Kind = InputRejected // input rejected by Config.Admit
	Halted           kind.Kind = "halted"
)
