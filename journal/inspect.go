package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/step"
)

// An Outline is a snapshot of a run's step tree, in which each child, round, lane, branch and attempt has its own level. Large
// levels are read page by page. An Outline never reads the contents of nodes.
type Outline interface {
	// Level returns a page of the branches directly below a path; the path "" stands for the whole run. Up to 2,000 branches are
	// sorted by start time; larger levels are sorted by name and number.
	Level(ctx context.Context, path string, p Page) (Level, error)
	// Places returns the places of the pipeline (see address.Place) at which the run has steps or visits. If there are more than
	// 1,000 places, some may be combined.
	Places(ctx context.Context) ([]Place, error)
}

// A Page selects branches of a level. The zero Page selects the first 100 branches.
type Page struct {
	From  string      // path of the first branch to return; empty to start with the first one
	Only  BranchState // state of the branches to return; empty for all
	Limit int         // maximum number of branches, at most 1,000; zero means DefaultLimit
}

// Size returns the maximum number of branches on a page.
func (p Page) Size() int { return min(cmp.Or(max(p.Limit, 0), DefaultLimit), 1000) }

// A Level is a page of the branches directly below a path.
type Level struct {
	Sum      Branch // sum of all steps below the path; its Step is nil
	Branches []Branch
	All      int                 // number of branches on this level
	Counts   map[BranchState]int // number of branches in each state
	Next     string              // first path on the next page; empty on the last page
	Hidden   int                 // number of branches after this page
}

// A Place sums up the steps at a place of a pipeline, without the steps below it.
type Place struct {
	Path                   string
	Open, Recorded, Failed int    // as in Branch
	First                  string // path of the first step
	Visits                 int    // for a loop or fan-out, highest number of a round or lane plus 1
	Usage                  budget.Usage
}

// ErrNoNode means that the run has no node with the given ID.
var ErrNoNode = errors.New("no such node in the run")

// A Row records the start or the end of a step.
type Row struct {
	Seq     int64        `json:"seq"` // position of the row; positions of later rows are larger, but not necessarily consecutive
	Path    string       `json:"path"`
	Kind    string       `json:"kind"`
	Name    string       `json:"name"`
	Time    time.Time    `json:"time"`
	Ended   bool         `json:"ended"`          // true for the end of the step, false for its start
	From    string       `json:"from,omitempty"` // From and the fields below it are as in Step, and are set only if Ended
	Type    string       `json:"type,omitempty"`
	Node    dag.ID       `json:"node,omitzero"`
	Failure string       `json:"failure,omitempty"`
	Reason  string       `json:"reason,omitempty"`
	Usage   budget.Usage `json:"usage,omitzero"` // usage of this attempt only
}

// NodeInfo is a node as a journal stores it.
type NodeInfo struct {
	ID      dag.ID            `json:"id"`
	Type    string            `json:"type"`
	Parents []dag.ID          `json:"parents,omitempty"`
	Content json.RawMessage   `json:"content"`
	Meta    map[string]string `json:"meta,omitempty"`
	Time    time.Time         `json:"time,omitzero"`
}

// NodesOf yields the nodes of d in order. If err is not nil, it yields only a zero NodeInfo and err.
func NodesOf(d dag.DAG, err error) iter.Seq2[NodeInfo, error] {
	return func(yield func(NodeInfo, error) bool) {
		if err != nil {
			yield(NodeInfo{}, err)
			return
		}
		for n := range d.Nodes() {
			if !yield(infoOf(n), nil) {
				return
			}
		}
	}
}

func infoOf(n *dag.Node) NodeInfo {
	info := NodeInfo{ID: n.ID(), Type: n.Type(), Content: n.Content(), Meta: n.Meta(), Time: n.Time()}
	for _, p := range n.Parents() {
		info.Parents = append(info.Parents, p.ID())
	}
	return info
}

// A Branch sums up the steps at a path and below it.
type Branch struct {
	Path     string       `json:"path"`
	Step     *Step        `json:"step,omitempty"`   // the step at the path itself, or nil
	Below    int          `json:"below"`            // number of steps below the path
	Recorded int          `json:"recorded"`         // number of steps with a result, at the path and below
	Open     int          `json:"open"`             // number of steps without a result
	Failed   int          `json:"failed"`           // number of steps whose result is a failure
	Started  time.Time    `json:"started,omitzero"` // start of the first step
	Ended    time.Time    `json:"ended,omitzero"`   // end of the last step, if none is open
	Usage    budget.Usage `json:"usage,omitzero"`   // usage of all steps
}

// A BranchState is the state of a branch.
type BranchState string

// The states of a branch.
const (
	BranchDone   BranchState = "done"
	BranchOpen   BranchState = "open"   // at least one step has no result
	BranchPartly BranchState = "partly" // some steps failed
	BranchFailed BranchState = "failed" // the step at the path failed, or every step below it did
)

// State returns the state of a branch.
func (b Branch) State() BranchState {
	switch {
	case b.Step != nil && b.Step.Failure != "":
		return BranchFailed
	case b.Open > 0:
		return BranchOpen
	case b.Failed == 0:
		return BranchDone
	case b.Failed == b.Recorded:
		return BranchFailed
	}
	return BranchPartly
}

// OutlineOf returns the outline of a run with the given steps, which must be in the order in which they started.
func OutlineOf(steps []Step) Outline {
	o := &stepsOutline{levels: map[string][]*Branch{}}
	branches, newest := map[string]*Branch{"": {}}, newest(steps)
	for i, s := range steps {
		if s.Kind == step.Value {
			continue
		}
		current := newest[s.place()] == i
		if current {
			o.steps = append(o.steps, s)
		} else {
			o.superseded = append(o.superseded, s)
		}
		branches[""].add(s, current)
		for up := ""; up != s.Path; {
			at := below(up, s.Path)
			b := branches[at]
			if b == nil {
				b = &Branch{Path: at}
				branches[at], o.levels[up] = b, append(o.levels[up], b)
			}
			b.add(s, current)
			up = at
		}
	}
	o.branches = branches
	return o
}

// stepsOutline is an Outline that is built from steps in a single pass. Reading a level then takes time proportional to its number
// of branches.
type stepsOutline struct {
	steps      []Step
	superseded []Step               // steps that were repeated later; only their cost counts
	branches   map[string]*Branch   // by path
	levels     map[string][]*Branch // branches directly below each path
}

// Level implements [Outline].
func (o *stepsOutline) Level(_ context.Context, path string, p Page) (Level, error) {
	if all := []BranchState{BranchDone, BranchOpen, BranchPartly, BranchFailed}; p.Only != "" && !slices.Contains(all, p.Only) {
		return Level{}, fmt.Errorf("state %q: want one of %q", p.Only, all)
	}
	l := Level{Sum: Branch{Path: path}, All: len(o.levels[path]), Counts: map[BranchState]int{}}
	if b := o.branches[path]; b != nil {
		l.Sum = *b
		l.Sum.Step = nil
	}
	var all []*Branch
	for _, b := range o.levels[path] {
		state := b.State()
		l.Counts[state]++
		if p.Only == "" || state == p.Only {
			all = append(all, b)
		}
	}
	all = all[max(slices.IndexFunc(all, func(b *Branch) bool { return b.Path == p.From }), 0):]
	if size := p.Size(); len(all) > size {
		l.Next, l.Hidden, all = all[size].Path, len(all)-size, all[:size]
	}
	for _, b := range all {
		l.Branches = append(l.Branches, *b)
	}
	return l, nil
}

// Places implements [Outline].
func (o *stepsOutline) Places(context.Context) (out []Place, err error) {
	index := map[string]int{}
	place := func(path string) *Place {
		at := address.Place(path)
		i, known := index[at]
		if !known {
			i = len(out)
			index[at], out = i, append(out, Place{Path: at})
		}
		return &out[i]
	}
	for _, s := range o.steps {
		end := 0
		for segment := range address.Segments(s.Path) {
			if end += len(segment); address.Parse(segment).Number() >= 0 {
				p := place(s.Path[:end])
				p.Visits = max(p.Visits, address.Parse(segment).Number()+1)
			}
			end++
		}
		p := place(s.Path)
		p.First = cmp.Or(p.First, s.Path)
		p.Usage = p.Usage.Add(s.Usage)
		switch {
		case !s.Recorded:
			p.Open++
		case s.Failure != "":
			p.Failed++
			fallthrough
		default:
			p.Recorded++
		}
	}
	for _, s := range o.superseded {
		p := place(s.Path)
		p.Usage = p.Usage.Add(s.Usage)
	}
	return out, nil
}

// add adds a step at the path of the branch, or below it, to the sums of b. If current is false, only the step's cost is added.
func (b *Branch) add(s Step, current bool) {
	b.Usage = b.Usage.Add(s.Usage)
	if !current {
		return
	}
	if s.Path == b.Path {
		own := s
		b.Step = &own
	} else {
		b.Below++
	}
	switch {
	case !s.Recorded:
		b.Open++
	case s.Failure != "":
		b.Failed++
		fallthrough
	default:
		b.Recorded++
	}
	if b.Started.IsZero() || s.Started.Before(b.Started) {
		b.Started = s.Started
	}
	if s.Ended.After(b.Ended) {
		b.Ended = s.Ended
	}
}

// below returns the path one level below path that is equal to inner or contains it. It returns "" if inner is not below path.
func below(path, inner string) string {
	rest, ok := strings.CutPrefix(inner, path)
	if !ok || rest == "" || path != "" && strings.IndexByte("/[~", rest[0]) < 0 {
		return ""
	}
	end := strings.IndexAny(rest[1:], "/[~")
	if end < 0 {
		return inner
	}
	return path + rest[:1+end]
}
