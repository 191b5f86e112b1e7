package mcp_test

import (
	"context"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/x/mcp"
)

// weather is a server within this program. To connect to other servers, use Command or URL.
func weather() *sdk.Server {
	type input struct {
		City string `json:"city" jsonschema:"name of the city"`
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "weather"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "weather.today", Description: "Tells the weather of a city.", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *sdk.CallToolRequest, in input) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "Sun in " + in.City + "."}}}, nil, nil
		})
	return s
}

func Example() {
	ctx := context.Background()
	server, err := mcp.Connect(ctx, mcp.Config{Transport: func(ctx context.Context) (sdk.Transport, error) {
		theirs, ours := sdk.NewInMemoryTransports()
		_, err := weather().Connect(ctx, theirs, nil)
		return ours, err
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	tools, err := server.Tools(ctx, "weather.today")
	if err != nil {
		fmt.Println(err)
		return
	}

	// The model calls the tool under a name that providers accept, first with arguments that do not fit the server's schema.
	model := script.New(
		script.Call("weather_today", `{"town":"Bern"}`),
		script.Call("weather_today", `{"city":"Bern"}`),
		script.Text("Take a hat."),
	)
	advice := dag.NewType[agent.Text]("advice")
	res, err := stone.Run(ctx, agent.New("advise", advice, model, agent.Config{
		User: agent.Say("What shall I wear in Bern?"),
		Use:  tools,
	}), stone.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, req := range model.Requests()[1:] {
		fmt.Println(req.Messages[len(req.Messages)-1].Text())
	}
	out, err := advice.From(res.DAG)
	fmt.Println(out.Text, err)
	// Output:
	// The arguments do not fit the schema of the tool, so it was not run:
	// (root): property "city" is required, but missing
	// (root): property "town" is not allowed; allowed: city
	// Sun in Bern.
	// Take a hat. <nil>
}
