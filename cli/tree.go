package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
)

// A treePrinter creates the rows of a run's tree of steps.
type treePrinter struct {
	*view.Run
	all   bool // show all rows
	width int  // maximum width of the names; 0 means any width

	*table
}

func newTreePrinter(run *view.Run, all bool, width int) *treePrinter {
	p := &treePrinter{Run: run, all: all, table: newTable("STEP", "NODE", ">DURATION", ">TOKENS", ">COST", "NOTE")}
	if width > 0 {
		p.width = max(width-36, 24) // leaves room for the numbers
	}
	return p
}

func (p *treePrinter) row(cells ...string) {
	if p.width > 0 {
		cells[0] = text.Cut(cells[0], p.width)
	}
	p.add(cells...)
}

// Maximum numbers of rounds or lanes shown for a place: the first ones, and the unfinished ones after them.
const (
	firstRows  = 5
	openRows   = 10
	fewestRows = 3 // minimum number of rows to omit at once
)

// fill creates all rows.
func (p *treePrinter) fill(ctx context.Context) error {
	level, err := p.Below(ctx, "")
	if err != nil {
		return err
	}
	return p.level(ctx, level, "", 0)
}

// level appends the rows of all branches in a level. The name of a round, lane or match branch begins with the name of its place.
func (p *treePrinter) level(ctx context.Context, level journal.Level, place string, depth int) error {
	few := p.all || level.All < firstRows+fewestRows || !numbered(level)
	left, lost, shown := level.All, level.All-level.Counts[journal.BranchDone], 0
	for i, b := range level.Branches {
		troubled := b.State() != journal.BranchDone
		if !few && i >= firstRows && (!troubled || shown >= openRows) {
			continue
		}
		if left--; troubled {
			lost--
		}
		if i >= firstRows && troubled {
			shown++
		}
		name := place + strings.TrimPrefix(b.Path[len(level.Sum.Path):], "/")
		label, err := p.Lanes.Label(ctx, b.Path)
		if err != nil {
			return err
		}
		if label != "" {
			name += " " + label // the number is kept, because other commands accept it
		}
		if err := p.branch(ctx, b, name, depth); err != nil {
			return err
		}
	}
	if line := fmt.Sprintf("%s… %d more, ", strings.Repeat("  ", depth), left); lost > 0 {
		p.row(fmt.Sprintf("%s%d of them not done: --all shows them", line, lost))
	} else if left > 0 {
		p.row(line + "all done")
	}
	return nil
}

// numbered reports whether the branches of a level are rounds, lanes or branches of a match.
func numbered(level journal.Level) bool {
	return len(level.Branches) > 0 && strings.HasPrefix(level.Branches[0].Path[len(level.Sum.Path):], "[")
}

// branch creates the row of a branch and the rows below it. Three kinds of branches have no row: the input, a place that contains
// only rounds, lanes or branches of a match, and a decision, unless it failed, because the chosen branch is shown.
func (p *treePrinter) branch(ctx context.Context, b journal.Branch, name string, depth int) error {
	s := view.Result(b)
	if s != nil && s.Kind == "input" || s == nil && b.Below == 0 {
		return nil
	}
	level, err := journal.Level{}, error(nil)
	if b.Below > 0 {
		if level, err = p.Below(ctx, b.Path); err != nil {
			return err
		}
	}
	if s == nil && numbered(level) {
		return p.level(ctx, level, name, depth)
	}
	row, err := p.Row(ctx, b)
	if err != nil {
		return err
	}
	node, spent := "", took(b.Started, b.Ended)
	if s != nil && s.Node != (dag.ID{}) {
		node = s.Node.String()[:8]
	}
	if row.Open > 0 {
		spent = "" // the branch is not finished
	}
	p.row(strings.Repeat("  ", depth)+view.Mark(string(row.State))+" "+text.Line(address.Readable(name)), node, spent, tokens(b.Usage), cost(b.Usage), noteOf(row, s))
	return p.level(ctx, level, "", depth+1)
}

// noteOf returns a note that explains the mark before a row.
func noteOf(row view.Row, s *journal.Step) string {
	if s == nil {
		return ""
	}
	var notes []string
	if row.Did != "" {
		notes = append(notes, text.Line(row.Did))
	}
	switch {
	case row.Reason != "":
		notes = append(notes, text.Line(row.Reason))
	case row.State == view.Chosen:
		notes = append(notes, "chosen")
	case row.State == view.Answer && row.Cap != "": // the capability has answered the call
		notes = append(notes, "not chosen")
	case row.State == view.Waiting:
		notes = append(notes, "waits for an answer")
	case row.Running:
		notes = append(notes, "running")
	}
	if q := row.Asked; q != nil && !q.Open() {
		notes = append(notes, answered(*q))
	}
	if s.From != "" {
		notes = append(notes, "from run "+s.From)
	}
	if n := row.Paid.Attempts; n > 0 && s.Recorded {
		notes = append(notes, "possibly paid "+times(n)+" more")
	} else if n > 0 {
		notes = append(notes, "possibly paid "+times(n))
	}
	return strings.Join(notes, "; ")
}

// answered returns the answer to a question and its author as text.
func answered(q journal.Question) string {
	said := "cancelled"
	if q.Response != "" {
		const most = 40 // columns
		said = "answered " + text.Cut(text.Line(q.Response), most)
	}
	return said + " by " + cmp.Or(text.Line(q.By), "unknown")
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return fmt.Sprintf("%d times", n)
}
