package page_test

import (
	"context"
	"encoding/json"
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

// TestFork: the page of a step shows how to fork a run that a command has started, and a fork links to its origin.
func TestFork(t *testing.T) {
	j := memdb.New(t)
	p := stone.Seq("p", stone.Func0("first", dag.NewType[int]("n"), func(context.Context) (int, error) { return 1, nil }))
	for id, opts := range map[string]journal.Options{
		"typed":     {Source: json.RawMessage(`{"dir":"/home/ada","program":"stone"}`)},
		"published": {},
	} {
		if _, err := stone.Run(t.Context(), p, stone.Config{RunID: id, Recorder: journal.Keep(j, opts)}); err != nil {
			t.Fatal(err)
		}
	}
	fork := journal.Options{Fork: &journal.Fork{Run: "typed", At: "p/first"}}
	if _, err := stone.Run(t.Context(), p, stone.Config{RunID: "fork", Recorder: journal.Keep(j, fork)}); err != nil {
		t.Fatal(err)
	}
	pages := page.Handler(page.Config{View: func(*http.Request) page.View { return page.View{Journal: j} }, API: "/v1"})
	get := func(at string) string {
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, httptest.NewRequest("GET", at, nil))
		if w.Code != 200 {
			t.Errorf("%s: status %d", at, w.Code)
		}
		return w.Body.String()
	}
	const command = "stone fork typed --at &#39;p/first&#39;"
	if got := strings.ReplaceAll(get("/runs/typed/step?path=p/first"), "'p/first'", "&#39;p/first&#39;"); !strings.Contains(got, command) {
		t.Errorf("no command on the page:\n%s", got)
	}
	if strings.Contains(get("/runs/published/step?path=p/first"), "stone fork") {
		t.Error("a run of a server has a command")
	}
	if got := get("/runs/fork"); !strings.Contains(got, `Fork of</dt><dd><a href="/runs/typed">typed</a> at`) {
		t.Errorf("no link to the origin:\n%s", got)
	}
}
