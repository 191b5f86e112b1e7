package config_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// With this argument the test binary is a server.
const asServer = "serve-tools"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asServer {
		if err := serveTools(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func serveTools() error {
	server := mcp.NewServer(&mcp.Implementation{Name: "tools", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "whoami"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: os.Getenv("TOKEN") + " " + os.Getenv("PLACE")}}}, nil, nil
	})
	return server.Run(context.Background(), &mcp.StdioTransport{})
}

// A server is started with its secrets, and only when one of its tools is used.
func TestServer(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	t.Setenv("STONE_TEST_TOKEN", "")
	c := mustLoad(t, fmt.Sprintf(`
		{:servers {:tools {:command [%q %q] :env {:TOKEN {:env "STONE_TEST_TOKEN"} :PLACE "here"}}}
		 :capabilities {:me {:cap/kind :mcp :server :tools :tool "whoami" :cap/intents #{:who}}}}`, program, asServer))
	if got := act(t, c, "who", `{}`); !strings.Contains(got, "the server tools: TOKEN: the environment variable STONE_TEST_TOKEN is not set") {
		t.Error(got)
	}
	t.Setenv("STONE_TEST_TOKEN", "abc")
	if got := act(t, c, "who", `{}`); got != `{"text":"abc here"}` {
		t.Error(got)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if got := act(t, c, "who", `{}`); !strings.Contains(got, "closed") {
		t.Error(got)
	}
}
