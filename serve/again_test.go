package serve_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/test/servetest"
	"github.com/stonelayer/stone/serve"
)

// A request that is sent again with its key starts nothing again.
func TestIdempotencyKey(t *testing.T) {
	var invoked atomic.Int32
	greet := call.Func(call.Metadata{ID: "greet", Intents: []string{"text/greet"}}, func(context.Context, map[string]any) (map[string]any, error) {
		invoked.Add(1)
		return map[string]any{"text": "Hello"}, nil
	})
	h := &house{T: t, Steps: servetest.NewSteps(), journal: memdb.New(t)}
	h.Server = serveAll(t, serve.Config{Journal: h.journal, Applicator: &call.Applicator{Registry: call.NewRegistry(greet)},
		Pipelines: []serve.Pipeline{{Name: "draft", Ashlar: h.Write()}}})
	const marble, slate = `{"pipeline":"draft","input":{"text":"marble"}}`, `{"pipeline":"draft","input":{"text":"slate"}}`
	id := func(status int, text string) string {
		var run struct{ ID string }
		if err := json.Unmarshal([]byte(text), &run); err != nil || status > 201 || run.ID == "" {
			t.Fatalf("%d %s", status, text)
		}
		return run.ID
	}
	first := id(h.do("POST", "/v1/runs", marble, "Idempotency-Key", "a"))
	if again := id(h.do("POST", "/v1/runs", marble, "Idempotency-Key", "a")); again != first {
		t.Errorf("the same key started %s and %s", first, again)
	}
	for _, key := range []string{"b", ""} {
		if other := id(h.do("POST", "/v1/runs", marble, "Idempotency-Key", key)); other == first {
			t.Errorf("the key %q started nothing", key)
		}
	}
	if status, text := h.do("POST", "/v1/runs", slate, "Idempotency-Key", "a"); status != 409 {
		t.Errorf("another request with the key: %d %s", status, text)
	}
	for range 2 {
		if status, text := h.do("POST", "/v1/act", ada, "Idempotency-Key", "a"); status != 200 || !strings.Contains(text, "Hello") {
			t.Errorf("act: %d %s", status, text)
		}
	}
	if n := invoked.Load(); n != 1 {
		t.Errorf("the capability was invoked %d times", n)
	}
}

// A client that lost the reply to its answer sends it again; another answer is refused.
func TestSameAnswerAgain(t *testing.T) {
	h := newHouse(t, nil)
	h.want("PUT", "/v1/runs/a", `{"pipeline":"page","input":{"text":"marble"}}`, 201, "")
	h.want("GET", "/v1/runs/a/result?wait=30s", "", 202, `"state":"waiting"`)
	var list struct{ Questions []struct{ Path, Name string } }
	if err := json.Unmarshal([]byte(h.want("GET", "/v1/questions", "", 200, "")), &list); err != nil || len(list.Questions) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	q := list.Questions[0]
	for _, named := range []string{q.Path, q.Name, q.Path} {
		h.want("POST", "/v1/runs/a/answers", `{"question":"`+named+`","response":"yes"}`, 200, "")
	}
	h.want("POST", "/v1/runs/a/answers", `{"question":"`+q.Path+`","response":"no"}`, 409, "is answered")
}

// An EventSource that comes back after the end of a run is told not to come back again.
func TestNoEventsAfterTheEnd(t *testing.T) {
	h := newHouse(t, nil)
	h.want("PUT", "/v1/runs/a", `{"pipeline":"draft","input":{"text":"marble"}}`, 201, "")
	h.want("GET", "/v1/runs/a/result?wait=30s", "", 200, "")
	ids, kinds := h.events(t.Context(), "/v1/runs/a/events", "", 100)
	if last := kinds[len(kinds)-1]; last != "state" {
		t.Fatalf("the last event is %s", last)
	}
	if status, text := h.do("GET", "/v1/runs/a/events", "", "Last-Event-ID", ids[len(ids)-1]); status != 204 || text != "" {
		t.Errorf("after the end: %d %s", status, text)
	}
	if again, _ := h.events(t.Context(), "/v1/runs/a/events", ids[len(ids)-2], 100); len(again) != 1 || again[0] != ids[len(ids)-1] {
		t.Errorf("before the end: %q, want %q", again, ids[len(ids)-1:])
	}
}

// Every reply has an id, and errors of OpenAI's paths its form.
func TestRequestID(t *testing.T) {
	h := newHouse(t, nil)
	seen := map[string]bool{}
	for _, path := range []string{"/healthz", "/v1/runs", "/v1/runs/none", "/v1/embeddings", "/nowhere"} {
		resp, err := http.Get(h.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		id := resp.Header.Get("X-Request-Id")
		if id == "" || seen[id] {
			t.Errorf("%s: the id %q", path, id)
		}
		seen[id] = true
	}
	h.want("POST", "/v1/embeddings", "{}", 404, `{"error":{"message":`)
	h.want("DELETE", "/v1/chat/completions", "", 405, `{"error":{"message":"/v1/chat/completions has no DELETE: want POST"`)
	h.want("PATCH", "/v1/runs/none", "{}", 405, "/v1/runs/none has no PATCH: want GET or PUT or DELETE")
}
