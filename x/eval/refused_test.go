package eval_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/model"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/openai"
	"github.com/stonelayer/stone/x/eval"
)

// TestRefused has the provider refuse requests. What it would refuse again is asked once a case,
// and a refused key or account ends the evaluation.
func TestRefused(t *testing.T) {
	var cases []string
	for i := range 40 {
		cases = append(cases, fmt.Sprint("case ", i))
	}
	for _, c := range []struct {
		name, body string
		status     int
		requests   int32 // at most
		ends       bool
	}{
		{"key", `{"error":{"message":"Incorrect API key"}}`, 401, 8, true},
		{"country", `{"error":{"message":"not supported in your country"}}`, 403, 8, true},
		{"balance", `{"error":{"message":"Insufficient Balance"}}`, 402, 8, true},
		{"quota", `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, 429, 8, true},
		{"model", `{"error":{"message":"no such model"}}`, 404, 40, false},
		{"request", `{"error":{"message":"bad request"}}`, 400, 40, false},
	} {
		var requests atomic.Int32
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			requests.Add(1)
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(c.status)
			io.WriteString(w, c.body)
		}))
		m := openai.New(openai.Config{Model: "m", URL: srv.URL, Key: "k", Retry: llm.Retry{Max: -1}})
		app := &call.Applicator{Registry: call.NewRegistry(model.New(call.Metadata{ID: "m", Intents: []string{"say"}}, model.Config{Model: m}))}
		said := dag.NewType[agent.Text]("said")
		for by, p := range map[string]stone.Ashlar{
			"agent": agent.New("a", said, m, agent.Config{User: agent.Prompt(asked, func(q question) string { return q.Text })}),
			"call":  call.New("a", said, call.Spec{Applicator: app, Intent: "say", Input: call.From(asked)}),
		} {
			requests.Store(0)
			r, err := eval.Run(t.Context(), eval.Config{Pipeline: p, Data: rows(cases...), Scorers: scorers(t, "exact"), Lanes: 1}, stone.Config{})
			if (err != nil) != c.ends || requests.Load() > c.requests {
				t.Errorf("%s by %s: %d requests, %v; want at most %d", c.name, by, requests.Load(), err, c.requests)
			}
			if err == nil && r.Scores[0].Errors != 40 || err != nil && !strings.Contains(err.Error(), "HTTP status") {
				t.Errorf("%s by %s: %v, report %+v", c.name, by, err, r)
			}
		}
		srv.Close()
	}
}
