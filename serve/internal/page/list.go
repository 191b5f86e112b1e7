package page

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
)

// runsPage is the list of runs.
type runsPage struct {
	Runs      []runRow
	Filter    url.Values
	States    []journal.State
	Pipelines []string // of the runs shown
	Next      string   // URL of the page of older runs
}

// Costs reports whether any run cost something.
func (p runsPage) Costs() bool {
	return slices.ContainsFunc(p.Runs, func(r runRow) bool { return r.Usage != (budget.Total{}) })
}

// Filtered reports whether anything selects the runs.
func (p runsPage) Filtered() bool { return len(p.Filter) > 0 }

type runRow struct {
	view.Head
	Asks string // the first open question of a run that waits
}

func rowOf(info journal.RunInfo) runRow { return runRow{Head: view.Head{RunInfo: info}} }

// asks reads the first open question of a run that waits.
func (r *runRow) asks(ctx context.Context, v View) error {
	if r.State != journal.Waiting {
		return nil
	}
	all, err := v.Journal.Questions(ctx, r.ID)
	if errors.As(err, new(*journal.DamageError)) { // its page says so
		return nil
	}
	if i := slices.IndexFunc(all, journal.Question.Open); i >= 0 {
		const most = 160 // columns
		r.Asks = text.Cut(text.Line(all[i].Text), most)
	}
	return err
}

// Words are the labels of a run.
func (r runRow) Words() (out []string) {
	for _, name := range slices.Sorted(maps.Keys(r.Labels)) {
		out = append(out, name+"="+r.Labels[name])
	}
	return out
}

// Lasted is how long the run took, "" if its end is unknown.
func (r runRow) Lasted() string {
	end := r.Until(time.Now())
	if end.IsZero() {
		return ""
	}
	return took(r.Started, end)
}

const rowsOfRuns = 100

func (p *pages) runs(w http.ResponseWriter, r *http.Request, v View) error {
	filter := r.URL.Query()
	for name, values := range filter { // a form sends its empty fields too
		if values = slices.DeleteFunc(values, func(s string) bool { return s == "" }); len(values) == 0 {
			delete(filter, name)
		} else {
			filter[name] = values
		}
	}
	var q journal.Query
	var err error
	if p.Select != nil {
		if q, err = p.Select(selected(filter)); err != nil {
			return err
		}
	}
	stream := "/runs?" + selected(filter).Encode()
	q.Limit = rowsOfRuns
	if before := filter.Get("before"); before != "" {
		if _, err := find(r.Context(), v, before); err != nil {
			return err
		}
	}
	found, err := v.Journal.Runs(r.Context(), q)
	if err != nil {
		return err
	}
	body := runsPage{Filter: filter, States: view.States}
	named := map[string]bool{}
	for _, info := range found {
		row := rowOf(info)
		if err := row.asks(r.Context(), v); err != nil {
			return err
		}
		body.Runs, named[info.Pipeline] = append(body.Runs, row), true
	}
	delete(named, "")
	body.Pipelines = slices.Sorted(maps.Keys(named))
	if len(found) == rowsOfRuns {
		older := maps.Clone(filter)
		older.Set("before", found[len(found)-1].ID)
		body.Next = "/?" + older.Encode()
	}
	delete(filter, "before")
	return v.show(w, r, "runs", p.live(frame{Title: "Runs", Here: "runs", Body: body}, stream))
}

// selected returns the query of the API that the fields of the filter stand for: days
// for times, and "name=value" for a label.
func selected(filter url.Values) url.Values {
	out := maps.Clone(filter)
	for name, days := range map[string]int{"since": 0, "until": 1} { // the last day is a whole one
		if day, err := time.Parse(time.DateOnly, filter.Get(name)); err == nil {
			out[name] = []string{day.AddDate(0, 0, days).Format(time.RFC3339)}
		}
	}
	delete(out, "label")
	for _, label := range filter["label"] {
		name, value, _ := strings.Cut(label, "=")
		out["label."+strings.TrimSpace(name)] = []string{strings.TrimSpace(value)}
	}
	return out
}

// Day reports whether a field of the filter has a day, or nothing.
func (p runsPage) Day(name string) bool {
	_, err := time.Parse(time.DateOnly, p.Filter.Get(name))
	return err == nil || p.Filter.Get(name) == ""
}
