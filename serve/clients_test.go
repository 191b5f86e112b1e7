package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
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

// looker calls the first tool of the client, and then repeats its result.
func looker(arguments func(tool llm.Tool) string) llm.Model {
	return script.Func(func(n int, req *llm.Request) script.Answer {
		last := req.Messages[len(req.Messages)-1]
		switch {
		case n > 50: // a client that gets no result asks for ever
			return script.Text("polite: asked too often")
		case last.Role == llm.RoleTool && !strings.HasPrefix(last.CallID, "call_"):
			return script.Text("polite: a result of no call, " + last.CallID)
		case last.Role == llm.RoleTool:
			return script.Text("polite: " + last.Text())
		}
		for _, tool := range req.Tools {
			if args := arguments(tool); args != "" {
				return script.Answer{Reply: llm.Reply{ToolCalls: []llm.ToolCall{{ID: fmt.Sprintf("call_%d", len(req.Messages)), Name: tool.Name, Input: json.RawMessage(args)}}}}
			}
		}
		return script.Text("polite")
	})
}

// formatted is a model that answers requests with a format by another one.
type formatted struct {
	llm.Model
	of llm.Model
}

func (f formatted) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	if req.ResponseFormat != nil {
		return f.of.Stream(ctx, req)
	}
	return f.Model.Stream(ctx, req)
}

// runModule runs a program of clients against a server, and returns what it prints. It needs packages of npm.
func runModule(t *testing.T, file, url string, packages ...string) string {
	t.Helper()
	var dir string
	for _, name := range packages {
		dir = filepath.Join(peer.Module(t, name), strings.Repeat("../", 1+strings.Count(name, "/")), "..")
	}
	program, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "--input-type=module", "-")
	cmd.Dir, cmd.Stdin, cmd.WaitDelay = dir, program, time.Second
	cmd.Env = append(os.Environ(), "STONE_URL="+url, "OPENAI_API_KEY=none")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("%v: %s", err, stderr.String())
	}
	return string(out)
}

// Clients that know nothing of Stone get what the gate has accepted.
func TestClients(t *testing.T) {
	looks := looker(func(llm.Tool) string { return `{"at":"it"}` })
	weak := script.Func(func(_ int, req *llm.Request) script.Answer {
		if req.ResponseFormat != nil {
			return script.Text("It is Paris.")
		}
		return script.Text("whatever")
	})
	strong := formatted{looks, says(`{"town":"Paris"}`)}
	h := gatewayServer(t, gated(weak, strong), nil)
	got := runModule(t, "testdata/clients.mjs", h.URL, "openai", "ai", "@ai-sdk/openai-compatible", "@openai/agents")
	for _, name := range []string{"openai", "ai", "@ai-sdk/openai-compatible", "@openai/agents"} {
		peer.Held(t, name, "answers", "streams", "tools", "typed answers")
	}
	peer.Held(t, "openai", "answers in the background")
	want := `models: true
model: "stone/chat/answer"
responses: ["completed","MARBLE",0]
responses stream: "SLATE."
responses helper: "CHALK"
chat: ["MARBLE","stop"]
chat stream: "SLATE"
background: "in_progress"
cancel: "cancelled"
retrieve: "cancelled"
error unknown: ["NotFoundError",404,"model_not_found"]
error refused: ["UnprocessableEntityError",422,"refused"]
format: "Paris"
format responses: ["Paris","Paris"]
format refused: ["UnprocessableEntityError",422,"eval/must-failed"]
ai: "MARBLE"
ai stream: "SLATE"
ai tools: ["polite: seen it",2]
ai object: "Paris"
agents responses: "polite: seen it"
agents stream responses: "polite: seen it"
agents chat: "polite: seen it"
agents stream chat: "polite: seen it"
`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
