package page

import (
	"crypto/rand"
	"net/http"
	"strings"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/problems"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// A Forecast predicts how a fork treats the steps of its origin.
type Forecast struct {
	Run, At, ID           string         // the original run, the step to repeat, and the id of the fork
	Anew, Perhaps, Shared []journal.Step // steps that are repeated, repeated if their inputs change, and reused
	Effects               []string       // side effects that may happen again
}

// Cost returns the recorded cost of steps.
func (Forecast) Cost(of []journal.Step) budget.Total {
	_, cost := journal.Total(of)
	return cost
}

// fork shows the forecast of a fork, and starts the fork when the form is sent. The form contains the fork's id, so sending it
// twice starts only one run.
func fork(w http.ResponseWriter, r *http.Request, v View) error {
	if v.Fork == nil {
		return &api.Problem{Type: problems.Forbidden, Title: "Forbidden", Status: http.StatusForbidden, Detail: "You may not start runs here."}
	}
	if err := readForm(w, r); err != nil {
		return err
	}
	id := r.PostForm.Get("id")
	f, err := v.Fork(r.Context(), r.PathValue("id"), r.Form.Get("path"), id)
	switch {
	case err != nil:
		return err
	case id != "":
		http.Redirect(w, r, runURL(id), http.StatusSeeOther)
		return nil
	}
	f.Run, f.At, f.ID = r.PathValue("id"), r.Form.Get("path"), strings.ToLower(rand.Text())
	return v.show(w, r, "fork", frame{Title: "Fork at " + address.Readable(f.At) + " · " + f.Run, Here: "runs", Body: f})
}
