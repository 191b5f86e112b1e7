package agent

import "github.com/stonelayer/stone/kind"

// Failure kinds of an agent, besides package kind's. The cause of a failure
// is the error of package llm or schema behind it.
const (
	// KindMaxTurns is an agent that was not done after its last turn.
	KindMaxTurns kind.Kind = "max-turns"
	// KindEmptyResponse is an answer with neither text nor a tool call.
	KindEmptyResponse kind.Kind = "agent-empty-response"
	// KindDegenerate is a model that repeated itself in every attempt.
	KindDegenerate kind.Kind = "output-degenerate"
	// KindTruncated is an answer that was cut off by the token limit twice.
	KindTruncated kind.Kind = "output-truncated"
	// KindRefused is a model that refused to answer.
	KindRefused kind.Kind = "llm-refused"
	// KindParseFailed is an answer that did not fit the schema, twice.
	KindParseFailed kind.Kind = "llm-parse-failed"
	// KindModel is a model that could not be asked, or whose answer is incomplete.
	KindModel kind.Kind = "llm-error"
	// KindOverflow is a conversation that is longer than the model's window. Compact shortens it, and only
	// fails with this kind if what must stay is too long.
	KindOverflow kind.Kind = "context-overflow"
	// KindHealingExhausted is a draft that the adversary rejected after MaxHealing
	// rounds of healing.
	KindHealingExhausted kind.Kind = "healing-exhausted"
	// KindRejected is an input that Config.Admit rejected. The model was not asked.
	KindRejected kind.Kind = "input/rejected"
	// KindHalted is a tool, a middleware or a decide function that returned Halt.
	KindHalted kind.Kind = "halted"
)
