package openai_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/llm"
	client "github.com/stonelayer/stone/llm/openai"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/x/gateway"
)

// Any client of the protocol can use a pipeline as a model.
func Example() {
	name, greeting := dag.NewType[string]("name"), dag.NewType[string]("greeting")
	greet := stone.Func("greet", name, greeting, func(_ context.Context, name string) (string, error) { return "Hello, " + name, nil })
	db, err := sqlite.Open(sqlite.Memory, sqlite.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	s, err := serve.New(serve.Config{Protocols: []serve.Protocol{gateway.Part}, Journal: db, Pipelines: []serve.Pipeline{{Ashlar: greet}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(s)
	defer server.Close()

	for _, protocol := range []client.Protocol{client.Responses, client.ChatCompletions} {
		model := client.New(client.Config{Model: "stone/greet", URL: server.URL + "/v1", Key: llm.NoKey, Protocol: protocol})
		reply, err := llm.Collect(context.Background(), model, &llm.Request{Messages: []llm.Message{llm.User("Ada")}})
		fmt.Println(reply.Text, err)
	}
	// Output:
	// Hello, Ada <nil>
	// Hello, Ada <nil>
}
