package page

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
)

// A comparison is the page that compares two runs.
type comparison struct {
	A, B        runRow
	Under       string // path to compare; "" for the whole runs
	Above       []crumb
	All, Own    int // number of differing steps, and how many of them have equal input
	Differences []journal.Difference
	Next        int // index of the first step not shown; 0 if all are shown
	Works       []works
	MoreWorks   int           // number of works not shown
	Evals       *[2]evaluated // reports, if the runs are evaluations
	Unread      bool          // a run is too large: the duration and cost of some steps were not read
	Whole       bool          // results of large runs are compared, too
	Places      []places      // parts of large runs, whose results are compared only on request
}

// places is a part of the pipeline, with its steps in both runs.
type places struct {
	Path string
	Of   [2]journal.Place
}

// Differ reports whether the numbers of the two runs differ at this place.
func (p places) Differ() bool {
	a, b := p.Of[0], p.Of[1]
	return a.Recorded != b.Recorded || a.Failed != b.Failed || a.Open != b.Open || a.Usage.USD != b.Usage.USD
}

// placesOf aligns the places of two runs.
func placesOf(ctx context.Context, v View, runs ...string) (all []places, err error) {
	for i, run := range runs {
		o, err := v.Journal.Outline(ctx, run)
		if err != nil {
			return nil, err
		}
		found, err := o.Places(ctx)
		if err != nil {
			return nil, err
		}
		for _, p := range found {
			at := slices.IndexFunc(all, func(q places) bool { return q.Path == p.Path })
			if at < 0 {
				at, all = len(all), append(all, places{Path: p.Path})
			}
			all[at].Of[i] = p
		}
	}
	return slices.DeleteFunc(all, func(p places) bool { return p.Of[0].Recorded+p.Of[0].Open+p.Of[1].Recorded+p.Of[1].Open == 0 }), nil
}

// lettered is one of the two runs, with its letter A or B.
type lettered struct {
	runRow
	Letter string
}

// Runs returns the two runs.
func (c comparison) Runs() []lettered { return []lettered{{c.A, "A"}, {c.B, "B"}} }

// URL returns the address for a part of the comparison.
func (c comparison) URL(query ...string) string {
	values := url.Values{"a": {c.A.ID}, "b": {c.B.ID}}
	if c.Whole {
		values.Set("all", "yes")
	}
	for i := 0; i+1 < len(query); i += 2 {
		values.Set(query[i], query[i+1])
	}
	return "/compare?" + values.Encode()
}

// More returns the address of the page with the next steps.
func (c comparison) More() string { return c.URL("under", c.Under, "from", strconv.Itoa(c.Next)) }

// Rest returns the number of steps not yet shown.
func (c comparison) Rest() int { return c.All - c.Next }

func isAre(n int) string {
	if n == 1 {
		return "1 is"
	}
	return strconv.Itoa(n) + " are"
}

const rowsOfComparison = 100

// compared caches the differences of the latest comparison of two ended runs. A person moves from a comparison to its parts, and
// comparing 100,000 lanes takes seconds.
type compared struct {
	of  [5]string
	all []journal.Difference
}

// mostCompared is the maximum number of differences kept in the cache.
const mostCompared = 10_000

// differences returns the differences between two runs. For large runs, unless whole is true, it returns only cached differences,
// or false if there are none.
func (p *pages) differences(ctx context.Context, v View, a, b journal.RunInfo, whole bool) ([]journal.Difference, bool, error) {
	of := [5]string{v.Tenant, a.ID, seen(a), b.ID, seen(b)}
	if last := p.last.Load(); last != nil && last.of == of {
		return last.all, true, nil
	}
	if !whole && max(a.Steps, b.Steps) > view.Small {
		return nil, false, nil
	}
	all, err := journal.Diff(ctx, v.Journal, a.ID, b.ID)
	if err == nil && final(a) && final(b) && len(all) <= mostCompared {
		p.last.Store(&compared{of, all})
	}
	return all, true, err
}

func final(info journal.RunInfo) bool {
	return info.State == journal.Done || info.State == journal.Failed || info.State == journal.Canceled
}

// compare shows the differences between two runs, or in one step, with their reasons.
func (p *pages) compare(w http.ResponseWriter, r *http.Request, v View) error {
	query := r.URL.Query()
	if chosen := query["run"]; len(chosen) == 2 { // in list order, so the newer run is first
		query.Set("a", chosen[1])
		query.Set("b", chosen[0])
	} else if len(chosen) > 0 {
		return missing("Choose two runs on the page of all runs: %s chosen.", isAre(len(chosen)))
	}
	body := comparison{Under: query.Get("under"), Whole: query.Has("all")}
	for at, run := range map[string]*runRow{"a": &body.A, "b": &body.B} {
		if query.Get(at) == "" {
			return missing("Choose two runs on the page of all runs: the address has no run %q.", at)
		}
		info, err := find(r.Context(), v, query.Get(at))
		if err != nil {
			return err
		}
		*run = rowOf(info)
	}
	if query.Get("step") != "" {
		return body.step(w, r, v, query.Get("step"))
	}
	var err error
	if body.Above, err = crumbs(r.Context(), view.LanesOf(v.Journal, body.A.ID), body.Under); err != nil {
		return err
	}
	if body.Evals, err = body.evals(r.Context(), v); err != nil {
		return err
	}
	all, read, err := p.differences(r.Context(), v, body.A.RunInfo, body.B.RunInfo, body.Whole)
	if err == nil && !read {
		body.Places, err = placesOf(r.Context(), v, body.A.ID, body.B.ID)
	}
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(slices.Clone(all), func(d journal.Difference) bool {
		return body.Under != "" && d.Path != body.Under && !address.Within(d.Path, body.Under)
	})
	from, _ := strconv.Atoi(query.Get("from")) // 0 if the value is not a number
	from = min(max(from, 0), len(all))
	body.All = len(all)
	for i, d := range all {
		if !d.Follows {
			body.Own++
		}
		if i >= from && len(body.Differences) < rowsOfComparison {
			body.Differences = append(body.Differences, d)
		}
	}
	if end := from + len(body.Differences); end < len(all) {
		body.Next = end
	}
	if from == 0 {
		if body.Works, body.Unread, err = worksOf(r.Context(), v, body.A.RunInfo, body.B.RunInfo, body.Under); err != nil {
			return err
		}
		body.MoreWorks = max(len(body.Works)-rowsOfComparison, 0)
		body.Works = body.Works[:len(body.Works)-body.MoreWorks]
	}
	return v.show(w, r, "compare", frame{Title: body.A.ID + " and " + body.B.ID, Here: "runs", Body: body})
}

// evals reads the reports of two evaluations. It returns nil for other runs, and if only a part is compared.
func (c comparison) evals(ctx context.Context, v View) (*[2]evaluated, error) {
	var both [2]evaluated
	for i, info := range []journal.RunInfo{c.A.RunInfo, c.B.RunInfo} {
		if c.Under != "" || info.State != journal.Done || !isEvaluation(info) {
			return nil, nil
		}
		n, err := pieceOf(ctx, v, info, info.Node.String())
		if err != nil {
			return nil, err
		}
		e, err := evaluatedOf(ctx, v, info, n)
		if err != nil || e == nil {
			return nil, err
		}
		both[i] = *e
	}
	if b := &both[1]; b.Base != c.A.ID {
		b.Against, b.Gate = nil, nil // they describe a comparison with another baseline
	}
	return &both, nil
}

// Before returns the score with this name in A, or nil.
func (c comparison) Before(score string) *scored {
	for i, s := range c.Evals[0].Scores {
		if s.Name == score {
			return &c.Evals[0].Scores[i]
		}
	}
	return nil
}

// After returns the report of B.
func (c comparison) After() *evaluated { return &c.Evals[1] }

// stepsCompared is the page that compares a step in two runs.
type stepsCompared struct {
	comparison
	Path   string
	Nodes  [2]*piece // nil if a run has no result of the step
	Lines  []line
	Prompt []line // differences between an agent's prompts
	Cut    bool
}

// step shows the difference between the results of a step.
func (c comparison) step(w http.ResponseWriter, r *http.Request, v View, path string) error {
	body := stepsCompared{comparison: c, Path: path}
	var err error
	if body.Above, err = crumbs(r.Context(), view.LanesOf(v.Journal, c.A.ID), up(path)); err != nil {
		return err
	}
	var texts, prompts [2]string
	for i, run := range []runRow{c.A, c.B} {
		var err error
		if prompts[i], err = openingOf(r.Context(), v, run.ID, path); err != nil {
			return err
		}
		n, err := resultAt(r.Context(), v, run.RunInfo, path)
		if err != nil {
			return err
		}
		if n == nil {
			continue
		}
		n.read(shownBytes)
		body.Nodes[i], texts[i], body.Cut = n, n.Text, body.Cut || n.Cut > 0
		if n.Failure != "" {
			texts[i] = n.Failure
		}
	}
	if body.Nodes[0] == nil && body.Nodes[1] == nil {
		return missing("Neither run has a result of the step %q.", path)
	}
	if prompts[0] != prompts[1] {
		body.Prompt = difference(prompts[0], prompts[1])
	}
	if texts[0] != texts[1] {
		body.Lines = difference(texts[0], texts[1])
	}
	return v.show(w, r, "compare-step", frame{Title: path + " in " + c.A.ID + " and " + c.B.ID, Here: "runs", Body: body})
}

// resultAt reads the result of the step at a path. It returns nil if the run has none.
func resultAt(ctx context.Context, v View, info journal.RunInfo, path string) (*piece, error) {
	s, _, err := stepAt(ctx, v, info, path)
	if s == nil || err != nil || !s.Recorded {
		return nil, err
	}
	return recordOf(ctx, v, info, *s)
}

// stepAt returns the step at a path, or nil, and the number of steps inside it.
func stepAt(ctx context.Context, v View, info journal.RunInfo, path string) (*journal.Step, int, error) {
	o, err := v.Journal.Outline(ctx, info.ID)
	if err != nil {
		return nil, 0, err
	}
	l, err := o.Level(ctx, up(path), journal.Page{From: path, Limit: 1})
	if err != nil || len(l.Branches) == 0 || l.Branches[0].Path != path {
		return nil, 0, err
	}
	return l.Branches[0].Step, l.Branches[0].Below, nil
}
