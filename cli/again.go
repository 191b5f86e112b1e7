package cli

import (
	"context"
	"fmt"
	"slices"

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
		var repeated []journal.Step
		calls := 0
		for _, st := range steps {
			if st.Recorded && st.Kind != step.Value && (st.Path == path || address.Within(st.Path, path)) {
				repeated = append(repeated, st)
				if view.IsToolCall(st) {
					calls++
				}
			}
		}
		n, cost := journal.Total(repeated)
		said := fmt.Sprintf("%s will be run again: %s, including %s, and every later step that reads a changed result", address.Readable(path), text.Plural(n, "recorded step"), text.Plural(calls, "tool call"))
		if c := total(cost); c != "" {
			said += "; they have cost " + c
		}
		if len(line) < maxLost {
			a.complain("%s", said)
		}
		line = append(line, "--again="+path)
	}
	if more := len(paths) - maxLost; more > 0 {
		a.complain("… and %s more", text.Plural(more, "lane"))
	}
	return line, nil
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
