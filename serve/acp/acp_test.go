package acp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/inside"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/serve/acp"
	"github.com/stonelayer/stone/serve/api"
	"github.com/stonelayer/stone/tool"
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
	type order struct {
		Stone string `json:"stone"`
	}
	look := tool.Func("look", "Looks.", func(_ context.Context, o order) (string, error) { return o.Stone + " is grey", nil }, tool.Effects())
	buy := tool.Confirm(tool.Func("buy", "Buys.", func(_ context.Context, o order) (string, error) { return "bought " + o.Stone, nil }, tool.Effects("net")), tool.Ask)
	mason := agent.New("mason", reply, worker{gate}, agent.Config{Conversation: agent.ConversationOf(reply), User: asks, Use: []agent.Middleware{look, buy}})
	return []serve.Pipeline{{Name: "chat", Ashlar: chat}, {Name: "mason", Ashlar: mason}, {Name: "page", Ashlar: stone.Seq("page", write, approve, publish)}, {Name: "pick", Ashlar: stone.Seq("pick", which, pick)}}
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
	go func() { served <- acp.Serve(ctx, s, acp.Config{By: "user ada"}, in, out) }()
	e := &editor{T: t, gate: gate}
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

// A conversation continues, and another process loads it.
func TestConversation(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "stone.db"))
	e := start(t, db)
	id := e.session("chat")
	said, reason := e.prompt(id, "Hello")
	want(t, said, "I have read 1 message(s).")
	want(t, reason, "end_turn")
	said, _ = e.prompt(id, "And now?")
	want(t, said, "I have read 3 message(s).")
	e.stop()

	e = start(t, db)
	list, err := e.ListSessions(t.Context(), sdk.ListSessionsRequest{})
	if err != nil || len(list.Sessions) != 1 || list.Sessions[0].SessionId != id || *list.Sessions[0].Title != "Hello" {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := e.Prompt(t.Context(), sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{sdk.TextBlock("x")}}); err == nil {
		t.Error("a prompt of a session that was not loaded")
	}
	if _, err := e.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: "none", Cwd: "/tmp", McpServers: []sdk.McpServer{}}); err == nil {
		t.Error("a session that there is not was loaded")
	}
	loaded, err := e.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: id, Cwd: "/tmp", McpServers: []sdk.McpServer{}})
	if err != nil || loaded.Modes.CurrentModeId != "chat" || len(loaded.Modes.AvailableModes) != 4 {
		t.Errorf("%+v, %v", loaded, err)
	}
	want(t, e.said, "<Hello>I have read 1 message(s).<And now?>I have read 3 message(s).")
	said, _ = e.prompt(id, "Still there?")
	want(t, said, "I have read 5 message(s).")
}

// Two processes that prompt one session at the same time take turns: each turn has those before it, and none is lost, even
// if they say the same.
func TestTwoEditors(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "stone.db"))
	const rounds = 4
	first := start(t, db)
	id := first.session("chat")
	first.prompt(id, "Hello")
	editors := []*editor{first, start(t, db), start(t, db)}
	var all sync.WaitGroup
	for _, e := range editors[1:] {
		if _, err := e.ResumeSession(t.Context(), sdk.ResumeSessionRequest{SessionId: id, Cwd: "/tmp"}); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range editors {
		all.Go(func() {
			for range rounds {
				if _, err := e.Prompt(t.Context(), sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{sdk.TextBlock("More")}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	said, _ := first.prompt(id, "All?")
	want(t, said, fmt.Sprintf("I have read %d message(s).", 2*(1+rounds*len(editors))+1))
}

// An editor that closes a session leaves the question that another one has asked.
func TestCloseTwo(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "stone.db"))
	a, b := start(t, db), start(t, db)
	id := a.session("pick")
	said, _ := a.prompt(id, "stone")
	want(t, said, "Which stone?")
	if _, err := b.ResumeSession(t.Context(), sdk.ResumeSessionRequest{SessionId: id, Cwd: "/tmp"}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.CloseSession(t.Context(), sdk.CloseSessionRequest{SessionId: id}); err != nil {
		t.Fatal(err)
	}
	said, _ = a.prompt(id, "slate")
	want(t, said, "picked slate")
}

// What one editor answers, the other one asks no more. Its prompt is the next turn.
func TestAskedTwice(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "stone.db"))
	a, b := start(t, db), start(t, db)
	a.answer, b.answer = "never", "yes" // "never" is no choice: the user of a leaves it open
	id := a.session("page")
	ended := make(chan string, 1)
	go func() {
		said, _ := a.prompt(id, "slate")
		ended <- said
	}()
	for !strings.HasPrefix(statesOf(t, db), "waiting") {
		time.Sleep(5 * time.Millisecond)
	}
	if _, err := b.ResumeSession(t.Context(), sdk.ResumeSessionRequest{SessionId: id, Cwd: "/tmp"}); err != nil {
		t.Fatal(err)
	}
	said, _ := b.prompt(id, "chalk")
	want(t, said, "yes: About slate\n\nyes: About chalk")
	want(t, <-ended, "yes: About slate")
	want(t, len(b.asked), "2")
}

// The runs of tenants that share the database are in no session, whatever their labels say.
func TestTenants(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "stone.db"))
	e := start(t, db)
	id := e.session("chat")
	e.prompt(id, "Hello")
	e.prompt(id, "And now?")
	s, err := serve.New(serve.Config{Journal: db, Pipelines: pipelines(nil), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	acme := inside.As(s, serve.Principal{Tenant: "acme"})
	for pipeline, input := range map[string]string{"chat": `{"asks":"Of acme"}`, "page": `"Of acme"`, "pick": `"Of acme"`} {
		for _, session := range []string{string(id), "s-acme"} {
			run := session + pipeline
			labels := map[string]string{"acp-session": session, "acp-cwd": "/tmp", "acp-prompt": "Of acme"}
			if _, err := acme.Put(t.Context(), run, api.Start{Pipeline: pipeline, Input: json.RawMessage(input), Labels: labels}); err != nil {
				t.Fatal(err)
			}
			if r, err := acme.Result(t.Context(), run, time.Minute); err != nil || !r.Over() && r.State != journal.Waiting {
				t.Fatal(r, err)
			}
		}
	}
	said, _ := e.prompt(id, "Still there?")
	want(t, said, "I have read 5 message(s).")
	list, err := e.ListSessions(t.Context(), sdk.ListSessionsRequest{})
	if err != nil || len(list.Sessions) != 1 || *list.Sessions[0].Title != "Hello" {
		t.Errorf("%+v, %v", list, err)
	}
	if _, err := e.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: "s-acme", Cwd: "/tmp", McpServers: []sdk.McpServer{}}); err == nil {
		t.Error("a session of a tenant was loaded")
	}
}

// A word decides what a choice does.
func TestChoices(t *testing.T) {
	for choice, wants := range map[string]string{
		"no": "reject_once", "No, thanks": "reject_once", "no: too dear": "reject_once", "north": "allow_once", "notify me": "allow_once",
		"never": "reject_always", "Never again": "reject_always", "nevertheless": "allow_once",
		"always": "allow_always", "Always, here": "allow_always", "alwaysland": "allow_once", "yes": "allow_once", "": "allow_once",
	} {
		options, _ := acp.Choices(api.Question{Choices: []string{choice}})
		if len(options) != 1 || string(options[0].Kind) != wants {
			t.Errorf("%q: %v, want %s", choice, options, wants)
		}
	}
}

// Questions with choices ask for permission, and steps are shown.
func TestPermission(t *testing.T) {
	for answer, wants := range map[string][2]string{"yes": {"yes: About slate", "end_turn"}, "no": {"no: About slate", "end_turn"}, "": {"The turn is canceled.", "cancelled"}} {
		e := start(t, &journal.Memory{})
		e.answer = answer
		id := e.session("page")
		said, reason := e.prompt(id, "slate")
		if strings.HasPrefix(said, "canceled:") { // with the reason of the failure
			said = "The turn is canceled."
		}
		want(t, said, wants[0])
		want(t, reason, wants[1])
		want(t, e.asked, "[Publish About slate?[yes allow_once no reject_once]]")
		if answer == "yes" {
			want(t, e.steps, "[page/write done page/approve done page/publish done]")
		}
		e.stop()
	}
}

// Reasoning, text, the arguments of a call and its result are told as they come.
func TestTools(t *testing.T) {
	e := start(t, &journal.Memory{})
	e.answer = "always"
	id := e.session("mason")
	go func() {
		for {
			e.mu.Lock()
			n := len(e.steps)
			e.mu.Unlock()
			if n == 2 {
				close(e.gate)
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	said, _ := e.prompt(id, "look")
	want(t, said, "I look.\n\nSo slate is grey.")
	want(t, e.thought, "Let me think.")
	want(t, strings.Join(e.steps, "\n"), `look
{"stone":"sl|
map[stone:slate]|look: slate
done: slate is grey`)

	said, _ = e.prompt(id, "buy")
	want(t, said, "I buy.\n\nSo bought slate.")
	want(t, e.steps[0]+"|"+e.steps[len(e.steps)-1], "buy|done: bought slate")
	if len(e.asked) != 1 || !strings.HasSuffix(e.asked[0], "[yes allow_once no reject_once always allow_always never reject_always]") {
		t.Errorf("asked %q", e.asked)
	}
	e.answer = "no"
	e.prompt(id, "buy")
	want(t, strings.Contains(e.steps[len(e.steps)-1], "failed: "), "true")
}

// An answer that a model has begun anew is told once.
func TestBegunAnew(t *testing.T) {
	e := start(t, &journal.Memory{})
	id := e.session("mason")
	go func() {
		for said := ""; said != "Oh "; time.Sleep(5 * time.Millisecond) {
			e.mu.Lock()
			said = e.said
			e.mu.Unlock()
		}
		close(e.gate)
	}()
	said, _ := e.prompt(id, "again")
	want(t, said, "Oh \n\nSo again.")
}

// A turn that is cancelled in the middle of an answer leaves the session as it was before it.
func TestSecondAfterCancel(t *testing.T) {
	e := start(t, &journal.Memory{})
	id := e.session("mason")
	e.prompt(id, "first")
	go func() {
		for {
			e.mu.Lock()
			said := e.said
			e.mu.Unlock()
			if strings.HasPrefix(said, "So ") && !strings.HasPrefix(said, "So first") {
				_ = e.Cancel(context.Background(), sdk.CancelNotification{SessionId: id})
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	said, reason := e.prompt(id, "wait")
	want(t, said+string(reason), "So cancelled")
	said, reason = e.prompt(id, "second")
	want(t, said+string(reason), "So second.end_turn")
}

// A question without choices is answered by the next prompt, also in another process.
func TestQuestion(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "stone.db"))
	e := start(t, db)
	id := e.session("pick")
	said, _ := e.prompt(id, "stone")
	want(t, said, "Which stone?")
	e.stop()
	e = start(t, db)
	if _, err := e.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: id, Cwd: "/tmp", McpServers: []sdk.McpServer{}}); err != nil {
		t.Fatal(err)
	}
	want(t, e.said, "<stone>Which stone?")
	said, _ = e.prompt(id, "slate")
	want(t, said, "picked slate")
}

// statesOf are the states of the runs.
func statesOf(t *testing.T, db journal.Journal) string {
	t.Helper()
	runs, err := db.Runs(t.Context(), journal.Query{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	var states []string
	for _, r := range runs {
		states = append(states, string(r.State))
	}
	return strings.Join(states, " ")
}

// Cancelling a turn cancels its run. An editor that goes leaves it, and the next one waits for it.
func TestCancel(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "stone.db"))
	e := start(t, db)
	id := e.session("page")
	running := func() {
		for !strings.HasPrefix(statesOf(t, db), "running") {
			time.Sleep(5 * time.Millisecond)
		}
	}
	go func() {
		running()
		if err := e.Cancel(context.Background(), sdk.CancelNotification{SessionId: id}); err != nil {
			t.Error(err)
		}
	}()
	_, reason := e.prompt(id, "wait")
	want(t, reason, "cancelled")
	want(t, statesOf(t, db), "canceled")

	gone := make(chan error, 1)
	go func() {
		_, err := e.Prompt(context.Background(), sdk.PromptRequest{SessionId: id, Prompt: []sdk.ContentBlock{sdk.TextBlock("wait")}})
		gone <- err
	}()
	running()
	e.stop()
	if err := <-gone; err == nil {
		t.Error("a turn whose connection ended has no error")
	}
	want(t, statesOf(t, db), "drained canceled")
	e = start(t, db)
	e.answer = "yes"
	if _, err := e.ResumeSession(t.Context(), sdk.ResumeSessionRequest{SessionId: id, Cwd: "/tmp"}); err != nil {
		t.Fatal(err)
	}
	close(e.gate)
	said, _ := e.prompt(id, "slate") // the turn before asks first
	t.Log(said)
	if text, err := json.Marshal(e.asked); err != nil || len(e.asked) != 2 {
		t.Errorf("%s, %v", text, err)
	}
	want(t, statesOf(t, db), "done done canceled")
}
