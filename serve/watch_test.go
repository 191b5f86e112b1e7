package serve_test

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/test/servetest"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve"
)

// A program sees the events of the runs that its server starts, and of the requests that it answers.
func TestWatch(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	watch := func(of journal.RunInfo) event.Watcher {
		if of.Labels["quiet"] != "" {
			return nil
		}
		return event.Func(slog.LevelInfo, func(e event.Event) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, strings.TrimSpace(of.Pipeline+" "+of.ID+" "+of.Labels["who"]+" "+e.Type()))
			if of.ID != "" && of.ID != e.Run {
				t.Errorf("an event of run %s came as one of %s", e.Run, of.ID)
			}
		})
	}
	h := &house{T: t, Steps: servetest.NewSteps(), journal: memdb.New(t)}
	h.Server = serveAll(h, serve.Config{Journal: h.journal, Log: slog.New(h), Watch: watch,
		Applicator: &call.Applicator{Registry: greeters()}, Pipelines: []serve.Pipeline{{Name: "draft", Ashlar: h.Write()}}})
	h.want("PUT", "/v1/runs/a", `{"pipeline":"draft","input":{"text":"marble"},"labels":{"who":"x"}}`, 201, `"id":"a"`)
	h.want("GET", "/v1/runs/a/result?wait=30s", "", 200, `"state":"done"`)
	h.want("PUT", "/v1/runs/b", `{"pipeline":"draft","input":{"text":"marble"},"labels":{"quiet":"x"}}`, 201, `"id":"b"`)
	h.want("GET", "/v1/runs/b/result?wait=30s", "", 200, `"state":"done"`)
	h.want("POST", "/v1/act", ada, 200, `Hello, Ada!`)
	mu.Lock()
	defer mu.Unlock()
	for _, want := range []string{"draft a x run-start", "draft a x run-end", "act run-start", "act  call-verdict", "act run-end"} {
		if !slices.ContainsFunc(seen, func(s string) bool {
			return strings.Join(strings.Fields(s), " ") == strings.Join(strings.Fields(want), " ")
		}) {
			t.Errorf("no %q among %q", want, seen)
		}
	}
	if slices.ContainsFunc(seen, func(s string) bool { return strings.HasPrefix(s, "draft b") }) {
		t.Errorf("a run without a watcher is watched: %q", seen)
	}
}
