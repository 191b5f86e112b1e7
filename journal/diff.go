package journal

import (
	"context"
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
// leaves are left out. The differences are in the order of the first run, followed by the
// leaves that only the second run has.
func Diff(ctx context.Context, j Journal, a, b string) ([]Difference, error) {
	one, err := openRun(ctx, j, a)
	if err != nil {
		return nil, err
	}
	other, err := openRun(ctx, j, b)
	if err != nil {
		return nil, err
	}
	var out []Difference
	for _, s := range one.order {
		t, both := other.leaves[s.Path]
		switch {
		case !both:
			out = append(out, Difference{Path: s.Path, Name: s.Name, Type: s.Type, A: s.Node, Why: []string{missing(s, one, other)}})
		case s.Sum != t.Sum && !same(one.node(s), other.node(t)):
			d := Difference{Path: s.Path, Name: s.Name, Type: s.Type, A: s.Node, B: t.Node}
			d.Why, d.Follows = reasons(s, t, one, other)
			out = append(out, d)
		}
	}
	for _, t := range other.order {
		if _, both := one.leaves[t.Path]; !both {
			out = append(out, Difference{Path: t.Path, Name: t.Name, Type: t.Type, B: t.Node, Why: []string{missing(t, other, one)}})
		}
	}
	return out, nil
}

// opened is one of the two runs.
type opened struct {
	id     string
	order  []Step // leaves with a result
	leaves map[string]Step
	parts  map[string]Part
	dag    dag.DAG
	nodes  map[dag.ID]*dag.Node // by id, and by the sum of a reused record
}

func openRun(ctx context.Context, j Journal, prefix string) (*opened, error) {
	info, err := j.Find(ctx, prefix)
	if err != nil {
		return nil, err
	}
	o := &opened{id: info.ID, leaves: map[string]Step{}, parts: index(info.Shape), nodes: map[dag.ID]*dag.Node{}}
	steps, err := j.Steps(ctx, info.ID)
	if err != nil {
		return nil, err
	}
	for _, s := range steps {
		if s.Kind == "leaf" && s.Recorded {
			o.order, o.leaves[s.Path] = append(o.order, s), s
		}
	}
	if o.dag, err = j.DAG(ctx, info.ID); err != nil {
		return nil, err
	}
	for n := range o.dag.Nodes() {
		o.nodes[n.ID()] = n
		o.nodes[step.Record{Type: n.Type(), Content: n.Content()}.Seal()] = n
	}
	return o, nil
}

// same reports whether two nodes have the same result. The transcript of an agent, which
// contains random ids, is ignored.
func same(a, b *dag.Node) bool {
	return a != nil && b != nil && a.Type() == b.Type() && a.Own() == b.Own()
}

// node returns the node of a step. The node of a reused result is found by its content,
// since its id belongs to another run.
func (o *opened) node(s Step) *dag.Node {
	if n := o.nodes[s.Node]; n != nil {
		return n
	}
	return o.nodes[s.Sum]
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
			if !alike(one.read(r, a), other.read(r, b)) {
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
func (o *opened) read(r Read, n *dag.Node) []*dag.Node {
	if r.Type == "" {
		return n.Parents()
	}
	if !r.Nearest {
		all, err := o.dag.All(r.Type)
		if err != nil { // a DAG that is read from a journal has no limits
			return nil
		}
		return all
	}
	for n = n.Parent(); n != nil; n = n.Parent() {
		if n.Type() == r.Type {
			return []*dag.Node{n}
		}
	}
	return nil
}

func alike(a, b []*dag.Node) bool {
	return slices.EqualFunc(a, b, same)
}
