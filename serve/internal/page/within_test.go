package page_test

import (
	"html"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/test/year"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/internal/page"
)

// TestWithin: a search reads a run part by part, finds each step once, and ends, also while the run is running.
func TestWithin(t *testing.T) {
	j := memdb.New(t)
	const lanes = 3000
	if err := year.Steps(t.Context(), j, "many", lanes, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Acquire(t.Context(), "held"); err != nil {
		t.Fatal(err)
	}
	if err := j.Begin(t.Context(), journal.RunInfo{ID: "held", Pipeline: "p", Started: time.Now()}, dag.DAG{}); err != nil {
		t.Fatal(err)
	}
	pages := page.Handler(page.Config{View: func(*http.Request) page.View { return page.View{Journal: j} }, API: "/v1"})
	links := regexp.MustCompile(`<tr><td class="text"><a href="([^"]*)">`)
	next := regexp.MustCompile(`<a rel="next" href="([^"]*)">Search`)
	for _, c := range []struct {
		at          string
		hits, parts int
		want        string // on the last page
	}{
		{"/runs/many?q=cannot+be+measured", lanes / 1000, 2, ""},
		{"/runs/many?q=19991999", 0, 2, "No further name"}, // the one that failed
		{"/runs/many?q=28882888", 1, 2, "<mark>28882888</mark>"},
		{"/runs/many?q=MEASURE", lanes, lanes / 50, ""}, // in their names
		{"/runs/held?q=nothing", 0, 1, "No name"},
	} {
		var found []string
		parts, text := 0, ""
		for at := c.at; at != ""; parts++ {
			w := httptest.NewRecorder()
			pages.ServeHTTP(w, httptest.NewRequest("GET", at, nil))
			if text = w.Body.String(); w.Code != 200 {
				t.Fatalf("%s: status %d", at, w.Code)
			}
			for _, link := range links.FindAllStringSubmatch(text, -1) {
				found = append(found, link[1])
			}
			at = ""
			if more := next.FindStringSubmatch(text); more != nil {
				at = html.UnescapeString(more[1])
			}
		}
		slices.Sort(found)
		if n := len(slices.Compact(found)); n != c.hits || len(found) > c.hits+parts || parts < c.parts || parts > c.parts+1 || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d hits, %d of them once, in %d parts, want %d in %d, and %q", c.at, len(found), n, parts, c.hits, c.parts, c.want)
		}
	}
}
