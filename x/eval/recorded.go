package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/past"
	"github.com/stonelayer/stone/internal/text"
)

// Keys of Report.Recorded, which counts the following.
const (
	allRequests = "requests"
	newRequests = "new"
	noPerson    = string(past.NeedsPerson) // cases with a question that was not answered
	noEffect    = string(past.NeedsEffect) // cases that needed an effect which is not granted
	noCase      = "left out: "             // runs that were left out; the reason follows
)

// recordedRuns is the name of the recorded runs when they are the baseline.
const recordedRuns = "the recorded runs"

// addRuns adds those recorded runs in the context to the data set that match the pipeline.
func (set *dataset) addRuns(ctx context.Context, runs past.Runs) error {
	set.recorded, set.skipped = map[string]string{}, map[string]int{}
	for c, err := range runs.Each(ctx) {
		if err != nil {
			return err
		}
		if c.Skipped != "" {
			set.skipped[c.Skipped]++
			continue
		}
		cols, err := set.columnsOf(c)
		if err != nil {
			return err
		}
		before := len(set.rows)
		if err := set.add(ctx, numbered{columns: cols}); err != nil {
			set.skipped["not fitting: "+text.Cut(err.Error(), maxReason)]++
		} else if len(set.rows) > before {
			set.recorded[set.rows[before].id()] = c.Run
		}
	}
	if len(set.rows) == 0 {
		return fmt.Errorf("no recorded run is a case: %s", cmp.Or(leftOut(set.skipped, ""), "none was found"))
	}
	return nil
}

// columnsOf returns the columns of the case that a run provides: the run's inputs, its reference answer, and the other columns
// that Data names.
func (set *dataset) columnsOf(c past.Case) (object, error) {
	cols := object{}
	for _, in := range set.inputs {
		switch all := c.Inputs[in.Type.Name()]; {
		case in.Many && all != nil:
			data, err := canon.Append(nil, all)
			if err != nil {
				return nil, err
			}
			cols[in.Type.Name()] = data
		case len(all) > 0:
			cols[in.Type.Name()] = all[len(all)-1]
		}
	}
	names := append([]string{""}, set.labelled()...)
	if set.named {
		names = append(names, set.Expected)
	}
	for _, name := range names {
		data, found, err := c.Column(name)
		if err != nil {
			return nil, err
		}
		if name == "" {
			name = set.Expected // if the run contains no node of that type
		}
		if found {
			cols[name] = data
		}
	}
	return cols, nil
}

// leftOut returns a description of the runs that are not used as cases.
func leftOut(skipped map[string]int, prefix string) string {
	var all []string
	for _, why := range slices.Sorted(maps.Keys(skipped)) {
		if reason, ok := strings.CutPrefix(why, prefix); ok {
			all = append(all, fmt.Sprintf("%d %s", skipped[why], reason))
		}
	}
	return strings.Join(all, ", ")
}

// overRuns checks the configuration of an evaluation of recorded runs. If there is no other baseline, the recorded runs are the
// baseline.
func (e *evaluation) overRuns() error {
	if e.data.recorded == nil {
		return nil
	}
	if e.Trials > 1 {
		return errors.New("recorded runs have one answer to each request: leave out trials")
	}
	if e.Against == nil {
		e.Against, e.prior = &Baseline{name: recordedRuns, scorers: e.scorers(), cases: map[string]baselineCase{}}, 1
	}
	return nil
}

// before returns the answer that the recorded run of a case contains. It counts as trial 0.
func (e *evaluation) before(ctx context.Context, v visit) (got answer, cost paid, err error) {
	got = answer{Case: v.Case}
	r, err := past.RunsOf(ctx).Result(ctx, e.data.recorded[v.Case])
	if err == nil {
		err = got.take(r.DAG.Within(nil), r.Input.Within(nil))
	}
	return got, paid{Usage: budget.Usage{USD: r.USD, OutputTokens: r.Tokens}, Seconds: r.Seconds}, err
}

// runs runs the pipeline on a case. Requests that the recorded run contains are answered from its record.
func (e *evaluation) runs(ctx context.Context, v visit, start dag.DAG) (out dag.DAG, r *past.Run, err error) {
	if id := e.data.recorded[v.Case]; id != "" {
		if r, err = past.RunsOf(ctx).Open(ctx, id); err != nil {
			return out, nil, err
		}
		r.Under = stone.In(ctx).Path()
		ctx = past.With(ctx, r)
	}
	return stone.In(ctx).RunChild(e.Pipeline, start), r, nil
}

// lacks reports whether a case could not be answered from the record of its run.
func (f *failure) lacks() bool {
	return f.Kind == noPerson || f.Kind == noEffect
}

// recordedOf returns the number of requests and the number of requests that could not be answered from records.
func (e *evaluation) recordedOf(t *tally) map[string]int {
	if e.data.recorded == nil {
		return nil
	}
	r := map[string]int{allRequests: 0, newRequests: 0}
	for why, n := range e.data.skipped {
		r[noCase+why] = n
	}
	for i, trials := range t.trials {
		for k, o := range trials {
			r[allRequests] += t.costs[i][k].Past.Requests
			r[newRequests] += t.costs[i][k].Past.New
			if o.Failure == noPerson || o.Failure == noEffect {
				r[o.Failure]++
			}
		}
	}
	return r
}

// recordedNotes returns sentences about the recorded runs for the report.
func (r Report) recordedNotes() (lines []string) {
	was := r.Recorded
	if was == nil {
		return nil
	}
	line := fmt.Sprintf("%d of %s were new: %s", was[newRequests], text.Plural(was[allRequests], "request"), usd(r.Cost.USD))
	if r.Against != nil {
		for _, s := range r.Against.Scores {
			name := ""
			if len(r.Against.Scores) > 1 {
				name = " by " + text.Line(s.Name)
			}
			line += fmt.Sprintf("; %s better%s, %d worse (p = %.2g)", text.Plural(s.Gained, "case"), name, s.Lost, s.P)
		}
	}
	lines = append(lines, line)
	if n := was[noPerson]; n > 0 {
		lines = append(lines, text.Plural(n, "case")+" ended at a question that nobody has answered")
	}
	if n := was[noEffect]; n > 0 {
		lines = append(lines, text.Plural(n, "case")+" ended before an effect that is not granted")
	}
	if said := leftOut(was, noCase); said != "" {
		lines = append(lines, "runs left out: "+said)
	}
	return lines
}
