package page

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"

	"github.com/stonelayer/stone/internal/problems"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// An action can be applied to several runs at once.
type action struct {
	Name, Verb, Done string
	Note             string // what the action does
	suits            func(journal.RunInfo) bool
	do               func(ctx context.Context, run string) error
}

// actions returns the actions that the sender of a request may apply.
func (v View) actions() (out []action) {
	var resume func(context.Context, string) error
	if v.Resume != nil {
		resume = func(ctx context.Context, run string) error { return v.Resume(ctx, run, api.Resume{}) }
	}
	for _, d := range []action{
		{"cancel", "Cancel", "canceled", "Steps that are running are stopped; they have no result and are possibly paid. A canceled run can be resumed.",
			func(i journal.RunInfo) bool { return !view.Over(i.State) }, v.Cancel},
		{"resume", "Resume", "resumed", "What is recorded is kept and costs nothing again. Steps that failed, or had started without a result, run again.",
			func(i journal.RunInfo) bool { return view.Resumable(i.State) && (v.Runs == nil || v.Runs(i)) }, resume},
		{"remove", "Remove", "removed", "Their steps, results and answers are deleted, which cannot be undone. Other runs keep what they reuse of them.",
			func(i journal.RunInfo) bool { return i.State != journal.Running }, v.Remove},
	} {
		if d.do != nil {
			out = append(out, d)
		}
	}
	return out
}

// chosenPage is the page that asks for confirmation of an action on chosen runs, and later shows the result.
type chosenPage struct {
	action
	Runs   []chosenRun
	Others []runRow // runs to which the action cannot be applied now
	Filter string   // filter of the list from which the runs were chosen
	Over   bool     // the action succeeded for Count runs; Runs are the failures
	Count  int
}

// A chosenRun is a run to which the action is applied.
type chosenRun struct {
	runRow
	Problem string // reason of the failure
}

// Seen identifies how the run stopped.
func (c chosenRun) Seen() string { return seen(c.RunInfo) }

// List returns the address of the list.
func (c chosenPage) List() string {
	if c.Filter == "" {
		return "/"
	}
	return "/?" + url.Values{"q": {c.Filter}}.Encode()
}

// chosen applies an action to the runs that were chosen in the list, after confirmation.
func (p *pages) chosen(w http.ResponseWriter, r *http.Request, v View) error {
	if err := readForm(w, r); err != nil {
		return err
	}
	ctx, form, all := r.Context(), r.PostForm, v.actions()
	i := slices.IndexFunc(all, func(d action) bool { return d.Name == form.Get("do") })
	ids := slices.Compact(slices.Sorted(slices.Values(form["run"])))
	switch {
	case i < 0:
		return &api.Problem{Type: problems.Forbidden, Title: "Forbidden", Status: http.StatusForbidden, Detail: "You may not start, stop and remove runs here."}
	case len(ids) == 0 || len(ids) > rowsOfRuns:
		return &api.Problem{Type: problems.Invalid, Title: "Choose runs", Status: http.StatusUnprocessableEntity, Detail: fmt.Sprintf("%d runs are chosen: go back and choose 1 to %d.", len(ids), rowsOfRuns)}
	}
	body := chosenPage{action: all[i], Filter: form.Get("q")}
	for _, id := range ids {
		info, err := v.Journal.Find(ctx, id)
		switch was := form.Get("seen." + id); {
		case err != nil || info.ID != id: // the run was removed meanwhile
			continue
		case !body.suits(info) || was != "" && was != seen(info):
			body.Others = append(body.Others, rowOf(info))
		default:
			body.Runs = append(body.Runs, chosenRun{runRow: rowOf(info)})
		}
	}
	if form.Get("sure") == "" {
		return v.show(w, r, "chosen", frame{Title: body.Verb, Here: "runs", Body: body})
	}
	body.doAll(ctx)
	if len(body.Runs)+len(body.Others) > 0 {
		return v.show(w, r, "chosen", frame{Title: body.Verb, Here: "runs", Body: body})
	}
	http.Redirect(w, r, body.List(), http.StatusSeeOther)
	return nil
}

// doAll applies the action to all chosen runs, and keeps only the runs for which it failed.
func (c *chosenPage) doAll(ctx context.Context) {
	var all sync.WaitGroup
	free := make(chan struct{}, 8) // number of runs at a time
	for i := range c.Runs {
		all.Go(func() {
			free <- struct{}{}
			defer func() { <-free }()
			if err := c.do(ctx, c.Runs[i].ID); err != nil {
				c.Runs[i].Problem = problemOf(err).Detail
			}
		})
	}
	all.Wait()
	was := len(c.Runs)
	c.Runs = slices.DeleteFunc(c.Runs, func(r chosenRun) bool { return r.Problem == "" })
	c.Over, c.Count = true, was-len(c.Runs)
}

func unreadable(format string, args ...any) *api.Problem {
	return &api.Problem{Type: problems.Invalid, Title: "Bad Request", Status: http.StatusBadRequest, Detail: fmt.Sprintf(format, args...)}
}
