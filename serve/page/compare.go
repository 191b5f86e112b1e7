package page

import (
	"net/http"

	"github.com/stonelayer/stone/journal"
)

// comparison is the page of two runs.
type comparison struct {
	A, B        journal.RunInfo
	Differences []journal.Difference
	More        int // that are not shown
}

// compare shows where two runs differ, and why.
func (p *pages) compare(w http.ResponseWriter, r *http.Request, v View) (err error) {
	var body comparison
	query := r.URL.Query()
	if body.A, err = find(r.Context(), v, query.Get("a")); err != nil {
		return err
	}
	if body.B, err = find(r.Context(), v, query.Get("b")); err != nil {
		return err
	}
	if body.Differences, err = journal.Diff(r.Context(), v.Journal, body.A.ID, body.B.ID); err != nil {
		return err
	}
	const most = 200
	if n := len(body.Differences); n > most {
		body.Differences, body.More = body.Differences[:most], n-most
	}
	return show(w, http.StatusOK, "compare", frame{Title: body.A.ID + " and " + body.B.ID, Here: "runs", Body: body})
}
