package serve_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/tool"
)

// TestBrokenTurn has a turn that pays a bill and then fails: the provider refuses its second request. The next
// message and the retry of the page know what was paid, and pay nothing again.
func TestBrokenTurn(t *testing.T) {
	first := `{"id":"1","role":"user","parts":[{"type":"text","text":"Pay the bill."}]}`
	for name, second := range map[string]string{
		"retry": `{"id":"c","trigger":"regenerate-message","messages":[` + first + `]}`,
		"go on": `{"id":"c","trigger":"submit-message","messages":[` + first + `,{"id":"c-turn-1","role":"assistant","parts":[]},{"id":"2","role":"user","parts":[{"type":"text","text":"Go on."}]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			paid, asked := 0, 0
			pay := tool.Func("pay", "Pays.", func(context.Context, struct {
				N int `json:"n"`
			}) (string, error) {
				mu.Lock()
				defer mu.Unlock()
				paid++
				return "paid", nil
			}, tool.Effects("net"))
			model := script.Func(func(_ int, req *llm.Request) script.Answer {
				mu.Lock()
				asked++
				refused := asked == 2
				mu.Unlock()
				if refused {
					return script.Status(400, `{"error":{"message":"bad"}}`)
				}
				for _, m := range req.Messages {
					if m.Role == llm.RoleTool {
						return script.Text("It is paid.")
					}
				}
				return script.Calls(llm.ToolCall{ID: "c", Name: "pay", Input: json.RawMessage(`{"n":7}`)})
			})
			reply := dag.NewType[agent.Text]("reply")
			shop := agent.New("shop", reply, model, agent.Config{Conversation: agent.ConversationOf(reply), User: dag.NewType[string]("heard"), Use: []agent.Middleware{pay}})
			s, err := serve.New(serve.Config{Journal: memdb.New(t), Protocols: protocols, Pipelines: []serve.Pipeline{{Name: "shop", Ashlar: shop}}})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan struct{})
			go func() { s.Run(ctx); close(ended) }()
			defer func() { cancel(); <-ended }()
			srv := httptest.NewServer(s)
			defer srv.Close()
			for _, body := range []string{`{"id":"c","trigger":"submit-message","messages":[` + first + `]}`, second} {
				resp, err := http.Post(srv.URL+"/v1/ui/shop", "application/json", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				got, _ := io.ReadAll(resp.Body)
				resp.Body.Close()
				if resp.StatusCode != http.StatusOK {
					t.Fatalf("status %d: %s", resp.StatusCode, got)
				}
			}
			all := model.Requests()
			if paid != 1 || len(all) != 3 {
				t.Fatalf("paid %d times in %d requests", paid, len(all))
			}
			var said []string
			for _, m := range all[2].Messages {
				said = append(said, string(m.Role)+": "+m.Text())
			}
			want := "user: Pay the bill.|assistant: |tool: paid"
			if name == "go on" {
				want += "|assistant: [This turn ended without an answer: it is failed.]|user: Go on."
			}
			if got := strings.Join(said, "|"); got != want {
				t.Errorf("asked %s\nwant  %s", got, want)
			}
		})
	}
}
