package serve_test

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/stonelayer/stone/serve"
)

// twoStreams is an Access whose callers have two streams each.
type twoStreams struct{ tenants }

func (a twoStreams) Principal(r *http.Request) (serve.Principal, error) {
	who, err := a.tenants.Principal(r)
	who.Name, who.Streams = who.Tenant, 2
	return who, err
}

// Streams, watched lists and waits count against their caller alone.
func TestStreamsOfACaller(t *testing.T) {
	h := newHouse(t, twoStreams{})
	for _, tenant := range []string{"acme", "globex"} {
		status, text := h.do("PUT", "/v1/runs/a", `{"pipeline":"page","input":{"text":"slate"}}`, "X-Tenant", tenant)
		if status != http.StatusCreated {
			t.Fatalf("start: %d %s", status, text)
		}
	}
	open := func(tenant, path string) (status int, retry string, leave func()) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Tenant", tenant)
		req.Header.Set("Accept", "text/event-stream")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode == http.StatusOK {
			if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		return resp.StatusCode, resp.Header.Get("Retry-After"), func() { cancel(); _ = resp.Body.Close() }
	}
	want := func(tenant, path string, status int) func() {
		t.Helper()
		got, retry, leave := open(tenant, path)
		if got != status || (got == http.StatusTooManyRequests) != (retry != "") {
			t.Fatalf("%s %s: %d with Retry-After %q, want %d", tenant, path, got, retry, status)
		}
		return leave
	}
	list := want("acme", "/v1/runs?label.x=1", 200)
	events := want("acme", "/v1/runs/a/events", 200)
	for _, path := range []string{"/v1/runs?label.x=2", "/v1/questions", "/v1/runs/a/events", "/v1/runs/a/result?wait=30s"} {
		want("acme", path, 429)()
	}
	if status, text := h.do("GET", "/v1/runs/a/result?wait=30s", "", "X-Tenant", "acme"); status != 429 || !strings.Contains(text, "the caller has reached the limit of 2 open streams and waits: close one") {
		t.Errorf("a wait: %d %s", status, text)
	}
	if status, text := h.do("GET", "/v1/runs/a/result", "", "X-Tenant", "acme"); status != 202 && status != 200 {
		t.Errorf("a request that does not wait: %d %s", status, text)
	}
	defer want("globex", "/v1/runs?label.x=1", 200)()
	defer want("globex", "/v1/runs/a/events", 200)()
	list()
	events()
	for { // until the server sees that the client has gone
		status, _, leave := open("acme", "/v1/questions")
		if leave(); status == http.StatusOK {
			return
		}
	}
}
