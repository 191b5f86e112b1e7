package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/sandbox"
)

// A turn is one run of the program. It implements sdk.Client.
type turn struct {
	cfg     Config
	req     *call.Request
	ctx     context.Context // context of the invocation
	secrets *redact.Set
	clone   *clone
	end     func() // stops the program
	session sdk.SessionId

	asking sync.Mutex // held while a question is asked, because a program may ask several at once

	mu    sync.Mutex // protects the fields below
	text  strings.Builder
	usage call.Usage
	err   error // reason why the turn was ended
}

// fail ends the turn with an error. Only the error of the first call is kept.
func (t *turn) fail(err error) {
	t.mu.Lock()
	if t.err == nil {
		t.err = err
	}
	t.mu.Unlock()
	t.end()
}

func (t *turn) failed() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

func (t *turn) spent() call.Usage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.usage
}

// run starts the program and runs one turn with it. When it returns, the program and its children have ended.
func (t *turn) run(policy sandbox.Policy, prompt string) error {
	running, end := context.WithCancel(t.ctx)
	defer end()
	t.end = end
	input, stdin, err := os.Pipe()
	if err != nil {
		return err
	}
	defer input.Close()
	defer stdin.Close()
	output, stdout := io.Pipe()
	stderr := &sandbox.Buffer{Max: 2048}
	cmd := sandbox.Command(running, policy, t.cfg.Command[0], t.cfg.Command[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = t.clone.dir, t.cfg.Env, input, stdout, stderr
	conn := sdk.NewClientSideConnection(t, stdin, output)
	conn.SetLogger(slog.New(slog.DiscardHandler))
	go func() { // otherwise a program that breaks the protocol would block
		<-conn.Done()
		output.Close()
	}()
	exited := make(chan error, 1)
	go func() {
		exit := cmd.Run()
		stdout.Close()
		input.Close() // otherwise a program that reads nothing would block the requests
		exited <- exit
	}()
	err = t.talk(running, conn, prompt)
	end()
	exit := <-exited
	switch cause := t.failed(); {
	case t.ctx.Err() != nil:
		return context.Cause(t.ctx)
	case cause != nil:
		return cause
	case err == nil:
		return nil
	case errors.As(err, new(*call.Error)):
		return err
	case exit != nil && !errors.Is(exit, context.Canceled) && !errors.As(exit, new(*sandbox.ExitError)):
		return unavailable("the program cannot be started: ", exit)
	}
	said := strings.Join(strings.Fields(stderr.Text(t.secrets.CleanCut)), " ")
	if said != "" {
		said = ": " + said
	}
	return &call.Error{Type: reasons.InvokeFailed, Message: fmt.Sprintf("the program failed under %s: %s%s", policy.Method, t.secrets.Text(reason(err)), said), Cause: err}
}

// reason returns the text of err or, if err is an error of the protocol, its message and data.
func reason(err error) string {
	if e, ok := errors.AsType[*sdk.RequestError](err); ok {
		text := e.Message
		if data, err := json.Marshal(e.Data); err == nil && e.Data != nil {
			text += " " + string(data)
		}
		return text
	}
	return err.Error()
}

// talk runs the turn. If ctx ends first, it cancels the program's session.
func (t *turn) talk(ctx context.Context, conn *sdk.ClientSideConnection, prompt string) error {
	about, err := conn.Initialize(ctx, sdk.InitializeRequest{
		ProtocolVersion:    sdk.ProtocolVersionNumber,
		ClientInfo:         &sdk.Implementation{Name: "stone", Version: "1"},
		ClientCapabilities: sdk.ClientCapabilities{Fs: sdk.FileSystemCapabilities{ReadTextFile: true, WriteTextFile: true}},
	})
	if err == nil && about.ProtocolVersion != sdk.ProtocolVersionNumber {
		err = unavailable("", fmt.Errorf("the program speaks version %d of the protocol: want %d", about.ProtocolVersion, sdk.ProtocolVersionNumber))
	}
	if err != nil {
		return err
	}
	opened, err := conn.NewSession(ctx, sdk.NewSessionRequest{Cwd: t.clone.dir, McpServers: []sdk.McpServer{}})
	if err != nil {
		return err
	}
	t.session = opened.SessionId
	if t.cfg.Mode != "" {
		if _, err = conn.SetSessionMode(ctx, sdk.SetSessionModeRequest{SessionId: t.session, ModeId: sdk.SessionModeId(t.cfg.Mode)}); err != nil {
			return err
		}
	}
	res, err := conn.Prompt(ctx, sdk.PromptRequest{SessionId: t.session, Prompt: []sdk.ContentBlock{sdk.TextBlock(prompt)}}) // Prompt sends session/cancel if ctx ends
	if err != nil {
		return err
	}
	if u := res.Usage; u != nil {
		read, written := value(u.CachedReadTokens), value(u.CachedWriteTokens)
		t.mu.Lock()
		t.usage.InputTokens, t.usage.CacheReadTokens, t.usage.CacheWriteTokens = u.InputTokens+read+written, read, written
		t.usage.OutputTokens = u.OutputTokens + value(u.ThoughtTokens)
		t.mu.Unlock()
	}
	if res.StopReason != sdk.StopReasonEndTurn {
		return &call.Error{Type: reasons.InvokeFailed, Message: fmt.Sprintf("the program stopped: %s", res.StopReason)}
	}
	return nil
}

func value(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// SessionUpdate implements sdk.Client. It streams text, and reports tool calls as progress.
func (t *turn) SessionUpdate(_ context.Context, n sdk.SessionNotification) error {
	switch u := n.Update; {
	case u.AgentMessageChunk != nil && u.AgentMessageChunk.Content.Text != nil:
		text := u.AgentMessageChunk.Content.Text.Text
		t.mu.Lock()
		size := t.text.Len() + len(text)
		if size <= maxAnswer {
			t.text.WriteString(text)
		}
		t.mu.Unlock()
		if size > maxAnswer {
			t.fail(&call.Error{Type: reasons.SchemaInvalid, Message: fmt.Sprintf("the program's answer has more than %d bytes", maxAnswer)})
			return nil
		}
		t.req.Voice.Say(event.Text, text)
	case u.AgentThoughtChunk != nil && u.AgentThoughtChunk.Content.Text != nil:
		t.req.Voice.Say(event.Thinking, u.AgentThoughtChunk.Content.Text.Text)
	case u.ToolCall != nil:
		event.At(t.ctx).Report().Progress(t.secrets.Text(u.ToolCall.Title), 0, 0)
	case u.UsageUpdate != nil && u.UsageUpdate.Cost != nil && u.UsageUpdate.Cost.Currency == "USD":
		t.mu.Lock()
		t.usage.USD = u.UsageUpdate.Cost.Amount
		t.mu.Unlock()
	}
	return nil
}

// allowed returns the option that permits a call once, or "" if a person must be asked.
func (t *turn) allowed(r sdk.RequestPermissionRequest) sdk.PermissionOptionId {
	if r.ToolCall.Kind == nil || !slices.Contains(t.cfg.Allow, string(*r.ToolCall.Kind)) {
		return ""
	}
	return first(r.Options, sdk.PermissionOptionKindAllowOnce)
}

// first returns the id of the first option with the given kind, or "" if there is none.
func first(options []sdk.PermissionOption, kind sdk.PermissionOptionKind) sdk.PermissionOptionId {
	for _, o := range options {
		if o.Kind == kind {
			return o.OptionId
		}
	}
	return ""
}
