// Package openapi_test validates the OpenAPI document of a server with libopenapi, against the
// schema of OpenAPI 3.1, and replies of the server against the document.
package openapi_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/x/cel"
)

func server(t *testing.T) string {
	t.Helper()
	draft, approval, page := dag.NewType[string]("draft"), dag.NewType[stone.Answer]("approval"), dag.NewType[string]("page")
	pipeline := stone.Seq("page",
		stone.Ask("approve", draft, approval, func(text string) string { return text + "?" }, stone.Choices("yes", "no")),
		stone.Func("publish", approval, page, func(_ context.Context, a stone.Answer) (string, error) { return a.Response, nil }))
	greeter := cel.New(call.Metadata{ID: "greeter", Intents: []string{"text/greet"}, Cost: call.Cost{USD: 0.1}}, cel.Config{Expression: `{"text": call.input.name}`})
	s, err := serve.New(serve.Config{Journal: memdb.New(t), Pipelines: []serve.Pipeline{{Ashlar: pipeline}}, Applicator: &call.Applicator{Registry: call.NewRegistry(greeter)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	at := httptest.NewServer(s)
	t.Cleanup(at.Close)
	return at.URL
}

func TestDocument(t *testing.T) {
	at := server(t)
	resp, err := http.Get(at + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := libopenapi.NewDocument(text)
	if err != nil {
		t.Fatal(err)
	}
	v, problems := validator.NewValidator(doc)
	for _, err := range problems {
		t.Error(err)
	}
	if ok, found := v.ValidateDocument(); !ok {
		for _, f := range found {
			t.Errorf("%s: %s", f.Message, f.Reason)
			for _, e := range f.SchemaValidationErrors {
				t.Errorf("%s: %s", e.Location, e.Reason)
			}
		}
	}
	// Requests and replies fit the document.
	for _, r := range []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/v1/pipelines", "", 200}, {"GET", "/v1/pipelines/page", "", 200}, {"GET", "/v1/caps", "", 200},
		{"PUT", "/v1/runs/a", `{"pipeline":"page","input":"marble"}`, 201}, {"PUT", "/v1/runs/a", `{"pipeline":"page","input":"slate"}`, 409},
		{"GET", "/v1/runs/a/result?wait=30s", "", 202}, {"GET", "/v1/questions", "", 200}, {"GET", "/v1/runs/a/questions", "", 200},
		{"POST", "/v1/runs/a/answers", `{"question":"page/approve","response":"perhaps"}`, 422},
		{"POST", "/v1/runs/a/answers", `{"question":"page/approve","response":"yes"}`, 200},
		{"GET", "/v1/runs/a/result?wait=30s", "", 200}, {"GET", "/v1/runs/a", "", 200}, {"GET", "/v1/runs?pipeline=page", "", 200},
		{"POST", "/v1/act?id=x", `{"proto":1,"trace":{"id":"r-1"},"task":{"intent":"text/greet"},"input":{"name":"Ada"}}`, 200},
		{"POST", "/v1/act", `{"proto":1}`, 422}, {"GET", "/v1/runs/none", "", 404}, {"DELETE", "/v1/runs/a", "", 204},
	} {
		req, err := http.NewRequest(r.method, at+r.path, strings.NewReader(r.body))
		if err != nil {
			t.Fatal(err)
		}
		if r.body != "" {
			req.Header.Set("Content-Type", "application/json")
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != r.status {
			t.Errorf("%s %s: %s, want %d", r.method, r.path, resp.Status, r.status)
		}
		if ok, found := v.ValidateHttpResponse(req, resp); !ok {
			for _, f := range found {
				t.Errorf("%s %s: %s: %s %v", r.method, r.path, f.Message, f.Reason, f.SchemaValidationErrors)
			}
		}
		resp.Body.Close()
	}
}
