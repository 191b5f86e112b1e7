package page

import (
	"context"
	"slices"
	"strings"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
)

// A work is a step in one of the two runs that are compared, with its input, output and cost.
type work struct {
	*journal.Step        // nil if the run did not execute it
	How           string // the capabilities called and the result, or the actions of an agent; "" for code
	Usage         budget.Usage
}

// works is a step as executed in both runs.
type works struct {
	Path string
	A, B work
}

// Sides returns the work of each run.
func (w works) Sides() []work { return []work{w.A, w.B} }

// differ reports whether the runs called different capabilities in the step, failed differently, or had different costs. Code
// that only one of the runs executed is listed among the results that differ.
func (w works) differ() bool {
	if w.A.Step == nil || w.B.Step == nil {
		return w.A.How != "" || w.B.How != ""
	}
	return w.A.How != w.B.How || w.A.Failure != w.B.Failure || w.A.Usage != w.B.Usage
}

// worksOf pairs the steps of two runs and returns those that differ (see differ), in the order of the first run. Unread reports
// that a run has too many steps to read all of them.
func worksOf(ctx context.Context, v View, a, b journal.RunInfo, under string) (out []works, unread bool, err error) {
	one, err := doneIn(ctx, v, a, under)
	if err != nil {
		return nil, false, err
	}
	other, err := doneIn(ctx, v, b, under)
	if err != nil {
		return nil, false, err
	}
	for _, path := range one.order {
		if w := (works{path, one.by[path], other.by[path]}); w.differ() {
			out = append(out, w)
		}
	}
	for _, path := range other.order {
		if w := (works{Path: path, B: other.by[path]}); one.by[path].Step == nil && w.differ() {
			out = append(out, w)
		}
	}
	return out, one.unread || other.unread, nil
}

// done holds the works of a run's leaves, by path.
type done struct {
	order  []string
	by     map[string]work
	unread bool
}

func doneIn(ctx context.Context, v View, info journal.RunInfo, under string) (*done, error) {
	read, err := view.Read(ctx, v.Journal, info, false)
	if err != nil {
		return nil, err
	}
	d := &done{by: map[string]work{}}
	if info.Steps > view.Small || read.Large {
		d.unread = true
		return d, nil
	}
	below := map[string]budget.Usage{}
	for i := range read.All {
		s := &read.All[i]
		above := address.Parent(s.Path)
		below[above] = below[above].Add(s.Usage)
		if s.Kind == "leaf" && (under == "" || s.Path == under || address.Within(s.Path, under)) {
			d.order, d.by[s.Path] = append(d.order, s.Path), work{Step: s, Usage: s.Usage}
		}
	}
	const most = 1000 // maximum number of calls and agents examined
	looked := 0
	for _, path := range d.order {
		used, some := below[path]
		if !some {
			continue // the step is code
		}
		w := d.by[path]
		w.Usage = w.Usage.Add(used)
		if d.by[path] = w; looked == most {
			d.unread = true
			continue
		}
		looked++
		if w.How, err = howOf(ctx, read, path); err != nil {
			return nil, err
		}
		d.by[path] = w
	}
	return d, nil
}

// howOf describes how a call or an agent worked, step by step.
func howOf(ctx context.Context, read *view.Run, path string) (string, error) {
	c, err := read.Call(ctx, path)
	if err != nil {
		return "", err
	}
	var did []string
	if c != nil {
		for i, name := range view.AttemptSteps(c) {
			state := string(view.Verdict(c, c.Tried[i]))
			did = append(did, address.Readable(name)+" "+view.Mark(state))
		}
		between := ", " // the capabilities are called concurrently
		if c.Strategy == call.Cascade {
			between = " → "
		}
		return strings.TrimPrefix(c.Strategy+": "+way(did, between), ": "), nil
	}
	below, err := read.Below(ctx, path)
	if err != nil {
		return "", err
	}
	for _, b := range below.Branches {
		if b.Step == nil || !view.IsToolCall(*b.Step) {
			continue
		}
		row, err := read.Row(ctx, b)
		if err != nil {
			return "", err
		}
		if row.Did == "" {
			continue
		}
		if row.State == view.Failed {
			row.Did += " " + view.Mark(string(view.Failed))
		}
		did = append(did, row.Did)
	}
	return way(did, " → "), nil
}

// way joins the descriptions of steps.
func way(did []string, between string) string {
	const most = 12
	if n := len(did) - most; n > 0 {
		did = append(slices.Clip(did[:most]), "… "+count(n)+" more")
	}
	return strings.Join(did, between)
}

// openingOf reads the prompt of the agent at a path. It returns "" if there is none.
func openingOf(ctx context.Context, v View, run, path string) (string, error) {
	opening, err := view.OpeningOf(ctx, v.Journal, run, path)
	if opening == nil {
		return "", err
	}
	var text strings.Builder
	text.WriteString(opening.System)
	for _, m := range opening.Messages {
		text.WriteString("\n\n" + string(m.Role) + ":\n" + m.Text())
	}
	left := allowance(shownBytes)
	return left.take(strings.TrimSpace(text.String())), nil
}
