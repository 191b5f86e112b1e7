package agent

import "slices"

// An Action is what an agent does after a turn.
type Action string

// The actions.
const (
	Continue Action = "continue" // end with the draft as the result
	Loop     Action = "loop"     // take another turn
	Halt     Action = "halt"     // end with a failure
)

// A Recommendation is the advice of a middleware, or the decision of a decide
// function.
type Recommendation struct {
	Action Action `json:"action"`
	Source string `json:"source,omitempty"` // the name of the tool or middleware that gives the advice
	Reason string `json:"reason,omitempty"` // for Halt, the reason for the failure
	Failed bool   `json:"failed,omitempty"` // whether it comes from a tool call that failed
	// Answer is used with Continue. It is a draft that replaces the model's own: text, or JSON of the draft's type. See [Answer].
	Answer string `json:"answer,omitempty"`
}

// Answer returns a recommendation that ends the agent with the given draft. A tool returns it from Run. The draft is text or, if
// the draft's type has a schema, JSON, such as the input of the call:
//
//	Run: func(_ context.Context, input json.RawMessage) (agent.Result, error) {
//		return agent.Result{Text: "noted", Recommend: agent.Answer(string(input))}, nil
//	},
//
// A draft that does not fit the schema is sent back to the model once, like a draft that the model itself wrote.
func Answer(draft string) *Recommendation { return &Recommendation{Action: Continue, Answer: draft} }

// A Decide chooses the next action after every turn. It must be deterministic, because it is called again when a run is resumed.
type Decide func(c Context, advice []Recommendation) Recommendation

// ContinueOnToolUse takes another turn if advice is not empty, that is, after every turn with a tool call. It halts if any advice
// is Halt, and ends with the first advice that has an Answer. It is the default.
func ContinueOnToolUse(_ Context, advice []Recommendation) Recommendation {
	if end, ok := ending(advice); ok {
		return end
	}
	if len(advice) > 0 {
		return Recommendation{Action: Loop, Source: advice[0].Source, Reason: advice[0].Reason}
	}
	return Recommendation{Action: Continue}
}

// ToolDirected takes another turn only if some advice is Loop. It halts if any advice is Halt, and ends with the first advice
// that has an Answer.
func ToolDirected(_ Context, advice []Recommendation) Recommendation {
	if end, ok := ending(advice); ok {
		return end
	}
	if loop, ok := first(Loop, advice); ok {
		return loop
	}
	return Recommendation{Action: Continue}
}

// ending returns the recommendation that ends the agent regardless of all others: the first Halt or, if there is none, the first
// with an Answer. It returns false if the advice contains neither.
func ending(advice []Recommendation) (Recommendation, bool) {
	if halt, ok := first(Halt, advice); ok {
		return halt, true
	}
	i := slices.IndexFunc(advice, func(r Recommendation) bool { return r.Answer != "" && !r.Failed })
	if i < 0 {
		return Recommendation{}, false
	}
	return advice[i], true
}

func first(a Action, advice []Recommendation) (Recommendation, bool) {
	i := slices.IndexFunc(advice, func(r Recommendation) bool { return r.Action == a })
	if i < 0 {
		return Recommendation{}, false
	}
	return advice[i], true
}
