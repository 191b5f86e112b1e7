package page_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/internal/page"
)

// TestStripAndForecast looks at a fan-out while it runs for the second time.
func TestStripAndForecast(t *testing.T) {
	item, square, sum := dag.NewType[int]("item"), dag.NewType[int]("square"), dag.NewType[int]("sum")
	at := make(chan struct{})
	var hold chan struct{}
	items := make([]int, 30)
	for i := range items {
		items[i] = i
	}
	list := dag.NewType[[]int]("list")
	p := stone.Seq("squares",
		stone.Func0("list", list, func(context.Context) ([]int, error) { return items, nil }),
		stone.Map("each", list, item, stone.Func("square", item, square, func(_ context.Context, i int) (int, error) {
			if i == 29 && hold != nil {
				close(at)
				<-hold
			}
			if i == 3 {
				return 0, errors.New("three")
			}
			return i * i, nil
		}), stone.Quorum(1)),
		stone.Reduce(stone.Func("sum", dag.All(square), sum, func(_ context.Context, all []int) (int, error) { return len(all), nil })),
	)
	kept := memdb.New(t)
	run := func(id string) {
		if _, err := stone.Run(t.Context(), p, stone.Config{RunID: id, Recorder: journal.Keep(kept, journal.Options{Pipeline: "squares"})}); err != nil {
			t.Error(err)
		}
	}
	run("a")
	pages := page.Handler(page.Config{View: func(*http.Request) page.View { return page.View{Journal: kept} }})
	want := func(path string, parts ...string) {
		t.Helper()
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		for _, part := range parts {
			if !strings.Contains(w.Body.String(), part) {
				t.Errorf("%s has no %q: %s", path, part, w.Body)
			}
		}
	}
	want("/runs/a?at=squares/each", `<path class="failed" d="M`, "median ", "p95 ", "slowest <a href=")
	hold = make(chan struct{})
	ended := make(chan struct{})
	go func() { defer close(ended); run("b") }()
	select {
	case <-at:
	case <-ended:
		t.Fatal("the run ended before its last lane")
	}
	want("/runs/b", "of 33 in the median of 1 earlier run")
	want("/overview", `<a href="/pipelines/squares">squares</a>`)
	close(hold)
	<-ended
}

// TestOverviewIsBounded: a journal with many pipelines has an overview of a bounded size.
func TestOverviewIsBounded(t *testing.T) {
	kept := memdb.New(t)
	one := dag.NewType[int]("one")
	for i := range 230 {
		p := stone.Func0("one", one, func(context.Context) (int, error) { return i, nil })
		name := fmt.Sprintf("pipeline-%d", i)
		if _, err := stone.Run(t.Context(), p, stone.Config{RunID: name, Recorder: journal.Keep(kept, journal.Options{Pipeline: name})}); err != nil {
			t.Fatal(err)
		}
	}
	pages := page.Handler(page.Config{View: func(*http.Request) page.View { return page.View{Journal: kept} }})
	w := httptest.NewRecorder()
	pages.ServeHTTP(w, httptest.NewRequest("GET", "/overview", nil))
	if text := w.Body.String(); strings.Count(text, `<a href="/pipelines/`) != 200 || !strings.Contains(text, "30 runs of further pipelines") || !strings.Contains(text, "<dt>Runs</dt><dd>230</dd>") {
		t.Errorf("%d rows: %.3000s", strings.Count(text, `<a href="/pipelines/`), text)
	}
}
