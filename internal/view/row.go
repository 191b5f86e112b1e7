package view

import (
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/journal"
)

// A State is the state of a run's branch, or of a place in its pipeline.
type State string

// The states.
const (
	Pending State = "pending"
	Running State = "running"
	Waiting State = "waiting" // for an answer
	Open    State = "open"    // a step has no result
	Partly  State = "partly"  // there is a failure in it
	Done    State = "done"
	Failed  State = "failed"

	// Of the attempts of a call, and of a run.
	Chosen   State = "chosen"   // its answer is the result of the call
	Rejected State = "rejected" // by the gate
	Answer   State = "answer"   // neither chosen nor rejected, or not yet
	Canceled State = "canceled"
)

// Mark returns the character before a state, so color is not the only distinction.
func Mark(state string) string {
	if mark, ok := marks[state]; ok {
		return mark
	}
	return "·"
}

var marks = map[string]string{
	"done": "✓", "passed": "✓", "chosen": "✓", "rejected": "⊘", "answer": "○", "skipped": "–", "failed": "✗", "running": "▸", "waiting": "?", "answered": "?", "open": "…", "partly": "!",
	"canceled": "–", "drained": "‖", "interrupted": "‖", "refused": "✗", "damaged": "✗",
}

// A Row is a branch as people see it.
type Row struct {
	journal.Branch
	State   State
	Did     string            // action of an agent's step, such as "read_file mean.go"; "" for others
	By      string            // the model of a turn, and why it stopped
	Cap     string            // the capability of an attempt of a call, such as "model/small repair"
	Reason  string            // of a failure
	Running bool              // its step is running
	Asked   *journal.Question // asked by its step; nil if none
	Paid    budget.Possible   // by attempts of its step, unless a row below has it
}

// Row returns the row of a branch. It reads the results of steps of agents and calls.
func (r *Run) Row(ctx context.Context, b journal.Branch) (Row, error) {
	s := Result(b)
	if r.State == journal.Done && (s == nil || s.Recorded) { // steps without a result are no longer needed
		b.Open = 0
	}
	row := Row{Branch: b, State: State(b.State())}
	if s == nil {
		return row, nil
	}
	row.Asked = r.asked[s.Path]
	switch {
	case s.Failure != "":
		row.State, row.Reason = Failed, s.Failure+": "+s.Reason
	case s.Recorded: // whatever it tried
		row.State = Done
	case row.Asked != nil && row.Asked.Open():
		row.State = Waiting
	default:
		row.State, row.Running = Open, r.State == journal.Running
	}
	row.Paid = Paid(r.RunInfo, b, row.Asked)
	return row, r.describe(ctx, &row, s)
}

// Result returns the step with a branch's result. It is nil for a branch that only has steps below it, such as a lane, and if the
// step only decided which of them run.
func Result(b journal.Branch) *journal.Step {
	if s := b.Step; s != nil && s.Kind == "decision" && s.Recorded && s.Failure == "" {
		return nil
	}
	return b.Step
}

// Paid returns the possible cost of a branch's attempts without a result. A step that asked a person was waiting, unless its last
// attempt began after the answer and was lost. The steps below a step show what was in flight, unless that step declared its own
// cost. In a running run, the last attempt of a step is still in progress.
func Paid(run journal.RunInfo, b journal.Branch, asked *journal.Question) budget.Possible {
	s := b.Step
	n := s.PossiblyPaid()
	if b.Below > 0 && (s.Recorded || s.Declared == budget.Amount{}) {
		n = s.Possible.Attempts
	}
	if run.State == journal.Running && !s.Recorded {
		n--
	}
	if asked != nil {
		lost := !asked.Open() && !s.Recorded && run.State != journal.Running && s.Started.After(asked.Answered)
		if n = min(n, 1); !lost {
			n = 0
		}
	}
	if n <= 0 {
		return budget.Possible{}
	}
	lost := s.Declared.Times(n)
	return budget.Possible{Attempts: n, Tokens: lost.Tokens, USD: lost.USD}
}

// Dir returns the directory in which the command started a run, or "".
func Dir(info journal.RunInfo) string {
	var from struct {
		Dir string `json:"dir"`
	}
	_ = json.Unmarshal(info.Source, &from) // another program may use another source format
	return from.Dir
}

// IsText reports whether every journal can search for s.
func IsText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }
