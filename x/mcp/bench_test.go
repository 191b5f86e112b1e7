package mcp

import (
	"context"
	"encoding/json"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// BenchmarkCall compares a call of a tool with the same in the protocol library.
func BenchmarkCall(b *testing.B) {
	server := newPeer(b.TempDir())
	s, err := Connect(b.Context(), Config{Transport: func(context.Context) (sdk.Transport, error) {
		theirs, ours := sdk.NewInMemoryTransports()
		_, err := server.Connect(context.Background(), theirs, nil)
		return ours, err
	}})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	tools, err := s.Tools(b.Context(), "echo")
	if err != nil {
		b.Fatal(err)
	}
	input := json.RawMessage(`{"text":"x"}`)
	b.Run("tool", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := tools[0].Tool.Run(b.Context(), input); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("library", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.current.client.CallTool(b.Context(), &sdk.CallToolParams{Name: "echo", Arguments: input}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
