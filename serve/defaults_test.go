package serve_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/test/peer"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
)

// witness tells what a client sent. It calls each tool twice, thinks, and costs tokens.
func witness(_ int, req *llm.Request) script.Answer {
	in, out := 10, 5
	answer := func(text string) script.Answer {
		return script.Answer{Reply: llm.Reply{Text: text, Reasoning: "thinking", Usage: llm.Usage{InputTokens: &in, OutputTokens: &out, ReasoningTokens: 3}}}
	}
	n := len(req.Messages)
	last := req.Messages[n-1]
	switch text := last.Text(); {
	case last.Role == llm.RoleTool:
		var results []string
		for _, m := range req.Messages {
			if m.Role == llm.RoleTool {
				results = append(results, m.CallID+" "+m.Text())
			}
		}
		return answer("polite: " + strings.Join(results, ", "))
	case text == "wait":
		a := answer("polite: late")
		a.Wait = 5 * time.Minute
		return a
	case strings.HasPrefix(text, "refuse"):
		return answer("whatever")
	case len(last.Media()) > 0:
		return answer("polite: " + last.Media()[0].Type)
	case text == "type" && req.ResponseFormat != nil:
		return answer(`{"name":"slate"}`)
	case text == "again":
		return answer(fmt.Sprintf("polite: %d messages before, the second %q", n-1, req.Messages[1].Text()))
	case text == "tools" && len(req.Tools) > 0:
		a := answer("")
		for i := range 2 {
			input := fmt.Sprintf(`{"at":"place %d"}`, i)
			if strings.Contains(string(req.Tools[0].Schema), `"input"`) {
				input = fmt.Sprintf(`{"input":"text %d"}`, i)
			}
			a.Reply.ToolCalls = append(a.Reply.ToolCalls, llm.ToolCall{ID: fmt.Sprintf("call_%d", i), Name: req.Tools[0].Name, Input: json.RawMessage(input)})
		}
		return a
	default:
		return answer("polite: " + text)
	}
}

// asked counts the requests whose last message is a text.
func asked(m *script.Model, text string) (n int) {
	for _, req := range m.Requests() {
		if last := req.Messages[len(req.Messages)-1]; last.Text() == text {
			n++
		}
	}
	return n
}

// The default client of each SDK gets through its second turn, and pays once for a failure.
func TestDefaultClients(t *testing.T) {
	for _, name := range []string{"openai", "ai", "@ai-sdk/openai", "@ai-sdk/openai-compatible", "@openai/agents"} {
		peer.Held(t, name, "second turns", "two tools", "reasoning", "pictures and PDF", "abort", "one paid request for a failure")
	}
	weak, strong := script.Func(func(int, *llm.Request) script.Answer { return script.Text("whatever") }), script.Func(witness)
	h := gatewayServer(t, gated(weak, strong), nil)
	program, err := os.Open("testdata/defaults.mjs")
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	cmd := exec.CommandContext(t.Context(), "node", "--input-type=module", "-")
	cmd.Dir = filepath.Dir(filepath.Dir(peer.Module(t, "openai")))
	cmd.Stdin = program
	cmd.Env = append(os.Environ(), "STONE_URL="+h.URL, "OPENAI_API_KEY=none")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%v: %s", err, stderr.String())
	}
	want, err := os.ReadFile("testdata/defaults.txt")
	if err != nil {
		t.Fatal(err)
	}
	if string(out) != string(want) {
		t.Errorf("got:\n%s\nwant:\n%s", out, want)
	}
	for _, client := range []string{"ai responses", "ai chat", "ai compatible", "stream ai responses", "stream ai chat", "stream ai compatible", "openai", "agents responses", "agents chat"} {
		if n := asked(strong, "refuse "+client); n != 1 {
			t.Errorf("%s paid %d times for one failure", client, n)
		}
	}
}
