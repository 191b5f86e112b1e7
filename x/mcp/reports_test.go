//go:build unix

package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestReports has servers answer as public reports say.
func TestReports(t *testing.T) {
	const list = `{"tools":[{"name":"today","inputSchema":{"type":"object"}}]}`
	for _, r := range []struct {
		name        string
		came, right string
		list, call  string // results, or an error
		want        string
	}{
		{"a cursor that stays", "tools/list has the same nextCursor on each page (codebase-memory-mcp#1247, 2026-07)", "the tools, once",
			`{"tools":[{"name":"today","inputSchema":{"type":"object"}}],"nextCursor":"8"}`, `{"content":[{"type":"text","text":"Sun"}]}`, "Sun"},
		{"a tool listed twice", "a server lists a tool twice", "the tools, once",
			`{"tools":[{"name":"today","inputSchema":{"type":"object"}},{"name":"today","inputSchema":{"type":"object"}}]}`, `{"content":[{"type":"text","text":"Sun"}]}`, "Sun"},
		{"a data URI as an image", "image data with its data: prefix (gyazo-mcp-server#129, 2026-07; MCPSafari#38, 2026-07)", "the model is told that the call was done",
			list, `{"content":[{"type":"image","mimeType":"image/png","data":"data:image/png;base64,AAEC"}]}`, `the server "peer" has answered the call, but its result cannot be read`},
		{"a text as content", "content is a text, not a list", "the same",
			list, `{"content":"Sun"}`, `the server "peer" has answered the call, but its result cannot be read`},
		{"a kind of content from later", "a part with an unknown type", "the same",
			list, `{"content":[{"type":"hologram"}]}`, `the server "peer" has answered the call, but its result cannot be read`},
		{"no content", "structuredContent alone (mcp-server-cloudflare#12, 2025)", "it is the result",
			list, `{"structuredContent":{"day":"Sun"}}`, `{"day":"Sun"}`},
		{"nulls", "content and structuredContent are null", "nothing", list, `{"content":null,"structuredContent":null,"_meta":null}`, "(the tool returned nothing)"},
	} {
		t.Run(r.name, func(t *testing.T) {
			noLeak(t)
			calls := 0
			_, cfg := serve(t, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				var m oldMessage
				json.NewDecoder(req.Body).Decode(&m)
				result := map[string]string{"initialize": oldAnswer("initialize"), "tools/list": r.list, "tools/call": r.call}[m.Method]
				if m.Method == "tools/call" {
					calls++
				}
				w.Header().Set("Content-Type", "application/json")
				switch {
				case req.Method != http.MethodPost:
					w.WriteHeader(http.StatusMethodNotAllowed)
				case m.ID == nil:
					w.WriteHeader(http.StatusAccepted)
				case result == "":
					fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, m.ID)
				default:
					fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
				}
			}))
			cfg.Harmless = []string{"today"}
			s := connect(t, cfg)
			if tools, err := s.Tools(t.Context()); err != nil || len(tools) != 1 {
				t.Fatalf("%s\n%s\n%d tools, %v", r.came, r.right, len(tools), err)
			}
			got, err := called(t, s, "today", "")
			if err != nil {
				got = err.Error()
			}
			if !strings.HasPrefix(got, r.want) || calls != 1 || errors.Is(err, ErrUncertain) {
				t.Errorf("%s\n%s\n got %s after %d calls\nwant %s", r.came, r.right, got, calls, r.want)
			}
			s.Close()
		})
	}
}
