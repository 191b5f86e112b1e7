package serve_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/serve/api"
	"github.com/stonelayer/stone/x/cel"
)

func greeters() *call.Registry {
	return call.NewRegistry(cel.New(call.Metadata{ID: "greeter", Intents: []string{"text/greet"}}, cel.Config{Expression: `{"text": "Hello, " + call.input.name + "!"}`}))
}

// greeter is a server with a capability and without pipelines.
func greeter(t testing.TB, access serve.Access) *serve.Server {
	t.Helper()
	s, err := serve.New(serve.Config{Journal: memdb.New(t), Protocols: protocols, Applicator: &call.Applicator{Registry: greeters()}, Access: access})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const ada = `{"proto":1,"trace":{"id":"r-1"},"task":{"intent":"text/greet"},"input":{"name":"Ada"}}`

func TestAct(t *testing.T) {
	s := greeter(t, tenants{})
	for _, tt := range []struct {
		tenant, query, body, accept string
		status                      int
		part                        string
	}{
		{"acme", "", ada, "", 200, `"result":{"out":{"text":"Hello, Ada!"},"type":"value"`},
		{"acme", "", `{:proto 1 :trace {:id "r"} :task {:intent :text/greet} :input {:name "Ada"}}`, "", 200, `:out {:text "Hello, Ada!"}`},
		{"acme", "?id=a", ada, "", 200, `"attempts":1`},
		{"acme", "?id=a", ada, "", 200, `"mode":"replay"`},
		{"acme", "?id=a", strings.Replace(ada, "Ada", "Bob", 1), "", 409, `trace/id-used: the run a is not an answer`},
		{"globex", "?id=a", strings.Replace(ada, "Ada", "Bob", 1), "", 200, `Hello, Bob!`}, // the id is free for it
		{"acme", "?id=..a", ada, "", 422, `the id`},
		{"acme", "?id=b", strings.Replace(ada, "r-1", strings.Repeat("x", 513), 1), "", 422, `has 513 bytes: want at most 512`},
		{"acme", "?id=b", strings.Replace(ada, "text/greet", strings.Repeat("x", 513), 1), "", 422, `has 513 bytes: want at most 512`},
		{"acme", "", `{"proto":1`, "", 422, `"error":`},
		{"acme", "", strings.Replace(ada, "greet", "gret", 1), "", 422, `no-candidate`},
		{"acme", "", ada, "text/event-stream", 200, `data: {"proto":1,"result":{"out":{"text":"Hello, Ada!"}`},
		{"reader", "", ada, "", 403, `needs the role \"act\"`},
		{"", "", ada, "", 401, `who are you?`},
	} {
		r := httptest.NewRequest("POST", "http://localhost/v1/act"+tt.query, strings.NewReader(tt.body))
		if r.Header.Set("X-Tenant", tt.tenant); tt.accept != "" {
			r.Header.Set("Accept", tt.accept)
		}
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.part) {
			t.Errorf("%s %s %.60s: %d %s, want %d with %s", tt.tenant, tt.query, tt.body, w.Code, w.Body, tt.status, tt.part)
		}
	}
	s.Close()
	w := httptest.NewRecorder()
	r := httptest.NewRequest("POST", "http://localhost/v1/act", strings.NewReader(ada))
	r.Header.Set("X-Tenant", "acme")
	if s.ServeHTTP(w, r); w.Code != http.StatusServiceUnavailable {
		t.Errorf("a closed server answers %d %s", w.Code, w.Body)
	}
}

func TestCaps(t *testing.T) {
	w := httptest.NewRecorder()
	greeter(t, nil).ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/v1/caps", nil))
	if w.Code != 200 || !strings.Contains(w.Body.String(), `greeter`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// What a request over HTTP costs above the same in process: compare with BenchmarkActInProcess.
func BenchmarkAct(b *testing.B) {
	s := greeter(b, nil)
	for b.Loop() {
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, httptest.NewRequest("POST", "http://localhost/v1/act", strings.NewReader(ada))); w.Code != 200 {
			b.Fatal(w.Body)
		}
	}
}

func BenchmarkActInProcess(b *testing.B) {
	app := &call.Applicator{Registry: greeters()}
	for b.Loop() {
		trace, spec, err := call.ReadRequest([]byte(ada))
		if err != nil {
			b.Fatal(err)
		}
		if resp, _ := app.Act(b.Context(), trace, spec, stone.Config{}); resp.Err != nil {
			b.Fatal(resp.Err)
		}
	}
}

// The pieces of an answer are streamed before it. Those of an answer that is rejected are
// retracted, and what the gate accepts comes last.
func TestActStreams(t *testing.T) {
	say := func(text string) llm.Model {
		return script.Func(func(int, *llm.Request) script.Answer { return script.Text(text) })
	}
	h := gatewayServer(t, gated(say("whatever"), say("polite")), nil)
	c := api.Client{URL: h.URL}
	var got []string
	for chunk, err := range c.Stream(t.Context(), "s", json.RawMessage(`{"proto":1,"trace":{"id":"r-1"},"task":{"intent":"chat/answer"},"input":{"prompt":"Hi"}}`)) {
		if err != nil {
			t.Fatal(err)
		}
		if chunk.Result != nil {
			got = append(got, "result "+string(chunk.Result.Out))
		} else {
			got = append(got, chunk.Type+" "+chunk.Source+" "+chunk.Text)
		}
	}
	all := strings.Join(got, "\n")
	for _, part := range []string{"delta model/weak whatever", "retracted model/weak ", "delta model/strong polite", "result "} {
		if !strings.Contains(all, part) {
			t.Errorf("no %q in\n%s", part, all)
		}
	}
	if last := got[len(got)-1]; !strings.Contains(last, "polite") || strings.Contains(last, "whatever") {
		t.Errorf("the answer is %s", last)
	}
}
