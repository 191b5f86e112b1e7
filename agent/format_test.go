package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/fakeserver"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/openai"
	"github.com/stonelayer/stone/llm/script"
)

// TestServerWithoutSchemas has a server that refuses schemas answer an agent that uses a tool: only
// the first turn is refused.
func TestServerWithoutSchemas(t *testing.T) {
	type place struct {
		City string `json:"city"`
	}
	model := script.Func(func(n int, _ *llm.Request) script.Answer {
		if n == 0 {
			return script.Call("notes", `{"text":"x"}`)
		}
		return script.Text(`{"city":"Paris"}`)
	})
	refused := 0
	url := fakeserver.Serve(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		if bytes.Contains(body, []byte("response_format")) {
			refused++
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"error":{"message":"This response_format type is unavailable now","type":"invalid_request_error"}}`)
			return
		}
		model.ServeHTTP(w, r)
	})
	notes := agent.Middleware{Name: "notes", Tool: &agent.Tool{
		Tool: llm.Tool{Name: "notes"},
		Run:  func(context.Context, json.RawMessage) (agent.Result, error) { return agent.Result{}, nil },
	}}
	p := agent.New("a", dag.NewType[place]("place"), openai.New(openai.Config{Model: "m", URL: url}), agent.Config{User: agent.Say("Where is the Louvre?"), Use: []agent.Middleware{notes}})
	if _, err := stone.Run(t.Context(), p, stone.Config{}); err != nil {
		t.Fatal(err)
	}
	if refused != 1 {
		t.Errorf("%d requests were refused, want 1", refused)
	}
}
