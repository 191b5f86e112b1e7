package view

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/journal"
)

// A State is the state of a branch of a run, or of a place of its pipeline.
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
)

// Mark returns the character that stands before a state of a run or branch, so that color is not
// all that tells them apart.
func Mark(state string) string {
	if mark, ok := marks[state]; ok {
		return mark
	}
	return "·"
}

var marks = map[string]string{
	"done": "✓", "passed": "✓", "skipped": "–", "failed": "✗", "running": "▸", "waiting": "?", "answered": "?", "open": "…", "partly": "!",
	"canceled": "–", "drained": "‖", "interrupted": "‖", "refused": "✗", "damaged": "✗",
}

// A Row is a branch as people see it.
type Row struct {
	journal.Branch
	State   State
	Reason  string            // of a failure
	Running bool              // its step is running
	Asked   *journal.Question // by its step, nil for none
	Paid    budget.Possible   // by attempts of its step, as far as no row below says so
}

// Row returns the row of a branch. It reads the result of a tool call.
func (r *Run) Row(ctx context.Context, b journal.Branch) (Row, error) {
	row := Row{Branch: b, State: State(b.State())}
	s := Result(b)
	if s == nil {
		return row, nil
	}
	row.Asked = r.asked[s.Path]
	trouble, err := r.trouble(ctx, s)
	switch {
	case s.Failure != "":
		row.State, row.Reason = Failed, s.Failure+": "+s.Reason
	case trouble != "":
		row.State, row.Reason = Failed, trouble
	case s.Recorded: // whatever it tried
		row.State = Done
	case row.Asked != nil && row.Asked.Open():
		row.State = Waiting
	default:
		row.State, row.Running = Open, r.State == journal.Running
	}
	row.Paid = Paid(r.RunInfo, b, row.Asked)
	return row, err
}

// Result returns the step whose result is the result of a branch. It is nil for a branch that only
// has steps below it, such as a lane, and where the step only decided which of them run.
func Result(b journal.Branch) *journal.Step {
	if s := b.Step; s != nil && s.Kind == "decision" && s.Recorded && s.Failure == "" {
		return nil
	}
	return b.Step
}

// Paid returns what attempts without a result of the step of a branch may have cost. A step that asked a
// person has waited. The steps below another one say what was in flight, unless it declared a cost
// of its own. In a running run, the last attempt of a step is still in progress.
func Paid(run journal.RunInfo, b journal.Branch, asked *journal.Question) budget.Possible {
	s := b.Step
	n := s.PossiblyPaid()
	if b.Below > 0 && (s.Recorded || s.Declared == budget.Amount{}) {
		n = s.Possible.Attempts
	}
	if run.State == journal.Running && !s.Recorded {
		n--
	}
	if n <= 0 || asked != nil {
		return budget.Possible{}
	}
	lost := s.Declared.Times(n)
	return budget.Possible{Attempts: n, Tokens: lost.Tokens, USD: lost.USD}
}

// ToolCall matches the names of the steps of an agent's tool calls.
var ToolCall = regexp.MustCompile(`^tool-[0-9]+-[0-9]+$`)

// trouble returns the answer of a failed tool call, "" for any other step. Such a call is a step with
// a result: the model reads why it failed, and continues. So only its own row says that it failed.
func (r *Run) trouble(ctx context.Context, s *journal.Step) (string, error) {
	if s.Kind != "step" || !s.Recorded || s.Failure != "" || !ToolCall.MatchString(s.Name) {
		return "", nil
	}
	rec, err := r.journal.Record(ctx, r.ID, s.Path, s.Kind)
	if errors.Is(err, journal.ErrNoStep) { // it was started anew meanwhile
		return "", nil
	}
	var outcome struct {
		Text   string `json:"text"`
		Failed bool   `json:"failed"`
	}
	if err != nil || json.Unmarshal(rec.Content, &outcome) != nil || !outcome.Failed {
		return "", err
	}
	const most = 200 // columns
	return "failed: " + text.Cut(text.Line(strings.TrimSpace(outcome.Text)), most), nil
}
