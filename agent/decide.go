package agent

import "slices"

// Action is what a recommendation asks for.
type Action string

// The actions.
const (
	Continue Action = "continue" // the draft is the result
	Loop     Action = "loop"     // take another turn
	Halt     Action = "halt"     // end with a failure
)

// A Recommendation is what a middleware advises, and what a decide function
// decides.
type Recommendation struct {
	Action Action `json:"action"`
	Source string `json:"source,omitempty"` // who says so, as the name of a tool
	Reason string `json:"reason,omitempty"` // why: for Halt the reason of the failure
	Failed bool   `json:"failed,omitempty"` // the tool call that gave rise to it failed
}

// A Decide says after every turn what comes next. It must follow from what it is
// given: it is asked again when a run is resumed.
type Decide func(c Context, advice []Recommendation) Recommendation

// ContinueOnToolUse takes another turn as long as there is any advice, which is
// after every turn in which a tool was called. It halts if somebody says so. It
// is what an agent does that is not told otherwise.
func ContinueOnToolUse(_ Context, advice []Recommendation) Recommendation {
	if halt, ok := first(Halt, advice); ok {
		return halt
	}
	if len(advice) > 0 {
		return Recommendation{Action: Loop, Source: advice[0].Source, Reason: advice[0].Reason}
	}
	return Recommendation{Action: Continue}
}

// ToolDirected takes another turn only if some advice is Loop. It halts if
// somebody says so.
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
