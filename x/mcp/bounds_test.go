package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A server cannot fill memory with what it lists: neither with many tools, nor with long
// ones, nor with a page that is one long message.
func TestListIsBounded(t *testing.T) {
	for _, c := range []struct {
		name        string
		tools       int
		description string
		want        string // "" if the list is read
	}{
		{"as many as allowed", maxTools, "short", ""},
		{"one too many", maxTools + 1, "short", "there are more than 1000"},
		{"long descriptions", 100, strings.Repeat("x", maxListed/100), "the list has more than 8388608 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			noLeak(t)
			peer := sdk.NewServer(&sdk.Implementation{Name: "peer", Version: "1"}, nil)
			for i := range c.tools {
				peer.AddTool(&sdk.Tool{Name: fmt.Sprint("tool", i), Description: c.description, InputSchema: json.RawMessage(`{"type":"object"}`)},
					func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return nil, nil })
			}
			s := connect(t, Config{Name: "peer", Transport: func(context.Context) (sdk.Transport, error) {
				theirs, ours := sdk.NewInMemoryTransports()
				_, err := peer.Connect(context.Background(), theirs, nil)
				return ours, err
			}})
			tools, err := s.Tools(t.Context())
			switch {
			case c.want == "" && (err != nil || len(tools) != c.tools):
				t.Errorf("got %d tools and the error %v, want %d", len(tools), err, c.tools)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got the error %v, want %q", err, c.want)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
