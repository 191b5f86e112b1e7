package page

import (
	"context"
	"fmt"
	"net/http"

	"github.com/stonelayer/stone/internal/problems"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// seen returns a text that identifies the last stop of a run, so that an outdated page cannot resume the run again.
func seen(info journal.RunInfo) string {
	return fmt.Sprintf("%s %d %d", info.State, info.Ended.UnixNano(), info.Steps)
}

// resume resumes a run if the run has not continued since the page was shown.
func (p *pages) resume(w http.ResponseWriter, r *http.Request, v View) error {
	return p.control(w, r, v, v.Resume != nil, func() error {
		info, err := find(r.Context(), v, r.PathValue("id"))
		switch {
		case err != nil || info.State == journal.Running:
			return err
		case seen(info) != r.PostForm.Get("seen"):
			return &api.Problem{Type: problems.Conflict, Title: "Conflict", Status: http.StatusConflict,
				Detail: fmt.Sprintf("The run has changed since the page was shown: it is %s now. Look at it again before you resume it.", info.State)}
		}
		return v.Resume(r.Context(), info.ID, api.Resume{Force: r.PostForm.Get("force") != "", Lost: r.PostForm.Get("lost") != ""})
	})
}

// cancel cancels a run that is not over.
func (p *pages) cancel(w http.ResponseWriter, r *http.Request, v View) error {
	return p.control(w, r, v, v.Cancel != nil, func() error {
		info, err := find(r.Context(), v, r.PathValue("id"))
		if err != nil || info.State == journal.Canceled {
			return err
		}
		return v.Cancel(r.Context(), info.ID)
	})
}

// control applies an action to a run and returns to its page. If equal requests arrive concurrently, as after a double click, one
// is executed and the others wait for it.
func (p *pages) control(w http.ResponseWriter, r *http.Request, v View, allowed bool, do func() error) error {
	if !allowed {
		return &api.Problem{Type: problems.Forbidden, Title: "Forbidden", Status: http.StatusForbidden, Detail: "You may not start and stop runs here."}
	}
	if err := readForm(w, r); err != nil {
		return err
	}
	key, done := [2]string{v.Tenant, r.URL.Path}, make(chan struct{})
	first, busy := p.busy.LoadOrStore(key, done)
	if busy {
		select {
		case <-first.(chan struct{}):
		case <-r.Context().Done():
			return context.Cause(r.Context())
		}
	} else if err := func() error {
		defer close(done)
		defer p.busy.Delete(key)
		return do()
	}(); err != nil {
		return err
	}
	http.Redirect(w, r, runURL(r.PathValue("id")), http.StatusSeeOther)
	return nil
}
