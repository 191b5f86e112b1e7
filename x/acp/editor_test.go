package acp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"sync"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/tool"
	"github.com/stonelayer/stone/x/acp"
)

var (
	topic    = dag.NewType[string]("topic")
	draft    = dag.NewType[string]("draft")
	page     = dag.NewType[string]("page")
	approval = dag.NewType[stone.Answer]("approval")
	asks     = dag.NewType[string]("asks")
	reply    = dag.NewType[agent.Text]("reply")
	wish     = dag.NewType[stone.Answer]("wish")
)

// editor is the client side of a connection, with a user who answers.
type editor struct {
	*testing.T
	*sdk.ClientSideConnection
	answer  string // the option that the user chooses; empty cancels
	asked   []string
	mu      sync.Mutex
	said    string
	steps   []string
	thought string
	gate    chan struct{} // of the pipelines
	leave   func() error  // ends what the editor says; it still listens
	stop    func()
}

// worker is a model that calls the tool which the user names. Its answer to "wait" stops in the middle until the gate
// opens, and so do the arguments of its call for "look". Its answer to "again" begins anew after the gate.
type worker struct{ gate <-chan struct{} }

// Stream implements llm.Model.
func (w worker) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	last := req.Messages[len(req.Messages)-1]
	text := last.Text()
	answer, deltas, at := llm.Reply{Text: "So " + text + "."}, []llm.Delta{{Kind: llm.Text, Text: "So "}, {Kind: llm.Text, Text: text + "."}}, 0
	switch {
	case last.Role == llm.RoleTool:
	case text == "wait":
		at = 1
	case text == "again":
		deltas, at = append([]llm.Delta{{Kind: llm.Text, Text: "Oh "}, {Kind: llm.Restart}}, deltas...), 1
	case text == "look" || text == "buy":
		call := llm.ToolCall{ID: "c", Name: text, Input: json.RawMessage(`{"stone":"slate"}`)}
		answer = llm.Reply{Text: "I " + text + ".", Reasoning: "Let me think.", ToolCalls: []llm.ToolCall{call}}
		deltas = []llm.Delta{{Kind: llm.Reasoning, Text: "Let me "}, {Kind: llm.Reasoning, Text: "think."}, {Kind: llm.Text, Text: "I " + text + "."},
			{Kind: llm.ToolCallStart, Call: &call}, {Kind: llm.ToolInput, Text: `{"stone":"sl`}, {Kind: llm.ToolInput, Text: `ate"}`}}
		if text == "look" {
			at = len(deltas) - 1
		}
	}
	return func(yield func(llm.Delta, error) bool) {
		for i, d := range append(deltas, llm.Delta{Kind: llm.Done, Reply: &answer}) {
			if i == at && at > 0 {
				select {
				case <-w.gate:
				case <-ctx.Done():
					yield(llm.Delta{}, ctx.Err())
					return
				}
			}
			if !yield(d, nil) {
				return
			}
		}
	}
}

// pipelines are published. With the text "wait", a page waits for the gate.
func pipelines(gate <-chan struct{}) []serve.Pipeline {
	write := stone.Func("write", topic, draft, func(ctx context.Context, s string) (string, error) {
		if s == "wait" {
			select {
			case <-gate:
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
		return "About " + s, nil
	}, stone.Effects())
	approve := stone.Ask("approve", draft, approval, func(s string) string { return "Publish " + s + "?" }, stone.Choices("yes", "no", "no: …"))
	publish := stone.Func2("publish", draft, approval, page, func(_ context.Context, s string, a stone.Answer) (string, error) { return a.Response + ": " + s, nil }, stone.Effects())
	which := stone.Ask("which", topic, wish, func(s string) string { return "Which " + s + "?" })
	pick := stone.Func("pick", wish, page, func(_ context.Context, a stone.Answer) (string, error) { return "picked " + a.Response, nil }, stone.Effects())
	model := script.Func(func(_ int, req *llm.Request) script.Answer {
		return script.Text(fmt.Sprintf("I have read %d message(s).", len(req.Messages)))
	})
	chat := agent.New("chat", reply, model, agent.Config{Conversation: agent.ConversationOf(reply), User: asks})
	sees := script.Func(func(_ int, req *llm.Request) script.Answer {
		return script.Text(fmt.Sprint(req.Messages[len(req.Messages)-1].Media()))
	})
	eye := agent.New("eye", reply, sees, agent.Config{Conversation: agent.ConversationOf(reply), User: asks, Media: agent.MediaOf(dag.NewType[[]*llm.Media]("files"))})
	type order struct {
		Stone string `json:"stone"`
	}
	look := tool.Func("look", "Looks.", func(_ context.Context, o order) (string, error) { return o.Stone + " is grey", nil }, tool.Effects())
	buy := tool.Confirm(tool.Func("buy", "Buys.", func(_ context.Context, o order) (string, error) { return "bought " + o.Stone, nil }, tool.Effects("net")), tool.Ask)
	mason := agent.New("mason", reply, worker{gate}, agent.Config{Conversation: agent.ConversationOf(reply), User: asks, Use: []agent.Middleware{look, buy}})
	return []serve.Pipeline{{Name: "chat", Ashlar: chat}, {Name: "eye", Ashlar: eye}, {Name: "mason", Ashlar: mason}, {Name: "page", Ashlar: stone.Seq("page", write, approve, publish)}, {Name: "pick", Ashlar: stone.Seq("pick", which, pick)}}
}

func open(t *testing.T, file string) journal.Journal {
	db, err := sqlite.Open(file, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// start starts the program that an editor starts, over pipes.
func start(t *testing.T, db journal.Journal) *editor {
	gate := make(chan struct{})
	s, err := serve.New(serve.Config{Journal: db, Pipelines: pipelines(gate), Scan: 10 * time.Millisecond, Grace: 100 * time.Millisecond, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	in, toAgent := io.Pipe()
	fromAgent, out := io.Pipe()
	running, served := make(chan struct{}), make(chan error, 1)
	go func() { s.Run(ctx); close(running) }()
	go func() { served <- acp.Serve(ctx, s, "user ada", in, out) }()
	e := &editor{T: t, gate: gate, leave: toAgent.Close}
	e.ClientSideConnection = sdk.NewClientSideConnection(e, toAgent, fromAgent)
	e.SetLogger(slog.New(slog.DiscardHandler))
	e.stop = sync.OnceFunc(func() { // as an editor that goes
		_ = toAgent.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
		_ = fromAgent.Close()
		cancel()
		<-running
	})
	t.Cleanup(e.stop)
	if _, err := e.Initialize(t.Context(), sdk.InitializeRequest{ProtocolVersion: sdk.ProtocolVersionNumber}); err != nil {
		t.Fatal(err)
	}
	return e
}

func (e *editor) RequestPermission(ctx context.Context, r sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	names := []string{}
	for _, o := range r.Options {
		names = append(names, o.Name+" "+string(o.Kind))
	}
	e.asked = append(e.asked, fmt.Sprint(*r.ToolCall.Title, names))
	if e.answer == "never" {
		<-ctx.Done()
		return sdk.RequestPermissionResponse{}, ctx.Err()
	}
	for _, o := range r.Options {
		if o.Name == e.answer {
			return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeSelected(o.OptionId)}, nil
		}
	}
	return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeCancelled()}, nil
}

func (e *editor) SessionUpdate(_ context.Context, n sdk.SessionNotification) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch u := n.Update; {
	case u.AgentMessageChunk != nil:
		e.said += u.AgentMessageChunk.Content.Text.Text
	case u.UserMessageChunk != nil:
		e.said += "<" + u.UserMessageChunk.Content.Text.Text + ">"
	case u.AgentThoughtChunk != nil:
		e.thought += u.AgentThoughtChunk.Content.Text.Text
	case u.ToolCall != nil:
		e.steps = append(e.steps, u.ToolCall.Title)
	case u.ToolCallUpdate != nil:
		step := ""
		if c := u.ToolCallUpdate; c.RawInput != nil {
			step = fmt.Sprint(c.RawInput, "|")
		}
		if c := u.ToolCallUpdate; c.Title != nil {
			step += *c.Title
		}
		if c := u.ToolCallUpdate; c.Status != nil && *c.Status == sdk.ToolCallStatusCompleted {
			step += "done"
		} else if c.Status != nil && *c.Status == sdk.ToolCallStatusFailed {
			step += "failed"
		}
		if c := u.ToolCallUpdate; c.RawOutput != nil {
			step += fmt.Sprint(": ", c.RawOutput)
		}
		e.steps = append(e.steps, step)
	}
	return nil
}

func (*editor) ReadTextFile(context.Context, sdk.ReadTextFileRequest) (r sdk.ReadTextFileResponse, err error) {
	return r, sdk.NewMethodNotFound("fs/read_text_file")
}

func (*editor) WriteTextFile(context.Context, sdk.WriteTextFileRequest) (r sdk.WriteTextFileResponse, err error) {
	return r, sdk.NewMethodNotFound("fs/write_text_file")
}

func (*editor) CreateTerminal(context.Context, sdk.CreateTerminalRequest) (r sdk.CreateTerminalResponse, err error) {
	return r, sdk.NewMethodNotFound("terminal/create")
}

func (*editor) KillTerminal(context.Context, sdk.KillTerminalRequest) (r sdk.KillTerminalResponse, err error) {
	return r, sdk.NewMethodNotFound("terminal/kill")
}

func (*editor) TerminalOutput(context.Context, sdk.TerminalOutputRequest) (r sdk.TerminalOutputResponse, err error) {
	return r, sdk.NewMethodNotFound("terminal/output")
}

func (*editor) ReleaseTerminal(context.Context, sdk.ReleaseTerminalRequest) (r sdk.ReleaseTerminalResponse, err error) {
	return r, sdk.NewMethodNotFound("terminal/release")
}

func (*editor) WaitForTerminalExit(context.Context, sdk.WaitForTerminalExitRequest) (r sdk.WaitForTerminalExitResponse, err error) {
	return r, sdk.NewMethodNotFound("terminal/wait_for_exit")
}

// session opens a session in a mode.
func (e *editor) session(mode string) sdk.SessionId {
	e.Helper()
	res, err := e.NewSession(e.Context(), sdk.NewSessionRequest{Cwd: "/tmp", McpServers: []sdk.McpServer{}})
	if err != nil {
		e.Fatal(err)
	}
	if _, err := e.SetSessionMode(e.Context(), sdk.SetSessionModeRequest{SessionId: res.SessionId, ModeId: sdk.SessionModeId(mode)}); err != nil {
		e.Fatal(err)
	}
	return res.SessionId
}

// prompt takes a turn, and returns what was said.
func (e *editor) prompt(id sdk.SessionId, text string) (string, sdk.StopReason) {
	e.Helper()
	e.mu.Lock()
	e.said, e.thought, e.steps = "", "", nil
	e.mu.Unlock()
	res, err := e.Prompt(e.Context(), sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{sdk.TextBlock(text)}})
	if err != nil {
		e.Fatal(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.said, res.StopReason
}

func want(t *testing.T, got any, want string) {
	t.Helper()
	if fmt.Sprint(got) != want {
		t.Errorf("got  %v\nwant %s", got, want)
	}
}
