package page

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/problems"
	"github.com/stonelayer/stone/internal/view"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// A Forecast is what a fork does with the steps of its origin.
type Forecast struct {
	Anew, Perhaps, Shared []journal.Step // repeated, repeated if what they read changes, and reused
	Effects               []string       // side effects that may happen again
}

// forking is the page that asks before a fork starts.
type forking struct {
	Forecast
	Run, Path, ID string
	Above         []crumb
}

// Cost is what steps cost before.
func (forking) Cost(of []journal.Step) budget.Total {
	_, cost := journal.Total(of)
	return cost
}

// foresee shows what a fork at a step would do, before it starts.
func foresee(w http.ResponseWriter, r *http.Request, v View) error {
	body := forking{Run: r.PathValue("id"), Path: r.URL.Query().Get("path"), ID: strings.ToLower(rand.Text())}
	err := body.check(r.Context(), v)
	if err != nil {
		return err
	}
	if body.Above, err = crumbs(r.Context(), view.LanesOf(v.Journal, body.Run), body.Path); err != nil {
		return err
	}
	if body.Forecast, err = v.Foresee(r.Context(), body.Run, body.Path); err != nil {
		return err
	}
	return v.show(w, r, "fork", frame{Title: "Fork at " + address.Readable(body.Path) + " · " + body.Run, Here: "runs", Body: body})
}

// check refuses what cannot be forked.
func (f forking) check(ctx context.Context, v View) error {
	if v.Fork == nil {
		return &api.Problem{Type: problems.Forbidden, Title: "Forbidden", Status: http.StatusForbidden, Detail: "You may not start runs here."}
	}
	info, err := find(ctx, v, f.Run)
	if err != nil {
		return err
	}
	if s, _, err := stepAt(ctx, v, info, f.Path); err != nil || s != nil {
		return err
	}
	return missing("Run %q has no step %q.", f.Run, f.Path)
}

// fork starts a fork. Its id is in the form, so that a form that is sent twice starts one run.
func fork(w http.ResponseWriter, r *http.Request, v View) error {
	if err := readForm(w, r); err != nil {
		return err
	}
	f := forking{Run: r.PathValue("id"), Path: r.PostForm.Get("path"), ID: r.PostForm.Get("id")}
	if err := f.check(r.Context(), v); err != nil {
		return err
	}
	if err := v.Fork(r.Context(), f.ID, f.Run, f.Path); err != nil {
		return err
	}
	http.Redirect(w, r, runURL(f.ID), http.StatusSeeOther)
	return nil
}
