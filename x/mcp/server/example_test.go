package server_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/x/mcp/server"
)

// An MCP client calls a pipeline.
func ExampleMount() {
	ctx := context.Background()
	db, err := sqlite.Open(sqlite.Memory, sqlite.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	greet := stone.Func("greet", draft, page, func(_ context.Context, name string) (string, error) { return "Hello, " + name, nil })
	pipelines := []serve.Pipeline{{Ashlar: greet}}

	s, err := serve.New(serve.Config{
		Journal: db, Pipelines: pipelines,
		Mounts: map[string]serve.Mount{"/mcp": server.Mount(server.Config{})},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()
	web := httptest.NewServer(s)
	defer web.Close()

	client := sdk.NewClient(&sdk.Implementation{Name: "example"}, nil)
	session, err := client.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: web.URL + "/mcp"}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()
	res, err := session.CallTool(ctx, &sdk.CallToolParams{Name: "greet", Arguments: map[string]any{"input": "Ada"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Content[0].(*sdk.TextContent).Text)
	// Output: Hello, Ada
}
