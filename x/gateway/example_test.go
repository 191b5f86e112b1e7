package gateway_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/x/gateway"
)

// OpenAI's clients see a pipeline as a model.
func Example() {
	text, answer := dag.NewType[string]("text"), dag.NewType[string]("answer")
	echo := stone.Func("echo", text, answer, func(_ context.Context, s string) (string, error) { return "You said: " + s, nil })
	db, err := sqlite.Open(sqlite.Memory, sqlite.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	s, err := serve.New(serve.Config{Journal: db, Pipelines: []serve.Pipeline{{Ashlar: echo}}, Protocols: []serve.Protocol{gateway.Part}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	reply := httptest.NewRecorder()
	s.ServeHTTP(reply, httptest.NewRequest("GET", "http://localhost/v1/models", nil))
	fmt.Print(reply.Body.String())
	reply = httptest.NewRecorder()
	body := `{"model": "stone/echo", "messages": [{"role": "user", "content": "slate"}]}`
	s.ServeHTTP(reply, httptest.NewRequest("POST", "http://localhost/v1/chat/completions", strings.NewReader(body)))
	fmt.Println(strings.Contains(reply.Body.String(), `"content":"You said: slate"`))
	// Output:
	// {"data":[{"id":"stone/echo","object":"model","created":0,"owned_by":"stone"}],"object":"list"}
	// true
}
