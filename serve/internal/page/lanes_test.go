package page_test

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/test/cputime"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/internal/test/year"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/serve/internal/page"
)

// TestManyLanes opens each page of runs with 100,000 lanes. It takes at most 150 ms of CPU time, and a part of a search 300 ms. The
// comparison of all results takes that only when it is opened again.
func TestManyLanes(t *testing.T) {
	need.Time(t)
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "stone.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const lanes, most = 100_000, 150 * time.Millisecond
	for id, every := range map[string]int{"fan": 0, "other": 500} {
		if err := year.Steps(t.Context(), db, id, lanes, every); err != nil {
			t.Fatal(err)
		}
	}
	pages := page.Handler(page.Config{View: func(*http.Request) page.View { return page.View{Journal: db} }, API: "/v1"})
	escape := strings.NewReplacer("[", "%5B", "]", "%5D")
	for _, at := range []string{
		"/", "/?q=pipeline:fan", "/overview", "/pipelines/fan", "/questions", "/runs/fan", "/runs/fan?at=fan/things", "/runs/fan?at=fan/things&from=fan/things[50000]",
		"/runs/fan?at=fan/things&only=failed", "/runs/fan?at=fan/things[777]", "/runs/fan?view=graph", "/runs/fan?q=thing+99999", "/runs/fan?q=cannot+be+measured",
		"/runs/fan/step?path=fan/things[777]/measure", "/compare?a=fan&b=other", "/compare?a=fan&b=other&all=yes", "/compare?a=fan&b=other&under=fan/things[500]",
	} {
		best, status := time.Hour, 0
		for range 2 { // the first one opens the journal, and another test may run
			used := cputime.Used()
			w := httptest.NewRecorder()
			pages.ServeHTTP(w, httptest.NewRequest("GET", escape.Replace(at), nil))
			best, status = min(best, cputime.Used()-used), w.Code
		}
		most := most
		if strings.Contains(at, "?q=thing") || strings.Contains(at, "?q=cannot") {
			most *= 2
		}
		t.Logf("%6.1f ms %s", best.Seconds()*1000, at)
		if best > most || status != 200 {
			t.Errorf("%s: status %d, %v of CPU time, want at most %v", at, status, best, most)
		}
	}
}
