package serve_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/internal/test/peer"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
)

// documented returns the block of docs/how-to/gateway.md that begins with a line, with the address of a server.
func documented(t *testing.T, first, url string) string {
	t.Helper()
	page, err := os.ReadFile("../docs/how-to/gateway.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(page), "\n"+first+"\n")
	block, _, closed := strings.Cut(block, "\n```")
	if !found || !closed {
		t.Fatalf("docs/how-to/gateway.md has no block that begins with %q", first)
	}
	return strings.ReplaceAll(first+"\n"+block+"\n", "http://127.0.0.1:8080", url)
}

// coders are the callers of the tests: the programs send the token as it is shown.
var coders = principals{"carver": {Name: "carver"}}

// Codex works with a model behind the gate: it runs the command that the model asks for.
func TestCodex(t *testing.T) {
	peer.Held(t, "@openai/codex", "answers", "its own tools")
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
	h := gatewayServer(t, gated(weak, model), coders)
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
	h := gatewayServer(t, gated(weak, strong), coders)
	out, err := execCodex(t, codex, h.URL, t.TempDir(), "")
	if n := len(strong.Requests()); n != 1 || err == nil || !strings.Contains(out, "polite: not polite") {
		t.Errorf("%d runs, %v:\n%s", n, err, out)
	}
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
	config := settings + documented(t, "# ~/.codex/config.toml", url)
	if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", codex, "exec", "--skip-git-repo-check", "--sandbox", "danger-full-access", "--cd", dir, "Carve a stone.")
	cmd.Env = append(os.Environ(), "CODEX_HOME="+home, "STONE_TOKEN=carver")
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// A conversation that is too long for its model is compacted by Codex itself, with a request
// to the model: it calls no path that the gateway does not have.
func TestCodexCompacts(t *testing.T) {
	peer.Held(t, "@openai/codex", "compaction")
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
	h := gatewayServer(t, gated(model, model), coders)
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

// runClaude lets Claude Code answer once in a folder, with the settings of the page, and returns what it says.
func runClaude(t *testing.T, url, dir string) (result string, failed bool) {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		need.Absent(t, "the package of Claude Code is the one for Linux on amd64")
	}
	program := filepath.Join(peer.Module(t, "@anthropic-ai/claude-code-linux-x64"), "claude")
	peer.Held(t, "@anthropic-ai/claude-code", "answers", "its own tools", "one paid request for a failure")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-p", "Carve a stone.", "--output-format", "json")
	cmd.Dir, cmd.WaitDelay = dir, time.Second
	cmd.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
	for line := range strings.Lines(documented(t, "export ANTHROPIC_BASE_URL=http://127.0.0.1:8080", url)) {
		setting, _, _ := strings.Cut(strings.TrimPrefix(line, "export "), " #")
		cmd.Env = append(cmd.Env, strings.TrimSpace(os.Expand(setting, func(string) string { return "carver" })))
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var said struct {
		Result  string
		IsError bool `json:"is_error"`
	}
	if unread := json.Unmarshal(out, &said); unread != nil {
		t.Fatalf("%v, %v: %s%s", err, unread, out, stderr.String())
	}
	return said.Result, said.IsError
}

// Claude Code works with a model behind the gate: it reads the file that the model asks for.
func TestClaudeCode(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "stone.txt"), []byte("granite\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	weak := says("whatever")
	model := script.Func(func(n int, req *llm.Request) script.Answer {
		for _, m := range req.Messages {
			if m.Role == llm.RoleTool {
				return script.Text("polite: " + m.Text())
			}
		}
		if n > 20 {
			return script.Text("polite: asked too often")
		}
		input, _ := json.Marshal(map[string]string{"file_path": filepath.Join(dir, "stone.txt")})
		return script.Calls(llm.ToolCall{ID: "call_1", Name: "Read", Input: input})
	})
	h := gatewayServer(t, gated(weak, model), coders)
	if result, failed := runClaude(t, h.URL, dir); failed || !strings.Contains(result, "polite:") || !strings.Contains(result, "granite") {
		t.Errorf("Claude Code says %q", result)
	}
}

// Claude Code asks once for an answer that the gate rejects, and shows why.
func TestClaudeCodeFailure(t *testing.T) {
	strong := says("whatever")
	h := gatewayServer(t, gated(says("whatever"), strong), coders)
	result, failed := runClaude(t, h.URL, t.TempDir())
	if n := len(strong.Requests()); n != 1 || !failed || !strings.Contains(result, "polite: not polite") {
		t.Errorf("%d runs: %q", n, result)
	}
}
