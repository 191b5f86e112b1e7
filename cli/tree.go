package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// A branch is one place of a run with all that was done there.
type branch struct {
	name  string
	step  *journal.Step // nil for what only holds others
	below []*branch
	named map[string]*branch

	started, ended time.Time // of everything in it
	usage          budget.Usage
	trouble        string // the answer of a failed tool call
	lost           bool   // something in it failed
	open           bool   // something in it has no result
}

// treeOf makes the tree of the steps of a run. A decision has no branch of its own
// unless it failed, since the branch it took shows. Values have none either. Troubles are the answers of
// failed tool calls, by path.
func treeOf(steps []journal.Step, troubles map[string]string) *branch {
	root := &branch{}
	for i := range steps {
		s := &steps[i]
		if s.Kind == "input" || s.Kind == step.Value || s.Kind == "decision" && s.Recorded && s.Failure == "" {
			continue
		}
		at, trouble := root, troubles[s.Path]
		at.note(s, trouble)
		for name := range address.Segments(s.Path) {
			at = at.child(name)
			at.note(s, trouble)
		}
		at.step, at.trouble = s, trouble
	}
	return root
}

func (b *branch) child(name string) *branch {
	c := b.named[name]
	if c == nil {
		c = &branch{name: name}
		if b.named == nil {
			b.named = map[string]*branch{}
		}
		b.named[name] = c
		b.below = append(b.below, c)
	}
	return c
}

// note takes in that a step was done here or below.
func (b *branch) note(s *journal.Step, trouble string) {
	if !s.Started.IsZero() && (b.started.IsZero() || s.Started.Before(b.started)) {
		b.started = s.Started
	}
	if s.Ended.After(b.ended) {
		b.ended = s.Ended
	}
	b.usage = b.usage.Add(s.Usage)
	b.lost = b.lost || s.Failure != "" || trouble != ""
	b.open = b.open || !s.Recorded
}

// A treePrinter makes the rows of a tree.
type treePrinter struct {
	running bool                        // the run is running
	asked   map[string]journal.Question // by their paths
	all     bool                        // no row is left out
	width   int                         // of the names, 0 for any

	columns []column
}

func newTreePrinter(info journal.RunInfo, questions []journal.Question, all bool, width int) *treePrinter {
	p := &treePrinter{running: info.State == journal.Running, asked: map[string]journal.Question{}, all: all}
	if width > 0 {
		p.width = max(width-36, 24) // the rest is for the numbers
	}
	for _, q := range questions {
		p.asked[q.Path] = q
	}
	p.columns = []column{
		{name: "STEP"}, {name: "NODE"}, {name: "DURATION", right: true}, {name: "TOKENS", right: true}, {name: "COST", right: true}, {name: "NOTE"},
	}
	return p
}

func (p *treePrinter) row(cells ...string) {
	if p.width > 0 {
		cells[0] = text.Cut(cells[0], p.width)
	}
	for i := range p.columns {
		cell := ""
		if i < len(cells) {
			cell = cells[i]
		}
		p.columns[i].cells = append(p.columns[i].cells, cell)
	}
}

// How many of the lanes or rounds of one name are shown: the first, and as many
// that are not done.
const (
	firstRows  = 5
	openRows   = 10
	fewestRows = 3 // that are worth leaving out
)

// print makes the rows of places that lie in one: the rounds, lanes and visits of
// one name are a group.
func (p *treePrinter) print(places []*branch, depth int) {
	for len(places) > 0 {
		name, n := base(places[0].name), 1
		for n < len(places) && base(places[n].name) == name {
			n++
		}
		p.group(places[:n], depth)
		places = places[n:]
	}
}

// base returns a segment without rounds, lanes, branches and attempts.
func base(segment string) string {
	if i := strings.IndexAny(segment, "[~"); i >= 0 {
		return segment[:i]
	}
	return segment
}

// group makes the rows of places of one name, in the order of their numbers: lanes
// begin in any order.
func (p *treePrinter) group(group []*branch, depth int) {
	slices.SortStableFunc(group, func(a, b *branch) int {
		return cmp.Compare(address.Parse(a.name).Number(), address.Parse(b.name).Number())
	})
	var left, lost int
	shown := 0
	for i, b := range group {
		troubled := b.lost || b.open
		if p.all || len(group) < firstRows+fewestRows || i < firstRows || troubled && shown < openRows {
			if i >= firstRows {
				shown++
			}
			p.place(b, depth)
			continue
		}
		left++
		if troubled {
			lost++
		}
	}
	if left > 0 {
		line := fmt.Sprintf("%s… %d more, ", strings.Repeat("  ", depth), left)
		if lost > 0 {
			line += fmt.Sprintf("%d of them not done: --all shows them", lost)
		} else {
			line += "all done"
		}
		p.row(line)
	}
}

func (p *treePrinter) place(b *branch, depth int) {
	mark, note := p.state(b)
	node, spent := "", took(b.started, b.ended)
	if b.step != nil && b.step.Node != (dag.ID{}) {
		node = b.step.Node.String()[:8]
	}
	if b.open {
		spent = "" // it is not over
	}
	p.row(strings.Repeat("  ", depth)+mark+" "+text.Line(b.name), node, spent, tokens(b.usage), cost(b.usage), note)
	p.print(b.below, depth+1)
}

// state returns the mark of a branch and its note.
func (p *treePrinter) state(b *branch) (mark, note string) {
	s := b.step
	switch {
	case s == nil && b.open:
		return "…", ""
	case s == nil && b.lost: // it may have been rescued, or a lane that may be lost
		return "!", ""
	case s == nil:
		return "✓", ""
	}
	var notes []string
	q, asked := p.asked[s.Path]
	paid := s.PossiblyPaid()
	if len(b.below) > 0 { // the steps in it say what was in flight
		paid = s.Possible.Attempts
	}
	switch {
	case s.Failure != "":
		mark, notes = "✗", append(notes, text.Line(s.Failure+": "+s.Reason))
	case b.trouble != "":
		mark, notes = "✗", append(notes, b.trouble)
	case s.Recorded:
		mark = "✓"
	case asked && q.Open():
		mark, notes = "?", append(notes, "waits for an answer")
	case asked && !p.running:
		mark = "…"
	case p.running:
		mark, paid = "…", paid-1 // the last attempt is running
		notes = append(notes, "running")
	default:
		mark = "…"
	}
	if asked && !q.Open() {
		notes = append(notes, answered(q))
	}
	if s.From != "" {
		notes = append(notes, "from run "+s.From)
	}
	if paid > 0 && !asked {
		note := "possibly paid " + times(paid)
		if s.Recorded {
			note += " more"
		}
		notes = append(notes, note)
	}
	return mark, strings.Join(notes, "; ")
}

// answered says what was answered to a question, and by whom.
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
