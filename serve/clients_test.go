package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/test/peer"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/serve"
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

// Clients that know nothing of Stone get what the gate has accepted.
func TestClients(t *testing.T) {
	for _, name := range []string{"openai", "ai", "@ai-sdk/openai-compatible", "@openai/agents"} {
		peer.Module(t, name)
	}
	looks := looker(func(llm.Tool) string { return `{"at":"it"}` })
	weak := script.Func(func(_ int, req *llm.Request) script.Answer {
		if req.ResponseFormat != nil {
			return script.Text("It is Paris.")
		}
		return script.Text("whatever")
	})
	strong := formatted{looks, says(`{"town":"Paris"}`)}
	h := gatewayServer(t, gated(weak, strong), nil)
	program, err := os.Open("testdata/clients.mjs")
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
	if string(out) != want {
		t.Errorf("got:\n%s\nwant:\n%s", out, want)
	}
}

// Codex works with a model behind the gate: it runs the command that the model asks for.
func TestCodex(t *testing.T) {
	codex := filepath.Join(peer.Module(t, "@openai/codex"), "bin", "codex.js")
	dir := t.TempDir()
	model := looker(func(tool llm.Tool) string {
		switch tool.Name {
		case "exec_command":
			return `{"cmd":"echo carved > stone.txt; cat stone.txt"}`
		case "shell":
			return `{"command":["sh","-c","echo carved > stone.txt; cat stone.txt"]}`
		case "shell_command":
			return `{"command":"echo carved > stone.txt; cat stone.txt"}`
		}
		return ""
	})
	weak := script.Func(func(int, *llm.Request) script.Answer { return script.Text("whatever") })
	h := codexServer(t, gated(weak, model))
	out := runCodex(t, codex, h.URL, dir, "")
	if text, err := os.ReadFile(filepath.Join(dir, "stone.txt")); err != nil || string(text) != "carved\n" {
		t.Errorf("the command did not run: %v %q\n%s", err, text, out)
	}
	if !strings.Contains(out, "polite:") || !strings.Contains(out, "carved") || strings.Contains(out, "whatever") || strings.Contains(out, "a result of no call") || strings.Contains(out, "asked too often") {
		t.Errorf("codex shows:\n%s", out)
	}
}

// Codex asks once for an answer that the gate rejects, and shows why.
func TestCodexFailure(t *testing.T) {
	codex := filepath.Join(peer.Module(t, "@openai/codex"), "bin", "codex.js")
	weak, strong := script.Func(func(int, *llm.Request) script.Answer { return script.Text("whatever") }), script.Func(func(int, *llm.Request) script.Answer { return script.Text("whatever") })
	h := codexServer(t, gated(weak, strong))
	out, err := execCodex(t, codex, h.URL, t.TempDir(), "")
	if n := len(strong.Requests()); n != 1 || err == nil || !strings.Contains(out, "polite: not polite") {
		t.Errorf("%d runs, %v:\n%s", n, err, out)
	}
}

// codexServer ignores the tool that Codex sends although no model here has it.
func codexServer(t *testing.T, app *call.Applicator) *house {
	return gatewayServerOf(t, serve.Config{Applicator: app, IgnoreTools: []string{"web_search"}})
}

// runCodex lets Codex work in a folder, and returns what it prints.
func runCodex(t *testing.T, codex, url, dir, settings string) string {
	t.Helper()
	out, err := execCodex(t, codex, url, dir, settings)
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return out
}

func execCodex(t *testing.T, codex, url, dir, settings string) (string, error) {
	t.Helper()
	home := t.TempDir()
	config := fmt.Sprintf("%s\nmodel = \"stone/chat/answer\"\nmodel_provider = \"stone\"\n[model_providers.stone]\nname = \"Stone\"\nbase_url = %q\nwire_api = \"responses\"\nrequest_max_retries = 0\n", settings, url+"/v1")
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", codex, "exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", "--cd", dir, "Carve a stone.")
	cmd.Env = append(os.Environ(), "CODEX_HOME="+home)
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// A conversation that is too long for its model is compacted by Codex itself, with a request
// to the model: it calls no path that the gateway does not have.
func TestCodexCompacts(t *testing.T) {
	codex := filepath.Join(peer.Module(t, "@openai/codex"), "bin", "codex.js")
	many, few, compacted := 90_000, 10, 0
	model := script.Func(func(n int, req *llm.Request) script.Answer {
		last := req.Messages[len(req.Messages)-1]
		if last.Role == llm.RoleUser && strings.Contains(last.Text(), "CONTEXT CHECKPOINT COMPACTION") {
			compacted++
		}
		answer := script.Text("polite")
		if n == 0 {
			answer = script.Calls(llm.ToolCall{ID: "call_1", Name: "exec_command", Input: json.RawMessage(`{"cmd":"echo carved"}`)})
			answer.Reply.Usage = llm.Usage{InputTokens: &many, OutputTokens: &few}
		}
		return answer
	})
	h := codexServer(t, gated(model, model))
	var mu sync.Mutex
	paths := map[string]int{}
	checked := conforming(t, h.Server)
	seen := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		paths[r.Method+" "+r.URL.Path]++
		mu.Unlock()
		checked.ServeHTTP(w, r)
	}))
	defer seen.Close()
	out := runCodex(t, codex, seen.URL, t.TempDir(), "model_context_window = 100000\nmodel_auto_compact_token_limit = 50000\n")
	mu.Lock()
	defer mu.Unlock()
	delete(paths, "GET /v1/models")
	if len(paths) != 1 || paths["POST /v1/responses"] == 0 || compacted == 0 {
		var asked []string
		for _, req := range model.Requests() {
			asked = append(asked, req.Messages[len(req.Messages)-1].Text())
		}
		t.Errorf("codex called %v, and asked to compact %d times: %.3000q\n%s", paths, compacted, asked, out)
	}
}
