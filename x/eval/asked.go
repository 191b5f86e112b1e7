package eval

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/fault"
	"github.com/stonelayer/stone/internal/text"
)

// asked is the number of trials in which the pipeline's calls called a capability.
type asked struct {
	Cap    string  `json:"cap/id"`
	Trials int     `json:"trials"` // trials that called the capability
	Share  float64 `json:"share"`  // share of all trials
}

// askedBy returns the sorted ids of the capabilities that were called between start and out. If a failed call has ended the
// pipeline, the capabilities of this call are included.
func askedBy(start, out dag.DAG) (ids []string) {
	note := func(r *call.Record) {
		if r != nil {
			for _, a := range r.Tried {
				ids = append(ids, a.Cap)
			}
		}
	}
	for _, n := range out.Within(nil).Beyond(start.Within(nil)) {
		note(call.RecordOf(n))
	}
	if out.InFlight() {
		note(call.RecordIn(fault.Meta(out.Cause())))
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// asked returns, for each capability, the number of trials that called it, largest first.
func (t *tally) asked() (all []asked) {
	count, trials := map[string]int{}, 0
	for _, costs := range t.costs {
		trials += len(costs)
		for _, c := range costs {
			for _, id := range c.Asked {
				count[id]++
			}
		}
	}
	for id, n := range count {
		all = append(all, asked{id, n, float64(n) / float64(trials)})
	}
	slices.SortFunc(all, func(a, b asked) int { return cmp.Or(b.Trials-a.Trials, cmp.Compare(a.Cap, b.Cap)) })
	return all
}

// shareOf returns the share of the trials that called a capability.
func shareOf(trials []cost, id string) (s float64) {
	for _, c := range trials {
		if slices.Contains(c.Asked, id) {
			s += 1 / float64(len(trials))
		}
	}
	return s
}

// asked returns a table of the capabilities if there is more than one.
func (r Report) asked() (all []part) {
	if len(r.Asked) < 2 {
		return nil
	}
	p := part{title: "Capabilities", head: []string{"asked", "trials", "share"}}
	for _, a := range r.Asked {
		p.rows = append(p.rows, []string{text.Line(a.Cap), fmt.Sprint(a.Trials), percent(a.Share)})
	}
	return []part{p}
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }
