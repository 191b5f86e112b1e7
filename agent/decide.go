package agent

import "slices"

// Action is the action that a recommendation asks for.
type Action string

// The actions.
const (
	Continue Action = "continue" // the draft is the result
	Loop     Action = "loop"     // take another turn
	Halt     Action = "halt"     // end with a failure
)

// A Recommendation is the advice of a middleware, or the decision of a decide
// function.
type Recommendation struct {
	Action Action `json:"action"`
	Source string `json:"source,omitempty"` // the adviser, such as the name of a tool
	Reason string `json:"reason,omitempty"` // why: for Halt the reason of the failure
	Failed bool   `json:"failed,omitempty"` // the tool call behind it failed
}

// A Decide chooses the next action after every turn. It must be deterministic: it is
// called again when a run is resumed.
type Decide func(c Context, advice []Recommendation) Recommendation

// ContinueOnToolUse takes another turn as long as advice is not empty, that is after
// every turn with a tool call. It halts if any advice is Halt. It is the default of an
// agent.
func ContinueOnToolUse(_ Context, advice []Recommendation) Recommendation {
	if halt, ok := first(Halt, advice); ok {
		return halt
	}
	if len(advice) > 0 {
		return Recommendation{Action: Loop, Source: advice[0].Source, Reason: advice[0].Reason}
	}
	return Recommendation{Action: Continue}
}

// ToolDirected takes another turn only if some advice is Loop. It halts if any advice
// is Halt.
func ToolDirected(_ Context, advice []Recommendation) Recommendation {
	if halt, ok := first(Halt, advice); ok {
		return halt
	}
	if loop, ok := first(Loop, advice); ok {
		return loop
	}
	return Recommendation{Action: Continue}
}

func first(a Action, advice []Recommendation) (Recommendation, bool) {
	i := slices.IndexFunc(advice, func(r Recommendation) bool { return r.Action == a })
	if i < 0 {
		return Recommendation{}, false
	}
	return advice[i], true
}
