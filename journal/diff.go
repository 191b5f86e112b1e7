package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/record"
	"github.com/stonelayer/stone/step"
)

// A Difference describes a leaf that differs between two runs. If the inputs of the runs differ, there is also a Difference with
// the path "input".
type Difference struct {
	Path    string   `json:"path"`
	Name    string   `json:"name"`
	Type    string   `json:"type,omitempty"`    // type of the leaf's node
	A       dag.ID   `json:"a,omitzero"`        // node in the first run; zero if there is none
	B       dag.ID   `json:"b,omitzero"`        // node in the second run; zero if there is none
	Why     []string `json:"why"`               // explanations for people
	Follows bool     `json:"follows,omitempty"` // the leaf differs only because its input differs
}

// Diff compares two runs leaf by leaf and explains each difference, such as a different version or a different input. It compares
// contents rather than IDs, because an ID depends on all ancestors of the node. If the records of a leaf have equal sums, the leaf
// does not differ, and Diff does not read its contents. The result is in the order of the first run's leaves, followed by leaves
// that only the second run has. Besides the differences, Diff keeps about 60 bytes in memory for each leaf, and for each node of
// one run at a time.
func Diff(ctx context.Context, j Journal, a, b string) ([]Difference, error) {
	one, err := openRun(ctx, j, a)
	if err != nil {
		return nil, err
	}
	other, err := openRun(ctx, j, b)
	if err != nil {
		return nil, err
	}
	out, err := inputs(ctx, j, one, other)
	if err != nil {
		return nil, err
	}
	ours, theirs, err := unequal(ctx, j, one, other)
	if err != nil || len(ours)+len(theirs) == 0 {
		return out, err
	}
	at := make(map[string]int, len(theirs))
	for i, t := range theirs {
		at[t.Path] = i
	}
	pairs := make([]int, len(ours)) // indexes into both, or -1
	var both [2][]Step
	for i, s := range ours {
		pairs[i] = -1
		if k, is := at[s.Path]; is {
			pairs[i] = len(both[0])
			both[0], both[1] = append(both[0], s), append(both[1], theirs[k])
			delete(at, s.Path)
		}
	}
	var of [2][]compared
	if len(both[0]) > 0 {
		reads := func(i int) []Read { return other.parts[address.Place(both[1][i].Path)].Reads }
		for i, r := range []*opened{one, other} {
			if of[i], err = r.compared(ctx, j, both[i], reads); err != nil {
				return nil, err
			}
		}
	}
	for i, s := range ours {
		k := pairs[i]
		if k < 0 {
			out = append(out, Difference{Path: s.Path, Name: s.Name, Type: s.Type, A: s.Node, Why: []string{missing(s, one, other)}})
			continue
		}
		if t, a, b := both[1][k], of[0][k], of[1][k]; !a.found || !b.found || a.own != b.own {
			d := Difference{Path: s.Path, Name: s.Name, Type: s.Type, A: s.Node, B: t.Node}
			d.Why, d.Follows = reasons(s, t, one, other, a, b)
			out = append(out, d)
		}
	}
	for _, t := range theirs {
		if _, only := at[t.Path]; only {
			out = append(out, Difference{Path: t.Path, Name: t.Name, Type: t.Type, B: t.Node, Why: []string{missing(t, other, one)}})
		}
	}
	return out, nil
}

// inputs returns the Difference of the inputs of two runs, if any. It compares their nodes type by type.
func inputs(ctx context.Context, j Journal, one, other *opened) ([]Difference, error) {
	if one.input == other.input {
		return nil, nil
	}
	d := Difference{Path: inputStep, Name: inputStep}
	var of [2]map[string][]any
	for i, r := range []*opened{one, other} {
		given, err := Input(ctx, j, RunInfo{ID: r.id, Input: r.input})
		if errors.Is(err, ErrNoInput) {
			d.Why = []string{"the inputs differ, and one of them is not recorded"}
			return []Difference{d}, nil
		} else if err != nil {
			return nil, err
		}
		of[i] = map[string][]any{}
		for n := range given.Nodes() {
			of[i][n.Type()] = append(of[i][n.Type()], n.Text())
		}
	}
	all := maps.Clone(of[0])
	maps.Copy(all, of[1])
	for _, typ := range slices.Sorted(maps.Keys(all)) {
		if a, b := of[0][typ], of[1][typ]; !slices.Equal(a, b) {
			from, to := apart(alone(a), alone(b))
			d.Why = append(d.Why, fmt.Sprintf("%q changed from %s to %s", typ, from, to))
		}
	}
	return []Difference{d}, nil
}

// alone returns nil if there are no values, the value itself if there is exactly one, and otherwise values.
func alone(values []any) any {
	switch len(values) {
	case 0:
		return nil
	case 1:
		return values[0]
	}
	return values
}

func halfOf(text string) record.Half { return record.HalfOf(sha256.Sum256([]byte(text))) }

// unequal returns the leaves that only one of the runs has, or whose sums differ. It reads both runs in parallel, so it keeps few
// leaves in memory: a leaf that is in both runs is usually at about the same position in both.
func unequal(ctx context.Context, j Journal, one, other *opened) (ours, theirs []Step, err error) {
	type numbered struct {
		Step
		n int
	}
	var next [2]func() (Step, error, bool)
	var left [2]map[record.Half]*numbered // leaves of one run only; nil for a leaf found in both
	for i, r := range []*opened{one, other} {
		pull, stop := iter.Pull2(r.current(ctx, j))
		defer stop()
		next[i], left[i] = pull, map[record.Half]*numbered{}
	}
	for n, open := 0, true; open; n++ {
		open = false
		for i := range next {
			s, err, more := next[i]()
			if err != nil {
				return nil, nil, err
			}
			if open = open || more; !more || s.Kind != "leaf" || !s.Recorded {
				continue
			}
			s.Meta = nil
			h := halfOf(s.Path + "\x00" + string(s.Sum[:]))
			if _, equal := left[1-i][h]; equal {
				left[1-i][h] = nil
			} else if _, again := left[i][h]; !again {
				left[i][h] = &numbered{s, n}
			}
		}
	}
	var out [2][]Step
	for i, all := range left {
		maps.DeleteFunc(all, func(_ record.Half, s *numbered) bool { return s == nil })
		for _, s := range slices.SortedFunc(maps.Values(all), func(a, b *numbered) int { return a.n - b.n }) {
			out[i] = append(out[i], s.Step)
		}
	}
	return out[0], out[1], nil
}

// opened is one of the two runs that Diff compares.
type opened struct {
	id    string
	input dag.ID
	steps int
	again bool // the run has repeated steps
	parts map[string]Part
}

func openRun(ctx context.Context, j Journal, prefix string) (*opened, error) {
	info, err := j.Find(ctx, prefix)
	if err != nil {
		return nil, err
	}
	return &opened{id: info.ID, input: info.Input, again: len(info.Again) > 0, steps: min(max(info.Steps, 0), 1<<24), parts: index(info.Shape)}, nil
}

// compared contains hashes for the parts of a node that Diff compares.
type compared struct {
	found bool
	own   record.Half   // hash of type and content, without an agent's transcript, which contains random IDs
	reads []record.Half // hashes of the nodes that the step reads
}

// compared returns, for each step, the hashes that Diff compares. It finds the node of a step by its content, because the node of a
// reused result, or of a result in a Flow, has a different ID in the run.
func (o *opened) compared(ctx context.Context, j Journal, of []Step, reads func(i int) []Read) ([]compared, error) {
	wanted := make(map[dag.ID]int, len(of)) // indexes of nodes by sum, or -1 if not found
	for _, s := range of {
		wanted[s.Sum] = -1
	}
	nodes, err := o.nodes(ctx, j, wanted)
	if err != nil {
		return nil, err
	}
	out := make([]compared, len(of))
	for i, s := range of {
		at := wanted[s.Sum]
		if n, known := nodes.index.Get(record.HalfOf(s.Node)); known {
			at = int(n)
		}
		if at < 0 {
			continue
		}
		out[i] = compared{found: true, own: nodes.own[at]}
		for _, r := range reads(i) {
			out[i].reads = append(out[i].reads, nodes.read(r, uint32(at)))
		}
	}
	return out, nil
}

// nodes contains the nodes of a run, parents first.
type nodes struct {
	index   *record.Index // node indexes by ID
	own     []record.Half // hashes of type and content
	typ     []uint32
	parents []uint32
	ends    []uint32 // end of each node's list in parents
	types   map[string]uint32
	all     map[string]record.Half // node hashes, by type
}

// nodes reads the nodes of a run. For each sum in wanted, it stores the index of the node with that sum.
func (o *opened) nodes(ctx context.Context, j Journal, wanted map[dag.ID]int) (*nodes, error) {
	n := &nodes{index: record.NewIndex(0), types: map[string]uint32{}, all: map[string]record.Half{}}
	for info, err := range j.EachNode(ctx, o.id) {
		if err != nil {
			return nil, err
		}
		at := len(n.own)
		if at == 0 { // allocated only now, because until the first node EachNode itself needs as much memory
			n.index, n.own = record.NewIndex(o.steps), make([]record.Half, 0, o.steps)
			n.typ, n.ends = make([]uint32, 0, o.steps), make([]uint32, 0, o.steps)
		}
		n.index.Put(record.HalfOf(info.ID), uint32(at))
		sum := step.Record{Type: info.Type, Content: info.Content}.Seal()
		if _, is := wanted[sum]; is {
			wanted[sum] = at
		}
		typ, known := n.types[info.Type]
		if !known {
			typ = uint32(len(n.types))
			n.types[info.Type] = typ
		}
		for _, p := range info.Parents {
			parent, _ := n.index.Get(record.HalfOf(p)) // parents come first
			n.parents = append(n.parents, parent)
		}
		n.own, n.typ = append(n.own, halfOf(info.Type+"\x00"+dag.OwnContent(string(info.Content), info.Meta))), append(n.typ, typ)
		n.ends = append(n.ends, uint32(len(n.parents)))
	}
	return n, nil
}

// missing returns the reason why a step of the run there is missing from the run not.
func missing(s Step, there, not *opened) string {
	if _, known := not.parts[address.Place(s.Path)]; !known && len(not.parts) > 0 {
		return fmt.Sprintf("the pipeline of run %s has no such step", not.id)
	}
	return fmt.Sprintf("run %s did not take this path", not.id)
}

// reasons returns the reasons why a step differs between two runs. The result follows is true if the step differs only because its
// input differs.
func reasons(s, t Step, one, other *opened, a, b compared) (why []string, follows bool) {
	p, q := one.parts[address.Place(s.Path)], other.parts[address.Place(t.Path)]
	why = differences(p, q)
	if len(why) == 0 && p.Print != q.Print {
		why = append(why, "its version, or its bounds, changed")
	}
	changed := len(why)
	if a.found && b.found {
		for i, r := range q.Reads {
			if a.reads[i] != b.reads[i] {
				why = append(why, "it reads another "+r.name())
			}
		}
	}
	follows = changed == 0 && len(why) > 0
	for _, f := range []struct {
		Step
		run string
	}{{s, one.id}, {t, other.id}} {
		if f.Failure != "" {
			follows = false
			why = append(why, fmt.Sprintf("it failed in run %s: %s: %s", f.run, f.Failure, f.Reason))
		}
	}
	if len(why) == 0 {
		why = append(why, "it returned another result for the same input")
	}
	return why, follows
}

func (r Read) name() string {
	if r.Type == "" {
		return "record of what came before"
	}
	return fmt.Sprintf("%q", r.Type)
}

// read returns a digest of the nodes that a step reads with a query: the nearest node of a type, all nodes of a type, or the
// latest nodes.
func (n *nodes) read(r Read, at uint32) record.Half {
	typ, known := n.types[r.Type]
	var found []record.Half
	switch {
	case r.Type == "":
		for _, p := range n.parentsOf(at) {
			found = append(found, n.own[p])
		}
	case !known:
	case r.Nearest:
		for parents := n.parentsOf(at); len(parents) > 0 && found == nil; parents = n.parentsOf(parents[0]) {
			if n.typ[parents[0]] == typ {
				found = append(found, n.own[parents[0]])
			}
		}
	default:
		if all, read := n.all[r.Type]; read {
			return all
		}
		for i, t := range n.typ {
			if t == typ {
				found = append(found, n.own[i])
			}
		}
		slices.SortFunc(found, func(a, b record.Half) int { return bytes.Compare(a[:], b[:]) }) // the order of EachNode differs between runs
		n.all[r.Type] = digest(found)
	}
	return digest(found)
}

func digest(all []record.Half) record.Half {
	h := sha256.New()
	for _, one := range all {
		h.Write(one[:])
	}
	return record.HalfOf(dag.ID(h.Sum(nil)))
}

func (n *nodes) parentsOf(at uint32) []uint32 {
	first := uint32(0)
	if at > 0 {
		first = n.ends[at-1]
	}
	return n.parents[first:n.ends[at]]
}
