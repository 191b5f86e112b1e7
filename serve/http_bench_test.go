//go:build unix

package serve_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/model"
	"github.com/stonelayer/stone/internal/test/cputime"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/x/cel"
)

// BenchmarkHTTP reports the CPU time of requests to a server with a journal in a file, client included: an
// answer that is kept, a chat with a model behind one check, and a run of one step with its result.
func BenchmarkHTTP(b *testing.B) {
	db, err := sqlite.Open(filepath.Join(b.TempDir(), "stone.db"), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	app := gated(&writer{words: []string{"polite"}}, &writer{})
	app.Registry = call.NewRegistry(
		cel.New(call.Metadata{ID: "greeter", Intents: []string{"text/greet"}}, cel.Config{Expression: `{"text": "Hello, " + call.input.name + "!"}`}),
		model.New(call.Metadata{ID: "model", Intents: []string{"chat/answer"}}, model.Config{Model: &writer{words: []string{"polite"}}}),
	)
	app.Intents["text/greet"] = call.Intent{}
	app.Policy = call.Policy{Intents: map[string]call.Rules{"chat/answer": {Done: call.Done{Must: []string{"polite"}}}}}
	s := serveAll(b, serve.Config{Journal: db, Applicator: app, Scan: time.Minute, Pipelines: []serve.Pipeline{
		{Name: "upper", Ashlar: stone.Func("upper", question, page, func(_ context.Context, q string) (string, error) { return strings.ToUpper(q), nil })},
	}})
	for _, row := range []struct{ name, method, path, body string }{
		{"act", "POST", "/v1/act?id=act-%d", ada},
		{"chat", "POST", "/v1/chat/completions", `{"model":"stone/chat/answer","messages":[{"role":"user","content":"Hi"}]}`},
		{"run", "PUT", "/v1/runs/run-%d", `{"pipeline":"upper","input":"x"}`},
	} {
		b.Run(row.name, func(b *testing.B) {
			n, used := 0, cputime.Used()
			for b.Loop() {
				path := row.path
				if n++; strings.Contains(path, "%d") {
					path = fmt.Sprintf(path, 1_000_000*b.N+n)
				}
				request(b, row.method, s.URL+path, row.body)
				if row.name == "run" {
					request(b, "GET", s.URL+path+"/result?wait=10s", "")
				}
			}
			b.ReportMetric(float64((cputime.Used()-used).Microseconds())/float64(n), "cpu-µs/request")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// request fails unless the answer is a success.
func request(b testing.TB, method, url, body string) {
	b.Helper()
	req, err := http.NewRequestWithContext(b.Context(), method, url, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode >= 300 {
		b.Fatal(resp.Status, string(text), err)
	}
}
