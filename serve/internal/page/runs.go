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
	"github.com/stonelayer/stone/internal/filter"
	"github.com/stonelayer/stone/internal/text"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
)

// runsPage is the page that lists runs.
type runsPage struct {
	runsTable
	Filter filter.Filter
	Next   string // URL of the page of older runs
}

// A savedView is a filter with a name.
type savedView struct{ Name, URL string }

// Views returns the filters that people use most.
func (runsPage) Views() []savedView {
	return []savedView{
		{"all", filter.ListURL()}, {"running", filter.ListURL("state", "running")}, {"waiting", filter.ListURL("state", "waiting")},
		{"failed today", filter.ListURL("state", "failed", "since", "today")}, {"above 1 USD this week", filter.ListURL("usd", "1", "since", "7d")},
	}
}

// A runsTable shows runs.
type runsTable struct {
	Runs    []runRow
	Choose  bool // runs can be chosen to compare them or to apply one of the Actions
	Actions []action
}

// Costs reports whether any of the runs has cost something.
func (t runsTable) Costs() bool {
	return slices.ContainsFunc(t.Runs, func(r runRow) bool { return r.Usage != (budget.Total{}) })
}

// tableOf returns a table of the given runs.
func tableOf(ctx context.Context, v View, runs []journal.RunInfo) (t runsTable, err error) {
	for _, info := range runs {
		row := rowOf(info)
		if err := row.asks(ctx, v); err != nil {
			return t, err
		}
		t.Runs = append(t.Runs, row)
	}
	return t, nil
}

type runRow struct {
	view.Head
	Asks string // the first open question of a waiting run
}

func rowOf(info journal.RunInfo) runRow { return runRow{Head: view.Head{RunInfo: info}} }

// asks reads the first open question of a waiting run.
func (r *runRow) asks(ctx context.Context, v View) error {
	if r.State != journal.Waiting {
		return nil
	}
	for q, err := range v.Journal.EachQuestion(ctx, journal.QuestionQuery{Run: r.ID, Open: true}) {
		if errors.As(err, new(*journal.DamageError)) { // the run's page shows the damage
			return nil
		}
		const most = 160 // width in characters
		r.Asks = text.Cut(text.Line(q.Text), most)
		return err
	}
	return nil
}

// Words returns a run's labels for people to read, without the labels of a conversation, for which see Chat.
func (r runRow) Words() (out []string) {
	for _, name := range slices.Sorted(maps.Keys(r.Labels)) {
		if name == chatLabel || strings.HasPrefix(name, "chat-") && r.Chat() != "" {
			continue
		}
		out = append(out, name+"="+r.Labels[name])
	}
	return out
}

// Chat returns the id of the conversation to which the run belongs, or "".
func (r runRow) Chat() string { return r.Labels[chatLabel] }

// Lasted returns the duration of the run, or "" if its end is unknown.
func (r runRow) Lasted() string {
	end := r.Until(time.Now())
	if end.IsZero() {
		return ""
	}
	return took(r.Started, end)
}

const rowsOfRuns = 100

// runs shows the runs that match a filter.
func (p *pages) runs(w http.ResponseWriter, r *http.Request, v View) error {
	query := r.URL.Query()
	chosen, err := filter.Parse(query.Get("q"))
	if err != nil {
		return unreadable("%v", err)
	}
	selected, err := chosen.Values(time.Now())
	if err != nil {
		return unreadable("%v", err)
	}
	stream := "/runs?" + selected.Encode()
	if before := query.Get("before"); before != "" {
		if _, err := find(r.Context(), v, before); err != nil {
			return err
		}
		selected.Set("before", before)
	}
	q, err := p.selects(selected)
	if err != nil {
		return err
	}
	q.Limit = rowsOfRuns
	found, err := v.Journal.Runs(r.Context(), q)
	if err != nil {
		return err
	}
	body := runsPage{Filter: chosen}
	if body.runsTable, err = tableOf(r.Context(), v, found); err != nil {
		return err
	}
	body.Choose, body.Actions = true, v.actions()
	if len(found) == rowsOfRuns {
		older := url.Values{"before": {found[len(found)-1].ID}}
		if len(chosen) > 0 {
			older.Set("q", chosen.String())
		}
		body.Next = "/?" + older.Encode()
	}
	return v.show(w, r, "runs", p.live(frame{Title: "Runs", Here: "runs", Body: body}, stream))
}
