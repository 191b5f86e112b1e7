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
	"github.com/stonelayer/stone/serve"
)

// leave sends a request, waits until it has started, closes its connection and waits until the server has noticed that.
func (h *house) leave(path, body, key string, begun func()) {
	h.Helper()
	ctx, cancel := context.WithCancel(h.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "POST", h.URL+path, strings.NewReader(body))
	if err != nil {
		h.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if resp, err := http.DefaultClient.Do(req); err == nil {
			<-ctx.Done() // a stream starts at once
			_ = resp.Body.Close()
		}
	}()
	begun()
	cancel()
	<-gone
}

// A run that its client has named continues when the client leaves, and other clients that wait for it are not disturbed. A run
// without a name ends with its client.
func TestNamedRunOutlivesItsClient(t *testing.T) {
	for name, r := range map[string]struct{ path, body, gone string }{
		"response":        {"/v1/responses", `{"model":"stone/slow","input":"x"}`, "503"},
		"response stream": {"/v1/responses", `{"model":"stone/slow","input":"x","stream":true}`, "200"},
		"chat":            {"/v1/chat/completions", `{"model":"stone/slow","messages":[{"role":"user","content":"x"}]}`, "503"},
		"chat stream":     {"/v1/chat/completions", `{"model":"stone/slow","messages":[{"role":"user","content":"x"}],"stream":true}`, "200"},
	} {
		t.Run(name, func(t *testing.T) {
			h := gatewayServer(t, nil, nil)
			running := func() { h.until("/v1/runs?pipeline=slow", `"state":"running"`) }
			h.leave(r.path, r.body, "", running)
			h.until("/v1/runs?pipeline=slow", `"state":"canceled"`)

			patient := make(chan string, 1)
			h.leave(r.path, r.body, "k", func() {
				running()
				go func() {
					_, text := h.do("POST", r.path, r.body, "Idempotency-Key", "k")
					patient <- text
				}()
			})
			// Two requests have ended: both whose clients went.
			h.until("/metrics", `{route="POST `+r.path+`",status="`+r.gone+`"} 2`)
			running()
			close(h.Gate)
			if text := <-patient; !strings.Contains(text, "slow x") {
				t.Errorf("the client that waited got %s", text)
			}
			if status, text := h.do("POST", r.path, r.body, "Idempotency-Key", "k"); status != 200 || !strings.Contains(text, "slow x") {
				t.Errorf("the repeated request: %d %s", status, text)
			}
		})
	}
}

// A response with a key is cancelled by request, since closing its connection does not.
func TestCancelNamedResponse(t *testing.T) {
	h := gatewayServer(t, nil, nil)
	body := `{"model":"stone/slow","input":"x"}`
	h.leave("/v1/responses", body, "k", func() { h.until("/v1/runs?pipeline=slow", `"state":"running"`) })
	var list struct{ Runs []struct{ ID string } }
	if err := json.Unmarshal([]byte(h.want("GET", "/v1/runs?pipeline=slow", "", 200, "resp_")), &list); err != nil {
		t.Fatal(err)
	}
	h.want("POST", "/v1/responses/"+list.Runs[0].ID+"/cancel", "", 200, `"status":"cancelled"`)
}

// A request for a capability with an id is answered once, whoever goes and comes back.
func TestNamedActOutlivesItsClient(t *testing.T) {
	for _, id := range []string{"", "?id=a"} {
		t.Run("act"+id, func(t *testing.T) {
			var invoked atomic.Int32
			started, stopped, gate := make(chan bool, 2), make(chan bool, 1), make(chan bool)
			slow := call.Func(call.Metadata{ID: "slow", Intents: []string{"text/greet"}}, func(ctx context.Context, in map[string]any) (map[string]any, error) {
				invoked.Add(1)
				started <- true
				select {
				case <-gate:
					return map[string]any{"text": "Hello"}, nil
				case <-ctx.Done():
					stopped <- true
					return nil, ctx.Err()
				}
			})
			h := &house{T: t, journal: memdb.New(t)}
			h.Server = serveAll(t, serve.Config{Journal: h.journal, Applicator: &call.Applicator{Registry: call.NewRegistry(slow)}})
			h.leave("/v1/act"+id, ada, "", func() { <-started })
			if id == "" {
				<-stopped
				return
			}
			again := make(chan string)
			for range 2 {
				go func() {
					_, text := h.do("POST", "/v1/act"+id, ada)
					again <- text
				}()
			}
			close(gate)
			for range 2 {
				if text := <-again; !strings.Contains(text, "Hello") {
					t.Errorf("the repeated request got %s", text)
				}
			}
			if n := invoked.Load(); n != 1 {
				t.Errorf("the capability was invoked %d times", n)
			}
		})
	}
}
