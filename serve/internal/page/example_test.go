package page_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/serve/internal/page"
)

// A program serves the pages of its journal from its own HTTP server.
func ExampleHandler() {
	greeting := dag.NewType[string]("greeting")
	greet := stone.Func0("greet", greeting, func(context.Context) (string, error) { return "Hello", nil })
	kept, err := sqlite.Open(sqlite.Memory, sqlite.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer kept.Close()
	if _, err := stone.Run(context.Background(), greet, stone.Config{RunID: "first", Recorder: journal.Keep(kept, journal.Options{})}); err != nil {
		fmt.Println(err)
		return
	}
	pages := page.Handler(page.Config{View: func(*http.Request) page.View { return page.View{Journal: kept} }})
	for _, path := range []string{"/runs/first", "/runs/second"} {
		w := httptest.NewRecorder()
		pages.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		fmt.Println(w.Code, strings.Contains(w.Body.String(), "Hello"))
	}
	// Output:
	// 200 true
	// 404 false
}
