package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// again returns the command-line flags with which the named steps and lanes are repeated. If lost is true, they include the lost
// lanes. It prints these steps with their earlier cost.
func (a *app) again(ctx context.Context, s *store, info journal.RunInfo, names []string, lost bool) (line []string, err error) {
	if len(names) == 0 && !lost {
		return nil, nil
	}
	steps, err := s.Steps(ctx, info.ID)
	if err != nil {
		return nil, failed("%w", err)
	}
	steps = journal.Current(steps)
	lanes, err := view.LostLanes(ctx, s, info.ID)
	if err != nil {
		return nil, failed("%w", err)
	}
	var paths []string
	for _, name := range names {
		path, err := placeAgain(info.ID, steps, lanes, labelsOf(ctx, s, info.ID), name)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	if lost && len(lanes) == 0 {
		return nil, fmt.Errorf("--lost: run %s has no lost lanes", info.ID)
	}
	for _, l := range lanes {
		if lost && !slices.Contains(paths, l.Path) {
			paths = append(paths, l.Path)
		}
	}
	for _, path := range paths {
		if len(line) < maxLost {
			a.complain("%s", repeats(steps, info.Shape, path))
		}
		line = append(line, "--again="+path)
	}
	if more := len(paths) - maxLost; more > 0 {
		a.complain("… and %s more", text.Plural(more, "lane"))
	}
	return line, nil
}

// repeats says what is repeated with the step or lane at path, and which later steps may be.
func repeats(steps []journal.Step, shape []journal.Part, path string) string {
	var repeated, later []journal.Step
	calls := 0
	for _, st := range steps {
		switch {
		case !st.Recorded || st.Kind == step.Value:
		case st.Path == path || address.Within(st.Path, path):
			repeated = append(repeated, st)
			if view.IsToolCall(st) {
				calls++
			}
		case len(repeated) > 0 && !address.Within(path, st.Path) && !apart(shape, path, st.Path):
			later = append(later, st)
		}
	}
	with := func(said string, cost budget.Total) string {
		if c := total(cost); c != "" {
			said += ", which cost " + c
		}
		return said
	}
	n, cost := journal.Total(repeated)
	said := with(fmt.Sprintf("%s will be run again: %s, including %s", address.Readable(path), text.Plural(n, "recorded step"), text.Plural(calls, "tool call")), cost)
	if n, cost = journal.Total(later); n == 0 {
		return said
	}
	return with(said+"; if what they read changes, also up to "+text.Plural(n, "later step"), cost)
}

// apart reports whether two paths are in different lanes of a fan-out.
func apart(shape []journal.Part, a, b string) bool {
	for up := a; up != ""; up = address.Parent(up) {
		fan := up[:max(strings.LastIndexByte(up, '['), 0)]
		if fan == "" || b == up || address.Within(b, up) || !address.Within(b, fan) {
			continue
		}
		place := address.Place(up)
		if slices.ContainsFunc(shape, func(p journal.Part) bool { return p.Path == place && (p.Form == "map" || p.Form == "parallel") }) {
			return true
		}
	}
	return false
}

// placeAgain returns the address of a recorded step, of a lane, or of the lost lane with the given label.
func placeAgain(run string, steps []journal.Step, lost []view.LostLane, labelled func(string) string, name string) (string, error) {
	var fits []string
	for _, l := range lost {
		if l.Label == name {
			fits = append(fits, l.Path)
		}
	}
	switch len(fits) {
	case 0:
		return spotOf(run, steps, labelled, name)
	case 1:
		return fits[0], nil
	}
	return "", ambiguous(run, steps, name, fits)
}
