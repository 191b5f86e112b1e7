package journal

import (
	"context"
	"iter"
)

// Current returns the current steps of a run, in the order of steps. If a step was repeated (see Options.Again), only its newest
// repetition is current. Older ones count only toward the run's cost.
func Current(steps []Step) []Step {
	newest := newest(steps)
	out := make([]Step, 0, len(newest))
	for i, s := range steps {
		if newest[s.place()] == i {
			out = append(out, s)
		}
	}
	return out
}

// newest returns the index of each current step in steps, by its place.
func newest(steps []Step) map[place]int {
	newest := make(map[place]int, len(steps))
	for i, s := range steps {
		newest[s.place()] = i
	}
	return newest
}

// place identifies a current step of a run. Decisions of glue have the path of their ashlar, so kind and name tell them apart.
type place struct{ path, kind, name string }

func (s Step) place() place { return place{s.Path, s.Kind, s.Name} }

// current yields the current steps of a run. It reads all steps into memory first if some have been repeated.
func (o *opened) current(ctx context.Context, j Journal) iter.Seq2[Step, error] {
	if !o.again {
		return j.EachStep(ctx, o.id)
	}
	return func(yield func(Step, error) bool) {
		steps, err := j.Steps(ctx, o.id)
		if err != nil {
			yield(Step{}, err)
			return
		}
		for _, s := range Current(steps) {
			if !yield(s, nil) {
				return
			}
		}
	}
}
