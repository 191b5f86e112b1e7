package page

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
)

// part selects the part of a tree to show.
type part struct {
	At   string // path whose branches are shown; "" for the run
	Only string // state of the branches that are shown; "" for all
	From string // path of the first branch shown; "" for the first branch of all

	Graph bool // show the pipeline drawing instead of the tree
}

func partOf(values url.Values) part {
	return part{At: values.Get("at"), Only: values.Get("only"), From: values.Get("from"), Graph: values.Get("view") == "graph"}
}

// tree is the part of a run's tree that a page shows.
type tree struct {
	part
	Run    string
	Above  []crumb
	Rows   []*row
	rows   int // number of rows, including rows below others
	inside int // rows per branch
	Within *within
	Counts []stateCount // number of branches directly below At, by state
	All    int          // number of branches directly below At
	Open   int          // number of steps without a result
	Kept   int          // number of steps with a result
	Next   string       // first path on the next page
	Hidden int          // number of branches from Next on
	Strip  *strip       // strip of the lanes below At
	// Drawing is nil if the tree is shown instead, or if the pipeline cannot be drawn.
	Drawing *drawing
	Span    span
	Live    bool              // the run is running
	Large   bool              // the run has too many steps to read at once
	forms   map[string]string // form of each place in the pipeline, such as "map"
	Costs   bool              // a step has cost something
	Rescued bool              // the run has a result, and no lane is missing
	Paid    bool              // steps without a result may have been billed
}

// Kept returns the number of results that are kept when a failed run is resumed.
func (b runPage) Kept() int { return max(b.Steps-len(b.RunInfo.Retry), 0) }

// crumbs returns the breadcrumbs for a path.
func crumbs(ctx context.Context, lanes *view.Lanes, path string) (out []crumb, err error) {
	for at := path; at != ""; at = up(at) {
		label, err := lanes.Label(ctx, at)
		if err != nil {
			return nil, err
		}
		out = append(out, crumb{Name: cmp.Or(label, address.Readable(strings.TrimPrefix(at[len(up(at)):], "/"))), Path: at})
	}
	slices.Reverse(out)
	return out, nil
}

// Pauses returns the number of folded pauses.
func (t tree) Pauses() int { return len(t.Span.idle) }

// Zero returns the zero time, which stands for the end of a running step.
func (tree) Zero() time.Time { return time.Time{} }

type crumb struct{ Name, Path string }

type stateCount struct {
	State string
	N     int
}

// A row is a branch in a tree.
type row struct {
	view.Row
	Name string
	Bar  *bar
	More int    // number of hidden branches directly below it
	In   []*row // rows of the branches directly below it
	Fold bool   // initially folded
	Here bool   // the run failed because of this branch

	Failures string // address of the list of failed branches directly below it, or ""
	Of       *tree
}

const (
	rowsOfTree = 100 // maximum number of rows directly below the shown path
	rowsInAll  = 160 // maximum number of rows, including rows below others
	rowsInside = 8   // maximum rows per unfolded branch, in a run with more than rowsInAll steps
	rowsOpen   = 60  // maximum number of initially unfolded rows
)

// readTree reads the part of a tree that a page shows.
func readTree(ctx context.Context, read *view.Run, shown part) (tree, error) {
	info := read.RunInfo
	t := tree{part: shown, Run: info.ID, Live: info.State == journal.Running, Large: read.Large}
	t.Rescued = info.State == journal.Done && info.Lanes.Lost == 0
	var err error
	if t.Above, err = crumbs(ctx, read.Lanes, shown.At); err != nil {
		return t, err
	}
	t.forms = make(map[string]string, len(info.Shape))
	for _, p := range info.Shape {
		t.forms[p.Path] = p.Form
	}
	states := []journal.BranchState{journal.BranchFailed, journal.BranchPartly, journal.BranchOpen, journal.BranchDone}
	if only := journal.BranchState(t.Only); only != "" && !slices.Contains(states, only) {
		return t, missing("No step has the state %q: want %q.", t.Only, states)
	}
	top, err := read.Level(ctx, t.At, journal.Page{From: t.From, Only: journal.BranchState(t.Only), Limit: rowsOfTree})
	if err != nil {
		return t, err
	}
	if top.All == 0 && t.At != "" {
		return t, missing("Run %q has nothing below %q.", info.ID, t.At)
	}
	t.All, t.Next, t.Hidden = top.All, top.Next, top.Hidden
	for _, s := range states {
		if top.Counts[s] > 0 && (s != journal.BranchOpen || info.State != journal.Done) {
			t.Counts = append(t.Counts, stateCount{string(s), top.Counts[s]})
		}
	}
	t.Open, t.Kept, t.Costs = top.Sum.Open, top.Sum.Recorded, top.Sum.Usage != (budget.Usage{})
	t.Span.add(top.Sum.Started, top.Sum.Ended)
	if t.Live {
		t.Span.add(time.Time{}, time.Now())
	}
	t.Span.fold(read.All)
	t.Paid = read.Cost.Possible.Attempts > 0
	if t.Graph {
		places, err := read.Places(ctx)
		t.Drawing = draw(info, places)
		return t, err
	}
	if t.From == "" && t.Only == "" {
		if t.Strip, err = stripOf(ctx, read, t.At, top); err != nil {
			return t, err
		}
	}
	return t, t.list(ctx, read, top)
}

// list adds a row for each branch of a level.
func (t *tree) list(ctx context.Context, read *view.Run, top journal.Level) error {
	most := rowsInAll
	if isEvaluation(read.RunInfo) { // an evaluation's report is more useful than its first cases
		most = len(top.Branches) + rowsInside
	}
	t.inside = rowsInside
	if !t.Large && len(read.All) <= most {
		t.inside = rowsInAll
	}
	for i, b := range top.Branches {
		r, err := t.add(ctx, read, b, t.At, most-(len(top.Branches)-i))
		if err != nil {
			return err
		}
		t.Rows = append(t.Rows, r)
	}
	if t.rows > rowsOpen {
		fold(t.Rows)
	}
	return nil
}

// fold folds finished branches, except at the top.
func fold(rows []*row) {
	for _, r := range rows {
		for _, in := range r.In {
			in.Fold = in.State == view.Done
		}
		fold(r.In)
	}
}

// add adds a row for a branch and, up to most rows in total, the rows below it.
func (t *tree) add(ctx context.Context, read *view.Run, b journal.Branch, above string, most int) (*row, error) {
	var below journal.Level
	for b.Below > 0 {
		var err error
		if below, err = read.Level(ctx, b.Path, journal.Page{Limit: t.inside}); err != nil {
			return nil, err
		}
		if b.Step != nil || below.All != 1 || below.Branches[0].Step == nil {
			break
		}
		b = below.Branches[0] // a lane with only one step is shown as this step
		below = journal.Level{}
	}
	seen, err := read.Row(ctx, b)
	if err != nil {
		return nil, err
	}
	if below.Next != "" {
		if err := unfold(ctx, read, b.Path, &below); err != nil {
			return nil, err
		}
	}
	name, err := t.nameOf(ctx, read.Lanes, seen, above)
	if err != nil {
		return nil, err
	}
	t.Paid = t.Paid || seen.Paid.Attempts > 0 && !seen.Step.Recorded
	t.rows++
	r := &row{Row: seen, Name: name, Bar: t.Span.bar(b.Started, b.Ended), Of: t}
	r.Here = read.Failure != nil && read.State == journal.Failed && b.Path == read.Failure.Path
	for _, c := range below.Branches {
		if t.rows >= most {
			break
		}
		in, err := t.add(ctx, read, c, b.Path, most)
		if err != nil {
			return nil, err
		}
		r.In = append(r.In, in)
	}
	r.More = below.All - len(r.In)
	if below.Counts[journal.BranchFailed] > 0 {
		r.Failures = runURL(read.ID, "at", b.Path, "only", string(journal.BranchFailed))
	}
	return r, nil
}

// unfold shortens a long level to at most rowsInside branches. The interesting ones come first: the chosen answer of a call, or
// else lanes that failed, lost lanes of their own, or are running.
func unfold(ctx context.Context, read *view.Run, path string, level *journal.Level) error {
	var first []journal.Branch
	chosen, err := read.Chosen(ctx, path)
	if err != nil {
		return err
	}
	if chosen != "" {
		found, err := read.Level(ctx, path, journal.Page{From: chosen, Limit: 1})
		if err != nil {
			return err
		}
		first = found.Branches
	} else if strings.HasPrefix(level.Branches[0].Path[len(path):], "[") {
		for _, state := range []journal.BranchState{journal.BranchFailed, journal.BranchPartly, journal.BranchOpen} {
			if room := rowsInside - 1 - len(first); room > 0 && level.Counts[state] > 0 {
				found, err := read.Level(ctx, path, journal.Page{Only: state, Limit: room})
				if err != nil {
					return err
				}
				first = append(first, found.Branches...)
			}
		}
	}
	for _, b := range level.Branches {
		if !slices.ContainsFunc(first, func(f journal.Branch) bool { return f.Path == b.Path }) && len(first) < rowsInside {
			first = append(first, b)
		}
	}
	level.Branches = first
	return nil
}

// nameOf returns the name that a branch has in the tree below a path. Lanes of a map are named after their items' labels, and
// rounds of a loop are counted from 1.
func (t *tree) nameOf(ctx context.Context, lanes *view.Lanes, r view.Row, above string) (string, error) {
	name := strings.TrimPrefix(strings.TrimPrefix(r.Path, above), "/")
	if did := cmp.Or(r.Did, r.Cap); did != "" {
		return did, nil
	}
	number, rest, ok := strings.Cut(strings.TrimPrefix(name, "["), "]")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || !strings.HasPrefix(name, "[") {
		return address.Readable(name), nil
	}
	label := fmt.Sprintf("round %d", n+1)
	if t.forms[address.Place(above)] != "loop" {
		if label, err = lanes.Label(ctx, above+"["+number+"]"); label == "" {
			return address.Readable(name), err
		}
	}
	return strings.TrimSuffix(label+": "+address.Readable(strings.TrimPrefix(rest, "/")), ": "), nil
}

// up returns the path of the parent branch of path.
func up(path string) string {
	return path[:max(strings.LastIndexAny(path, "/[~"), 0)]
}
