package journal

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/step"
)

// A Difference is a leaf that differs between two runs.
type Difference struct {
	Path    string   `json:"path"`
	Name    string   `json:"name"`
	Type    string   `json:"type,omitempty"`    // of its node
	A       dag.ID   `json:"a,omitzero"`        // the node in the first run, zero if it has none
	B       dag.ID   `json:"b,omitzero"`        // and in the second
	Why     []string `json:"why"`               // in words
	Follows bool     `json:"follows,omitempty"` // differs only because its input does
}

// Diff compares two runs leaf by leaf and explains each difference: another version, or
// another input. It compares contents, not ids, which depend on the whole lineage. Equal
// leaves are left out: their records have equal sums, and their contents are not read. The differences are in the order of the first run, followed by the
// leaves that only the second run has. It keeps about 100 bytes for a leaf and 150 for a
// node of each run, and all differences.
func Diff(ctx context.Context, j Journal, a, b string) ([]Difference, error) {
	one, err := openRun(ctx, j, a)
	if err != nil {
		return nil, err
	}
	other, err := openRun(ctx, j, b)
	if err != nil {
		return nil, err
	}
	ours, theirs, err := unequal(ctx, j, one, other)
	if err != nil || len(ours)+len(theirs) == 0 {
		return nil, err
	}
	at := make(map[string]Step, len(theirs))
	for _, t := range theirs {
		at[t.Path] = t
	}
	var both [2][]Step
	for _, s := range ours {
		if t, is := at[s.Path]; is {
			both[0], both[1] = append(both[0], s), append(both[1], t)
		}
	}
	if len(both[0]) > 0 {
		for i, r := range []*opened{one, other} {
			if err := r.readNodes(ctx, j, both[i]); err != nil {
				return nil, err
			}
		}
	}
	var out []Difference
	for _, s := range ours {
		t, is := at[s.Path]
		delete(at, s.Path)
		switch {
		case !is:
			out = append(out, Difference{Path: s.Path, Name: s.Name, Type: s.Type, A: s.Node, Why: []string{missing(s, one, other)}})
		case !same(one.node(s), other.node(t)):
			d := Difference{Path: s.Path, Name: s.Name, Type: s.Type, A: s.Node, B: t.Node}
			d.Why, d.Follows = reasons(s, t, one, other)
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

// brief is the first half of a SHA-256. It saves memory, since a run may have millions of leaves.
type brief [16]byte

func briefOf(text string) brief {
	sum := sha256.Sum256([]byte(text))
	return brief(sum[:16])
}

// unequal returns the leaves of two runs that are in one of them alone, or have different sums.
func unequal(ctx context.Context, j Journal, one, other *opened) (ours, theirs []Step, err error) {
	of := func(s Step) brief { return briefOf(s.Path + "\x00" + string(s.Sum[:])) }
	left := make(map[brief]bool, other.steps) // the leaves of the second run, without those that the first one has
	for s, err := range j.EachStep(ctx, other.id) {
		if err != nil {
			return nil, nil, err
		}
		if isResult(s) {
			left[of(s)] = true
		}
	}
	for s, err := range j.EachStep(ctx, one.id) {
		if err != nil {
			return nil, nil, err
		}
		if !isResult(s) {
			continue
		}
		s.Meta = nil
		if equal := of(s); left[equal] {
			delete(left, equal)
		} else {
			ours = append(ours, s)
		}
	}
	if len(left) == 0 {
		return ours, nil, nil
	}
	for s, err := range j.EachStep(ctx, other.id) {
		if err != nil {
			return nil, nil, err
		}
		if isResult(s) && left[of(s)] {
			s.Meta = nil
			theirs = append(theirs, s)
		}
	}
	return ours, theirs, nil
}

func isResult(s Step) bool { return s.Kind == "leaf" && s.Recorded }

// opened is one of the two runs.
type opened struct {
	id    string
	steps int
	parts map[string]Part

	nodes []kin            // parents first
	index map[brief]uint32 // of nodes, by id
	bySum map[dag.ID]*kin  // by the sum of a result
	types map[string]int32
	all   map[string][]*kin // by type, for the reads that want all
}

// kin is what is compared of a node.
type kin struct {
	typ     int32
	own     brief // of type and content
	parents []uint32
}

func openRun(ctx context.Context, j Journal, prefix string) (*opened, error) {
	info, err := j.Find(ctx, prefix)
	if err != nil {
		return nil, err
	}
	return &opened{id: info.ID, steps: info.Steps, parts: index(info.Shape)}, nil
}

// readNodes reads what is compared of the nodes of a run. The node of a reused result, and of one in a Flow, is found by its
// content, since the run has it under another id.
func (o *opened) readNodes(ctx context.Context, j Journal, of []Step) error {
	o.index, o.nodes = make(map[brief]uint32, o.steps), make([]kin, 0, o.steps)
	o.bySum, o.types, o.all = map[dag.ID]*kin{}, map[string]int32{}, map[string][]*kin{}
	for _, s := range of {
		o.bySum[s.Sum] = nil
	}
	sums := map[dag.ID]uint32{}
	for n, err := range j.EachNode(ctx, o.id) {
		if err != nil {
			return err
		}
		at := uint32(len(o.nodes))
		o.index[brief(n.ID[:16])] = at
		sum := step.Record{Type: n.Type, Content: n.Content}.Seal()
		if _, wanted := o.bySum[sum]; wanted {
			sums[sum] = at
		}
		typ, known := o.types[n.Type]
		if !known {
			typ = int32(len(o.types))
			o.types[n.Type] = typ
		}
		k := kin{typ: typ, own: briefOf(n.Type + "\x00" + dag.OwnContent(string(n.Content), n.Meta))}
		for _, p := range n.Parents {
			k.parents = append(k.parents, o.index[brief(p[:16])])
		}
		o.nodes = append(o.nodes, k)
	}
	for sum, at := range sums {
		o.bySum[sum] = &o.nodes[at]
	}
	return nil
}

// same reports whether two nodes have the same result. The transcript of an agent, which
// contains random ids, is ignored.
func same(a, b *kin) bool { return a != nil && b != nil && a.own == b.own }

// node returns the node of a step.
func (o *opened) node(s Step) *kin {
	if at, known := o.index[brief(s.Node[:16])]; known {
		return &o.nodes[at]
	}
	return o.bySum[s.Sum]
}

// missing explains why only one of two runs has a step.
func missing(s Step, there, not *opened) string {
	if _, known := not.parts[address.Place(s.Path)]; !known && len(not.parts) > 0 {
		return fmt.Sprintf("the pipeline of run %s has no such step", not.id)
	}
	return fmt.Sprintf("run %s did not take this path", not.id)
}

// reasons explains why a step differs between two runs. Follows is true if only its input
// differs.
func reasons(s, t Step, one, other *opened) (why []string, follows bool) {
	p, q := one.parts[address.Place(s.Path)], other.parts[address.Place(t.Path)]
	why = differences(p, q)
	if len(why) == 0 && p.Print != q.Print {
		why = append(why, "its version, or its bounds, changed")
	}
	changed := len(why)
	a, b := one.node(s), other.node(t)
	if a != nil && b != nil {
		for _, r := range q.Reads {
			if !slices.EqualFunc(one.read(r, a), other.read(r, b), same) {
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

// read returns the input of the step that made n for the query: the nearest node of a
// type, all of them in the run, or the latest node.
func (o *opened) read(r Read, n *kin) (found []*kin) {
	typ, known := o.types[r.Type]
	switch {
	case r.Type == "":
		for _, p := range n.parents {
			found = append(found, &o.nodes[p])
		}
		return found
	case !known:
		return nil
	case r.Nearest:
		for len(n.parents) > 0 {
			if n = &o.nodes[n.parents[0]]; n.typ == typ {
				return []*kin{n}
			}
		}
		return nil
	}
	if _, read := o.all[r.Type]; !read {
		for i := range o.nodes {
			if o.nodes[i].typ == typ {
				found = append(found, &o.nodes[i])
			}
		}
		// EachNode has no order that two runs share.
		slices.SortFunc(found, func(a, b *kin) int { return bytes.Compare(a.own[:], b.own[:]) })
		o.all[r.Type] = found
	}
	return o.all[r.Type]
}
