package view

import (
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/journal"
)

// A State is the state of a branch in a run, or of a place in its pipeline.
type State string

// The states.
const (
	Pending State = "pending"
	Running State = "running"
	Waiting State = "waiting" // waiting for an answer
	Open    State = "open"    // a step has no result
	Partly  State = "partly"  // contains a failure
	Done    State = "done"
	Failed  State = "failed"

	// States of a call's attempts, and of a run.
	Chosen   State = "chosen"   // the answer is the result of the call
	Rejected State = "rejected" // the answer was rejected by the gate
	Answer   State = "answer"   // the answer was neither chosen nor rejected, at least not yet
	Canceled State = "canceled"
)

// Mark returns the character to show before a state, so that states can be distinguished without color.
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

// A Row is a branch as it is shown to people.
type Row struct {
	journal.Branch
	State   State
	Did     string            // action of an agent's step, such as "read_file mean.go"; "" for others
	By      string            // for a turn: the model, and why it stopped
	Cap     string            // for an attempt of a call: the capability, such as "model/small repair"
	Reason  string            // reason of a failure
	Running bool              // the step of the branch is running
	Asked   *journal.Question // question asked by the step; nil if there is none
	Paid    budget.Possible   // possible cost of the step's attempts, unless a row below shows it
}

// Row returns the row for a branch. For steps of agents and calls, it reads the result.
func (r *Run) Row(ctx context.Context, b journal.Branch) (Row, error) {
	s := Result(b)
	if r.State == journal.Done && (s == nil || s.Recorded) { // steps without a result were no longer needed
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
	case s.Recorded: // whatever the attempts before it did
		row.State = Done
	case row.Asked != nil && row.Asked.Open():
		row.State = Waiting
	default:
		row.State, row.Running = Open, r.State == journal.Running
	}
	row.Paid = Paid(r.RunInfo, b, row.Asked)
	return row, r.describe(ctx, &row, s)
}

// Result returns the step that contains the result of a branch. It returns nil for a branch that only has steps below it, such as
// a lane, and for a branch whose step only decided which of the steps below run.
func Result(b journal.Branch) *journal.Step {
	if s := b.Step; s != nil && s.Kind == "decision" && s.Recorded && s.Failure == "" {
		return nil
	}
	return b.Step
}

// Paid returns the possible cost of the attempts at b's step that have no result. It does not count attempts that
// cannot have been billed at this step. An attempt that asked a person was only waiting, unless it began after the answer and was
// lost. The cost of a step that has not declared one is shown at the steps below it. In a running run, the last attempt is still
// in progress.
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

// Dir returns the directory in which the command started a run, or "" if it is unknown.
func Dir(info journal.RunInfo) string {
	var from struct {
		Dir string `json:"dir"`
	}
	_ = json.Unmarshal(info.Source, &from) // another program may use a different source format
	return from.Dir
}

// IsText reports whether every journal can search for s.
func IsText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }
