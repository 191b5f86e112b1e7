package journal

import (
	"context"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/tree"
)

// Forecast predicts what the fork will do with each recorded step of the original run if it runs the pipeline p with the given
// input. It returns three lists of steps: steps that the fork repeats (anew), steps that it repeats only if their input changes
// (perhaps), and steps whose results it reuses (shared). An empty input means the input of the original run. Forecast compares only
// the types of nodes, so perhaps may contain steps that will not be repeated. It contains the steps that read the items of a Map
// after a changed node, because these items have new IDs even if they are equal. Decisions and values are omitted because they cost
// nothing.
func (f Fork) Forecast(ctx context.Context, j Journal, p stone.Ashlar, input dag.DAG) (anew, perhaps, shared []Step, err error) {
	from, err := j.Find(ctx, f.Run)
	if err != nil {
		return nil, nil, nil, err
	}
	steps, err := j.Steps(ctx, from.ID)
	if err != nil {
		return nil, nil, nil, err
	}
	steps = Current(steps)
	o := foreseen{forked: newForked(f, from, Shape(p), steps), was: index(from.Shape), is: index(Shape(p)), types: map[string]bool{}, of: map[string]int{}, items: map[string]string{}, moved: map[string]bool{}}
	o.collect(tree.Body(p), address.Escape(p.Name()))
	if input.Len() > 0 {
		before, err := Input(ctx, j, from)
		if err != nil {
			return nil, nil, nil, err
		}
		for n := range input.Nodes() {
			if before.Node(n.ID()) == nil {
				o.types[n.Type()] = true
			}
		}
	}
	lists := [...]*[]Step{&shared, &perhaps, &anew}
	for _, s := range steps {
		if s.Kind != "leaf" && s.Kind != "step" {
			continue
		}
		fate := o.fate(s)
		o.of[s.Path] = fate
		if s.Kind == "leaf" && fate > 0 {
			o.types[s.Type] = true
		}
		if s.Recorded && !(f.Set != nil && (s.Path == f.At || address.Within(s.Path, f.At))) {
			*lists[fate] = append(*lists[fate], s)
		}
	}
	return anew, perhaps, shared, nil
}

// foreseen is the state of a call of Forecast.
type foreseen struct {
	*forked
	was, is map[string]Part
	types   map[string]bool   // types whose nodes may be different in the fork
	of      map[string]int    // fates of the steps so far, by path
	items   map[string]string // each Map's item types, by its place
	moved   map[string]bool   // paths of the Maps whose items may have new IDs
}

// collect stores in o.items the item types of each Map in a.
func (o *foreseen) collect(a stone.Ashlar, path string) {
	if a.Form() == "map" {
		o.items[path] = a.ProducesAll()[0].Name()
	}
	for occurrence, c := range tree.Children(a) {
		o.collect(c, address.Child(path, c.Name(), occurrence))
	}
}

// fate returns 0 if the fork reuses the step's result, 1 if it may repeat the step, and 2 if it repeats the step.
func (o *foreseen) fate(s Step) int {
	items := o.itemsMoved(s.Path)
	if !o.shares(s.Path, s.Kind) {
		return 2
	}
	if o.before[[2]string{s.Path, s.Kind}] {
		return 0
	}
	for up := address.Parent(s.Path); up != ""; up = address.Parent(up) {
		if fate, is := o.of[up]; is && fate > 0 && !address.Within(o.At, up) {
			return fate
		}
	}
	if s.Kind != "leaf" {
		return 0
	}
	place := address.Place(s.Path)
	part, known := o.is[place]
	if known && part.Print != o.was[place].Print {
		return 2
	}
	if !known && len(o.types) > 0 {
		return 1
	}
	for _, r := range part.Reads {
		if o.types[r.Type] || items[r.Type] || len(o.types) > 0 && (r.Type == "" || r.Type == dag.Failure.Name()) {
			return 1
		}
	}
	return 0
}

// itemsMoved returns the types of the items, in the lanes around path, that may have new ids. No step makes an item, so there is no
// record that could keep the id that the item has in the origin. The same is true of failures.
func (o *foreseen) itemsMoved(path string) map[string]bool {
	types := map[string]bool{}
	for up := address.Parent(path); up != ""; up = address.Parent(up) {
		item := o.items[address.Place(up)]
		if item == "" {
			continue
		}
		fan := up[:max(strings.LastIndexByte(up, '['), 0)]
		if _, started := o.moved[fan]; !started {
			o.moved[fan] = len(o.types) > 0
		}
		types[item] = types[item] || o.moved[fan]
	}
	return types
}
