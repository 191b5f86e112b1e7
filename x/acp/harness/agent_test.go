package harness_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/x/acp"
)

// TestMain makes the test binary an agent: its arguments are "agent", a name, and a file that notes its starts.
func TestMain(m *testing.M) {
	if len(os.Args) < 4 || os.Args[1] != "agent" {
		os.Exit(m.Run())
	}
	log, err := os.OpenFile(os.Args[3], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(log, "started")
	if os.Args[2] == "stone" {
		err = serveStone()
	} else {
		c := &coder{does: os.Args[2], log: log}
		c.AgentSideConnection = sdk.NewAgentSideConnection(c, os.Stdout, os.Stdin)
		c.SetLogger(slog.New(slog.DiscardHandler))
		<-c.Done()
	}
	if err != nil {
		panic(err)
	}
}

var (
	wish     = dag.NewType[string]("wish")
	approval = dag.NewType[stone.Answer]("approval")
	done     = dag.NewType[string]("done")
)

// serveStone is stone acp with a pipeline that asks, and changes a file.
func serveStone() error {
	may := stone.Ask("may", wish, approval, func(string) string { return "May I edit sum.go?" }, stone.Choices("yes", "no"))
	edit := stone.Func2("edit", wish, approval, done, func(_ context.Context, s string, a stone.Answer) (string, error) {
		if a.Response != "yes" {
			return "refused", nil
		}
		return "edited", os.WriteFile("sum.go", []byte(source(s)), 0o600)
	}, stone.Effects("fs"))
	db, err := sqlite.Open(sqlite.Memory, sqlite.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	s, err := serve.New(serve.Config{Journal: db, Pipelines: []serve.Pipeline{{Name: "edit", Ashlar: stone.Seq("edit", may, edit)}}, Grant: []string{"fs"},
		Scan: 10 * time.Millisecond, Grace: 100 * time.Millisecond, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { s.Run(ctx); close(ended) }()
	defer func() { cancel(); <-ended }()
	return acp.Serve(ctx, s, "user ada", os.Stdin, os.Stdout)
}

// source is right once the prompt tells that the first edits were rejected.
func source(prompt string) string {
	sign := "-"
	if strings.Contains(prompt, "They were rejected") && strings.Contains(prompt, "Sum(2, 3) = -1") {
		sign = "+"
	}
	return fmt.Sprintf("package sum\n\nfunc Sum(a, b int) int { return a %s b }\n", sign)
}

// coder is a scripted agent.
type coder struct {
	*sdk.AgentSideConnection
	does, cwd string
	log       *os.File
}

func (c *coder) Initialize(context.Context, sdk.InitializeRequest) (sdk.InitializeResponse, error) {
	if c.does == "another version" {
		return sdk.InitializeResponse{ProtocolVersion: sdk.ProtocolVersionNumber + 1}, nil
	}
	return sdk.InitializeResponse{ProtocolVersion: sdk.ProtocolVersionNumber}, nil
}

func (c *coder) NewSession(_ context.Context, r sdk.NewSessionRequest) (sdk.NewSessionResponse, error) {
	c.cwd = r.Cwd
	return sdk.NewSessionResponse{SessionId: "s"}, nil
}

func (c *coder) Prompt(ctx context.Context, r sdk.PromptRequest) (res sdk.PromptResponse, err error) {
	prompt := r.Prompt[0].Text.Text
	said := "edited"
	switch c.does {
	case "hang":
		child := exec.Command("/bin/sleep", "1000")
		if err = child.Start(); err == nil {
			fmt.Fprintln(c.log, child.Process.Pid)
			select {}
		}
	case "large file":
		large := filepath.Join(c.cwd, "large")
		if err = os.WriteFile(large, make([]byte, 8<<20+1), 0o600); err == nil {
			_, err = c.ReadTextFile(ctx, sdk.ReadTextFileRequest{SessionId: "s", Path: large})
		}
	case "escape":
		said = c.escape(ctx)
	case "cost":
		err = c.SessionUpdate(ctx, sdk.SessionNotification{SessionId: "s", Update: sdk.SessionUpdate{UsageUpdate: &sdk.SessionUsageUpdate{Cost: &sdk.Cost{Amount: 0.25, Currency: "USD"}, Size: 1, SessionUpdate: "usage_update"}}})
		res.Usage = &sdk.Usage{InputTokens: 10, OutputTokens: 5, CachedReadTokens: sdk.Ptr(2), TotalTokens: 17}
	case "ask":
		var p sdk.RequestPermissionResponse
		path := filepath.Join(c.cwd, "sum.go")
		p, err = c.RequestPermission(ctx, sdk.RequestPermissionRequest{SessionId: "s",
			ToolCall: sdk.ToolCallUpdate{ToolCallId: "1", Title: sdk.Ptr("Edit " + path), Kind: sdk.Ptr(sdk.ToolKindEdit), RawInput: map[string]any{"path": path}},
			Options: []sdk.PermissionOption{{OptionId: "a", Name: "Allow", Kind: sdk.PermissionOptionKindAllowOnce},
				{OptionId: "b", Name: "Always", Kind: sdk.PermissionOptionKindAllowAlways}, {OptionId: "r", Name: "Reject", Kind: sdk.PermissionOptionKindRejectOnce},
				{OptionId: "x", Name: "Allow", Kind: sdk.PermissionOptionKindAllowAlways}}}) // of a name that is taken
		if err != nil || p.Outcome.Selected == nil || p.Outcome.Selected.OptionId != "a" {
			said = "refused"
			break
		}
		fallthrough
	case "fix":
		_, err = c.WriteTextFile(ctx, sdk.WriteTextFileRequest{SessionId: "s", Path: filepath.Join(c.cwd, "sum.go"), Content: source(prompt)})
	}
	if err == nil {
		err = c.SessionUpdate(ctx, sdk.SessionNotification{SessionId: "s", Update: sdk.UpdateAgentMessageText(said)})
	}
	if res.StopReason = sdk.StopReasonEndTurn; c.does == "refuse" {
		res.StopReason = sdk.StopReasonRefusal
	}
	return res, err
}

// escape tries to write and read outside of the clone, in each way.
func (c *coder) escape(ctx context.Context) string {
	outside := filepath.Dir(c.log.Name())
	var out strings.Builder
	try := func(what string, err error) { fmt.Fprintf(&out, "%s: %v\n", what, err == nil) }
	write := func(path string) error {
		_, err := c.WriteTextFile(ctx, sdk.WriteTextFileRequest{SessionId: "s", Path: path, Content: "x"})
		return err
	}
	try("link", os.Symlink(outside, filepath.Join(c.cwd, "link")))
	try("by protocol", write(filepath.Join(outside, "hidden", "a")))
	try("by dots", write(c.cwd+"/../a"))
	try("by link", write(filepath.Join(c.cwd, "link", "hidden", "a")))
	try("git", write(filepath.Join(c.cwd, ".git", "config")))
	_, err := c.ReadTextFile(ctx, sdk.ReadTextFileRequest{SessionId: "s", Path: filepath.Join(outside, "hidden", "key")})
	try("read", err)
	try("directly", os.WriteFile(filepath.Join(outside, "hidden", "b"), nil, 0o600))
	return out.String()
}

func (c *coder) Authenticate(context.Context, sdk.AuthenticateRequest) (r sdk.AuthenticateResponse, err error) {
	return r, nil
}
func (c *coder) Cancel(context.Context, sdk.CancelNotification) error { return nil }
func (c *coder) CloseSession(context.Context, sdk.CloseSessionRequest) (r sdk.CloseSessionResponse, err error) {
	return r, nil
}
func (c *coder) ListSessions(context.Context, sdk.ListSessionsRequest) (r sdk.ListSessionsResponse, err error) {
	return r, nil
}
func (c *coder) ResumeSession(context.Context, sdk.ResumeSessionRequest) (r sdk.ResumeSessionResponse, err error) {
	return r, nil
}
func (c *coder) SetSessionConfigOption(context.Context, sdk.SetSessionConfigOptionRequest) (r sdk.SetSessionConfigOptionResponse, err error) {
	return r, nil
}
func (c *coder) SetSessionMode(context.Context, sdk.SetSessionModeRequest) (r sdk.SetSessionModeResponse, err error) {
	return r, nil
}

// repository makes a repository of a package whose tests fail.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":      "module sum\n\ngo 1.26\n",
		"sum.go":      "package sum\n\nfunc Sum(a, b int) int { return 0 }\n",
		"sum_test.go": "package sum\n\nimport \"testing\"\n\nfunc TestSum(t *testing.T) {\n\tif n := Sum(2, 3); n != 5 {\n\t\tt.Errorf(\"Sum(2, 3) = %d\", n)\n\t}\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, bytes.TrimSpace(out))
		}
	}
	return dir
}
