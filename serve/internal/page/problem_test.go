package page_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/serve/internal/page"
)

// broken is a journal that fails.
type broken struct{ *sqlite.DB }

func (*broken) Runs(context.Context, journal.Query) ([]journal.RunInfo, error) {
	return nil, errors.New("disk /secret/path is gone")
}

// An error that is not the reader's is a page, which does not say what only operators may know.
func TestErrorsArePages(t *testing.T) {
	pages := page.Handler(page.Config{View: func(*http.Request) page.View { return page.View{Journal: &broken{}} }})
	w := httptest.NewRecorder()
	pages.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	if text := w.Body.String(); w.Code != 500 || !strings.Contains(text, "<h1>Internal Server Error") || !strings.Contains(text, "cannot be shown") || strings.Contains(text, "secret") {
		t.Errorf("%d %s", w.Code, text)
	}
	for _, path := range []string{"/runs/a/resume", "/runs/a/cancel", "/runs/a/answers"} {
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, httptest.NewRequest("POST", path, nil))
		if w.Code != 403 || !strings.Contains(w.Body.String(), "<h1>Forbidden") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}
