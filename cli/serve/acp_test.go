package serve_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"
)

// editor is a client that says yes.
type editor struct {
	sdk.Client // nil: the editor has no files and no terminals
	mu         sync.Mutex
	said       string
}

func (e *editor) SessionUpdate(_ context.Context, n sdk.SessionNotification) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n.Update.AgentMessageChunk != nil {
		e.said += n.Update.AgentMessageChunk.Content.Text.Text
	}
	return nil
}

func (e *editor) RequestPermission(_ context.Context, r sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
	return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeSelected(r.Options[0].OptionId)}, nil
}

// The command serves the client of the Go SDK. When it is killed during a turn, the next one loads
// the session, and that turn continues.
func TestACPProcess(t *testing.T) {
	db := filepath.Join(t.TempDir(), "stone.db")
	start := func() (*editor, *sdk.ClientSideConnection, *exec.Cmd) {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "acp", "--db", db)
		cmd.Env, cmd.Stderr = append(os.Environ(), commandVar+"=1"), os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		e := new(editor)
		c := sdk.NewClientSideConnection(e, in, out)
		if _, err := c.Initialize(t.Context(), sdk.InitializeRequest{ProtocolVersion: sdk.ProtocolVersionNumber}); err != nil {
			t.Fatal(err)
		}
		return e, c, cmd
	}
	say := func(c *sdk.ClientSideConnection, id sdk.SessionId, text string) (sdk.PromptResponse, error) {
		return c.Prompt(t.Context(), sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{sdk.TextBlock(text)}})
	}
	e, c, cmd := start()
	s, err := c.NewSession(t.Context(), sdk.NewSessionRequest{Cwd: "/", McpServers: []sdk.McpServer{}})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := say(c, s.SessionId, "slate"); err != nil || res.StopReason != sdk.StopReasonEndTurn || e.said != "yes: About slate" {
		t.Errorf("%v, %v, said %q", res, err, e.said)
	}
	go func() { _, _ = say(c, s.SessionId, "wait") }()
	for !strings.Contains(runsOf(t, db), "running") {
		time.Sleep(10 * time.Millisecond)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()

	_, c, cmd = start()
	if _, err := c.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: s.SessionId, Cwd: "/", McpServers: []sdk.McpServer{}}); err != nil {
		t.Fatal(err)
	}
	go func() {
		for !strings.Contains(runsOf(t, db), "running") {
			time.Sleep(10 * time.Millisecond)
		}
		_ = c.Cancel(context.Background(), sdk.CancelNotification{SessionId: s.SessionId})
	}()
	if res, err := say(c, s.SessionId, "chalk"); err != nil || res.StopReason != sdk.StopReasonCancelled {
		t.Errorf("%v, %v", res, err)
	}
	if got := runsOf(t, db); !ended.MatchString(got) {
		t.Errorf("the journal has:\n%s", got)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
}
