package acp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/tool"
	"github.com/stonelayer/stone/x/acp"
)

// TestBrokenTurn has a turn that pays a bill and then fails. The next prompt knows what was paid.
func TestBrokenTurn(t *testing.T) {
	paid := 0
	pay := tool.Func("pay", "Pays.", func(context.Context, struct {
		N int `json:"n"`
	}) (string, error) {
		paid++
		return "paid", nil
	}, tool.Effects("net"))
	model := script.Func(func(n int, req *llm.Request) script.Answer {
		if n == 1 {
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
	s, err := serve.New(serve.Config{Journal: memdb.New(t), Pipelines: []serve.Pipeline{{Name: "shop", Ashlar: shop}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { s.Run(ctx); close(ended) }()
	defer func() { cancel(); <-ended }()
	in, to := io.Pipe()
	from, out := io.Pipe()
	served := make(chan error, 1)
	go func() { served <- acp.Serve(ctx, s, "user ada", in, out) }()
	lines := bufio.NewScanner(from)
	ask := func(id int, method, params string) (r struct{ Result struct{ SessionID string } }) {
		fmt.Fprintf(to, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`+"\n", id, method, params)
		for lines.Scan() && !strings.Contains(lines.Text(), fmt.Sprintf(`"id":%d,`, id)) {
		}
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Error(err)
		}
		return r
	}
	ask(1, "initialize", `{"protocolVersion":1}`)
	id := ask(2, "session/new", `{"cwd":"/tmp","mcpServers":[]}`).Result.SessionID
	for i, text := range []string{"Pay the bill.", "Go on."} {
		ask(3+i, "session/prompt", fmt.Sprintf(`{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}`, id, text))
	}
	to.Close()
	go io.Copy(io.Discard, from)
	<-served
	all := model.Requests()
	if paid != 1 || len(all) != 3 {
		t.Fatalf("paid %d times in %d requests", paid, len(all))
	}
	var said []string
	for _, m := range all[2].Messages {
		said = append(said, string(m.Role)+": "+m.Text())
	}
	want := "user: Pay the bill.|assistant: |tool: paid|assistant: [This turn ended without an answer: it is failed.]|user: Go on."
	if got := strings.Join(said, "|"); got != want {
		t.Errorf("asked %s\nwant  %s", got, want)
	}
}
