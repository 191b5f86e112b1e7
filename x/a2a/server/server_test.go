package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2aclient"
	"github.com/a2aproject/a2a-go/v2/a2aclient/agentcard"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/x/a2a/server"
)

type doc struct {
	Text string `json:"text"`
	Lang string `json:"lang,omitempty"`
}

type scan struct {
	Note  string       `json:"note,omitempty"`
	Front *llm.Media   `json:"front"`
	More  []*llm.Media `json:"more,omitempty"`
}

var (
	order    = dag.NewType[doc]("order")
	draft    = dag.NewType[string]("draft")
	page     = dag.NewType[string]("page")
	approval = dag.NewType[stone.Answer]("approval")
	scans    = dag.NewType[scan]("scan")
	copied   = dag.NewType[scan]("copied")
	asks     = dag.NewType[string]("asks")
	reply    = dag.NewType[agent.Text]("reply")
	notes    = dag.NewType[agent.Text]("notes")
)

// slow is a model. Asked "slowly", it writes the rest of its answer when somebody has read the first word.
type slow struct {
	llm.Model
	read <-chan struct{}
}

func (m slow) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		for d, err := range m.Model.Stream(ctx, req) {
			if d.Kind == llm.Text && req.Messages[len(req.Messages)-1].Text() == "slowly" {
				first, rest, _ := strings.Cut(d.Text, " ")
				one := d
				if one.Text = first; !yield(one, nil) {
					return
				}
				select {
				case <-m.read:
				case <-ctx.Done():
					yield(llm.Delta{}, ctx.Err())
					return
				}
				d.Text = " " + rest
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// house is a server over a journal that outlives it.
type house struct {
	*testing.T
	journal journal.Journal
	access  serve.Access
	cfg     server.Config
	written atomic.Int32
	gate    chan struct{} // "wait" waits until it is closed
	read    chan struct{} // what is asked "slowly" waits for a value
	file    string        // or this file exists, if it is not empty
	url     string
	stop    func()
}

func newHouse(t *testing.T) *house {
	db, err := sqlite.Open(filepath.Join(t.TempDir(), "stone.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := &house{T: t, journal: db, gate: make(chan struct{}), read: make(chan struct{}, 1), cfg: server.Config{Private: true}}
	t.Cleanup(func() {
		h.stop()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	h.start()
	return h
}

func (h *house) start() {
	write := stone.Func("write", order, draft, func(ctx context.Context, o doc) (string, error) {
		h.written.Add(1)
		switch o.Text {
		case "bad":
			return "", stone.Fail("refused", "not this text")
		case "wait":
			select {
			case <-h.gate:
			case <-exists(h.file):
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
		return "About " + o.Text, nil
	}, stone.Effects())
	approve := stone.Ask("approve", draft, approval, func(s string) string { return "Publish " + s + "?" }, stone.Choices("yes", "no"))
	again := stone.Ask("sure", draft, dag.NewType[stone.Answer]("sure"), func(s string) string { return "Sure?" }, stone.Choices("yes", "no"))
	publish := stone.Func2("publish", draft, approval, page, func(_ context.Context, s string, a stone.Answer) (string, error) { return a.Response + ": " + s, nil }, stone.Effects())
	model := script.Func(func(_ int, req *llm.Request) script.Answer {
		if req.Messages[len(req.Messages)-1].Text() == "Break" {
			return script.Fail(errors.New("overloaded"))
		}
		return script.Text(fmt.Sprintf("I have read %d message(s).", len(req.Messages)))
	})
	chat := agent.New("chat", reply, slow{model, h.read}, agent.Config{Conversation: agent.ConversationOf(reply), User: asks})
	judged := stone.Seq("judged", agent.New("notes", notes, script.Func(func(int, *llm.Request) script.Answer { return script.Text("Thinking.") }), agent.Config{User: asks}),
		agent.New("answer", reply, script.Func(func(n int, req *llm.Request) script.Answer {
			return script.Text([]string{"Bad.", "Good."}[len(req.Messages)/2])
		}), agent.Config{User: asks, Adversary: stone.Func("judge", reply, notes, func(_ context.Context, a agent.Text) (agent.Text, error) {
			if a.Text == "Bad." {
				return a, stone.Fail("rude", "be polite")
			}
			return a, nil
		})}))
	s, err := serve.New(serve.Config{
		Journal: h.journal, Access: h.access, Scan: 10 * time.Millisecond, Grace: 100 * time.Millisecond, Log: slog.New(slog.DiscardHandler), Mounts: server.Mounts(h.cfg),
		Pipelines: []serve.Pipeline{
			{Name: "draft", Ashlar: write, Description: "Write a draft."}, {Name: "page", Ashlar: stone.Seq("page", write, approve, publish)},
			{Name: "copy", Ashlar: stone.Func("copy", scans, copied, func(_ context.Context, s scan) (scan, error) { return s, nil }, stone.Effects())},
			{Name: "careful", Ashlar: stone.Seq("careful", write, approve, again, publish)}, {Name: "chat", Ashlar: chat}, {Name: "eye", Ashlar: eye()}, {Name: "judged", Ashlar: judged},
		},
	})
	if err != nil {
		h.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { s.Run(ctx); close(ended) }()
	over := httptest.NewServer(s)
	h.url, h.stop = over.URL, sync.OnceFunc(func() { cancel(); over.CloseClientConnections(); <-ended; over.Close() })
}

// client returns a client of the SDK over a protocol.
func (h *house) client(over sdk.TransportProtocol) *a2aclient.Client {
	h.Helper()
	card, err := agentcard.NewResolver(nil).Resolve(h.Context(), h.url)
	if err != nil {
		h.Fatal(err)
	}
	c, err := a2aclient.NewFromCard(h.Context(), card, a2aclient.WithConfig(a2aclient.Config{PreferredTransports: []sdk.TransportProtocol{over}}))
	if err != nil {
		h.Fatal(err)
	}
	return c
}

func message(skill, text string) *sdk.SendMessageRequest {
	m := sdk.NewMessage(sdk.MessageRoleUser, sdk.NewTextPart(text))
	m.SetMeta("skill", skill)
	return &sdk.SendMessageRequest{Message: m}
}

// answer is a message of a task.
func answer(t *sdk.Task, text string) *sdk.SendMessageRequest {
	return &sdk.SendMessageRequest{Message: sdk.NewMessageForTask(sdk.MessageRoleUser, t, sdk.NewTextPart(text))}
}

func (h *house) send(c *a2aclient.Client, req *sdk.SendMessageRequest) *sdk.Task {
	h.Helper()
	res, err := c.SendMessage(h.Context(), req)
	if err != nil {
		h.Fatal(err)
	}
	return res.(*sdk.Task)
}

// said is the state and what is said of a task: its result, or the message of its status.
func shown(t *sdk.Task) string {
	text := strings.ToLower(strings.TrimPrefix(string(t.Status.State), "TASK_STATE_")) + ":"
	parts := sdk.ContentParts(nil)
	if len(t.Artifacts) > 0 {
		parts = t.Artifacts[0].Parts
	} else if t.Status.Message != nil {
		parts = t.Status.Message.Parts[:1]
	}
	for _, p := range parts {
		if text += " " + p.Text(); p.Data() != nil {
			data, _ := json.Marshal(p.Data())
			text += string(data)
		}
	}
	return text
}

func want(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

var protocols = []sdk.TransportProtocol{sdk.TransportProtocolJSONRPC, sdk.TransportProtocolHTTPJSON}

// overBoth tests a house of its own over each protocol.
func overBoth(t *testing.T, test func(t *testing.T, h *house, c *a2aclient.Client)) {
	for _, over := range protocols {
		t.Run(string(over), func(t *testing.T) {
			h := newHouse(t)
			test(t, h, h.client(over))
		})
	}
}

func TestTasks(t *testing.T) {
	overBoth(t, func(t *testing.T, h *house, c *a2aclient.Client) {
		req := message("draft", "slate")
		done := h.send(c, req)
		want(t, shown(done), "completed: About slate")
		if again := h.send(c, req); again.ID != done.ID || h.written.Load() != 1 {
			t.Errorf("the message was sent again: task %s and %s, written %d times", done.ID, again.ID, h.written.Load())
		}
		failed := h.send(c, message("draft", "bad"))
		want(t, shown(failed), "failed: refused: not this text (at write)")

		waiting := h.send(c, message("page", "slate"))
		want(t, shown(waiting), "input_required: Publish About slate?")
		if _, err := c.SendMessage(t.Context(), answer(waiting, "perhaps")); err == nil || !strings.Contains(err.Error(), "want one of: yes, no") {
			t.Errorf("an answer that is none: %v", err)
		}
		published := h.send(c, answer(waiting, "yes"))
		want(t, shown(published), "completed: yes: About slate")
		if n := len(published.History); n != 2 || published.History[1].Parts[0].Text() != "yes" {
			t.Errorf("the history has %d messages: %v", n, published.History)
		}
		if _, err := c.SendMessage(t.Context(), answer(published, "more")); !errors.Is(err, sdk.ErrUnsupportedOperation) {
			t.Errorf("a message of a task that is over: %v", err)
		}
		got, err := c.GetTask(t.Context(), &sdk.GetTaskRequest{ID: published.ID})
		if err != nil || shown(got) != shown(published) {
			t.Errorf("%v, %v", got, err)
		}
		list, err := c.ListTasks(t.Context(), &sdk.ListTasksRequest{Status: sdk.TaskStateCompleted, IncludeArtifacts: true})
		if err != nil || len(list.Tasks) != 2 || list.TotalSize != 2 || shown(list.Tasks[0]) != shown(published) {
			t.Errorf("%+v, %v", list, err)
		}
		one, err := c.ListTasks(t.Context(), &sdk.ListTasksRequest{ContextID: failed.ContextID})
		if err != nil || len(one.Tasks) != 1 || one.Tasks[0].ID != failed.ID {
			t.Errorf("%+v, %v", one, err)
		}
	})
}

// Files of a message are in the input, and files of a result are in its artifact.
func TestFiles(t *testing.T) {
	overBoth(t, func(t *testing.T, h *house, c *a2aclient.Client) {
		file := func(field, name, content string) *sdk.Part {
			p := sdk.NewRawPart([]byte(content))
			p.Filename = name
			p.SetMeta("field", field)
			return p
		}
		send := func(skill string, parts ...*sdk.Part) (*sdk.Task, error) {
			m := sdk.NewMessage(sdk.MessageRoleUser, parts...)
			m.SetMeta("skill", skill)
			res, err := c.SendMessage(t.Context(), &sdk.SendMessageRequest{Message: m})
			if err != nil {
				return nil, err
			}
			return res.(*sdk.Task), nil
		}
		linked := sdk.NewFileURLPart("https://test.invalid/b.pdf", "application/pdf")
		linked.SetMeta("field", "more")
		done, err := send("copy", sdk.NewDataPart(map[string]any{"note": "slate"}), file("more", "c.txt", "c"), file("front", "a.png", "\x89PNG\r\n\x1a\n"), linked)
		if err != nil {
			t.Fatal(err)
		}
		want(t, shown(done), `completed: {"note":"slate"}   `)
		got, err := json.Marshal(done.Artifacts[0].Parts[1:])
		if err != nil {
			t.Fatal(err)
		}
		want(t, string(got), `[{"raw":"iVBORw0KGgo=","filename":"a.png","mediaType":"image/png","metadata":{"field":"front"}},`+
			`{"raw":"Yw==","filename":"c.txt","mediaType":"text/plain","metadata":{"field":"more"}},`+
			`{"url":"https://test.invalid/b.pdf","mediaType":"application/pdf","metadata":{"field":"more"}}]`)
		for _, bad := range []struct {
			skill string
			parts []*sdk.Part
			want  string
		}{
			{"draft", []*sdk.Part{file("", "a.png", "x")}, `the skill "draft": it takes no files`},
			{"copy", []*sdk.Part{file("", "a.png", "x")}, `several fields take files: put one into the metadata of the part, as {"field": "front"}: front, more`},
			{"copy", []*sdk.Part{file("more", "a.png", "x")}, `front`},
			{"copy", []*sdk.Part{file("front", "a.png", strings.Repeat("x", 9<<20))}, `too large`},
		} {
			if _, err := send(bad.skill, bad.parts...); err == nil || !strings.Contains(strings.ToLower(err.Error()), bad.want) {
				t.Errorf("%s: %v, want %s", bad.skill, err, bad.want)
			}
		}
		waiting := h.send(c, message("page", "slate"))
		with := answer(waiting, "yes")
		with.Message.Parts = append(with.Message.Parts, file("", "a.png", "x"))
		if _, err := c.SendMessage(t.Context(), with); err == nil || !strings.Contains(err.Error(), "has no files") {
			t.Errorf("an answer with a file: %v", err)
		}
	})
}

// A message that is sent again never answers a later question.
func TestAnswerAgain(t *testing.T) {
	h := newHouse(t)
	c := h.client(sdk.TransportProtocolJSONRPC)
	first := h.send(c, message("careful", "slate"))
	yes := answer(first, "yes")
	second := h.send(c, yes)
	want(t, shown(second), "input_required: Sure?")
	want(t, shown(h.send(c, yes)), "input_required: Sure?")
	stale := answer(first, "yes")
	stale.Message.SetMeta("question", first.Status.Message.Parts[1].Data().(map[string]any)["question"])
	if _, err := c.SendMessage(t.Context(), stale); err == nil {
		t.Error("an answer to the question before was accepted")
	}
	want(t, shown(h.send(c, answer(second, "no"))), "completed: yes: About slate")
}

// The next message of a context continues the conversation, also in a second process.
func TestConversation(t *testing.T) {
	h := newHouse(t)
	c := h.client(sdk.TransportProtocolHTTPJSON)
	first := h.send(c, message("chat", "Hello"))
	want(t, shown(first), "completed: I have read 1 message(s).")
	h.stop()
	h.start()
	c = h.client(sdk.TransportProtocolJSONRPC)
	next := message("chat", "And now?")
	next.Message.ContextID = first.ContextID
	second := h.send(c, next)
	want(t, shown(second), "completed: I have read 3 message(s).")
	if second.ID == first.ID || second.ContextID != first.ContextID {
		t.Errorf("tasks %s and %s, contexts %s and %s", first.ID, second.ID, first.ContextID, second.ContextID)
	}
	want(t, shown(h.send(c, next)), shown(second)) // and it is the same task, though the context has another result now
}

// A turn that breaks off stays in its context: the next one knows what was asked and done.
func TestBrokenTurn(t *testing.T) {
	overBoth(t, func(t *testing.T, h *house, c *a2aclient.Client) {
		first := h.send(c, message("chat", "Hello"))
		broken := message("chat", "Break")
		broken.Message.ContextID = first.ContextID
		if got := shown(h.send(c, broken)); !strings.HasPrefix(got, "failed:") {
			t.Fatal(got)
		}
		next := message("chat", "And now?")
		next.Message.ContextID = first.ContextID
		want(t, shown(h.send(c, next)), "completed: I have read 5 message(s).")
	})
}

// A task outlives the server that has it, with the clients that wait for it.
func TestRestart(t *testing.T) {
	h := newHouse(t)
	c := h.client(sdk.TransportProtocolJSONRPC)
	req := message("draft", "wait")
	req.Config = &sdk.SendMessageConfig{ReturnImmediately: true}
	working := h.send(c, req)
	want(t, shown(working), "working:")
	waiting := h.send(c, message("page", "slate"))
	h.stop()
	h.start()
	c = h.client(sdk.TransportProtocolJSONRPC)
	want(t, shown(h.send(c, req)), "working:")
	close(h.gate)
	req.Config = nil
	if done := h.send(c, req); done.ID != working.ID || shown(done) != "completed: About wait" {
		t.Errorf("%s: %s, want %s", done.ID, shown(done), working.ID)
	}
	want(t, shown(h.send(c, answer(waiting, "no"))), "completed: no: About slate")
}

func TestCancel(t *testing.T) {
	overBoth(t, func(t *testing.T, h *house, c *a2aclient.Client) {
		req := message("draft", "wait")
		req.Config = &sdk.SendMessageConfig{ReturnImmediately: true}
		working := h.send(c, req)
		got, err := c.CancelTask(t.Context(), &sdk.CancelTaskRequest{ID: working.ID})
		if err != nil {
			t.Fatal(err)
		}
		want(t, shown(got), "canceled:")
		if _, err := c.CancelTask(t.Context(), &sdk.CancelTaskRequest{ID: working.ID}); !errors.Is(err, sdk.ErrTaskNotCancelable) {
			t.Errorf("cancelled again: %v", err)
		}
		if _, err := c.CancelTask(t.Context(), &sdk.CancelTaskRequest{ID: "none"}); !errors.Is(err, sdk.ErrTaskNotFound) {
			t.Errorf("cancelled what there is not: %v", err)
		}
	})
}

// A heard is what a client was told of a task.
type heard struct {
	lines  []string // one for each event
	text   string   // of the result
	status sdk.TaskStatus
}

func (h heard) String() string { return fmt.Sprintf("%v: %q, %s", h.lines, h.text, h.status.State) }

// collect reads a stream to its end. It calls first, if it is not nil, after the first event of a kind: "task",
// "artifact" or "status".
func collect(events iter.Seq2[sdk.Event, error], kind string, first func()) (h heard, err error) {
	for e, err := range events {
		if err != nil {
			return h, err
		}
		is := ""
		switch e := e.(type) {
		case *sdk.Task:
			is, h.status = "task", e.Status
			if len(e.Artifacts) > 0 {
				h.text = e.Artifacts[0].Parts[0].Text()
			}
			h.lines = append(h.lines, is)
		case *sdk.TaskArtifactUpdateEvent:
			if is = "artifact"; !e.Append {
				h.text = ""
			}
			h.text += e.Artifact.Parts[0].Text()
			h.lines = append(h.lines, fmt.Sprintf("artifact %v", e.LastChunk))
		case *sdk.TaskStatusUpdateEvent:
			is, h.status = "status", e.Status
			h.lines = append(h.lines, string(e.Status.State))
		}
		if first != nil && is == kind {
			first()
			first = nil
		}
	}
	return h, nil
}

func TestStream(t *testing.T) {
	overBoth(t, func(t *testing.T, h *house, c *a2aclient.Client) {
		const answered = "I have read 1 message(s)."
		// A task that is over before the stream begins says everything at once.
		for skill, want := range map[string]string{"chat": answered, "judged": "Good."} { // the first answer of "judged" was rejected
			got, err := collect(c.SendStreamingMessage(t.Context(), message(skill, "Hello")), "", nil)
			if err != nil || got.lines[0] != "task" || got.status.State != sdk.TaskStateCompleted || got.text != want {
				t.Errorf("%s: %v, %v", skill, got, err)
			}
		}
		got, err := collect(c.SendStreamingMessage(t.Context(), message("page", "slate")), "", nil)
		if err != nil || got.status.State != sdk.TaskStateInputRequired {
			t.Errorf("a task that asks: %v, %v", got, err)
		}

		read := func() { h.read <- struct{}{} }
		got, err = collect(c.SendStreamingMessage(t.Context(), message("chat", "slowly")), "artifact", read)
		if err != nil || len(got.lines) < 4 || got.lines[1] != "artifact false" || got.status.State != sdk.TaskStateCompleted || got.text != answered {
			t.Errorf("while the model writes: %v, %v", got, err)
		}
		late := message("chat", "slowly")
		late.Config = &sdk.SendMessageConfig{ReturnImmediately: true}
		got, err = collect(c.SubscribeToTask(t.Context(), &sdk.SubscribeToTaskRequest{ID: h.send(c, late).ID}), "artifact", read)
		if err != nil || len(got.lines) < 4 || got.text != answered {
			t.Errorf("a viewer of a task that nobody streams: %v, %v", got, err)
		}

		// A second viewer sees the end of a task that another client has started.
		req := message("draft", "wait")
		req.Config = &sdk.SendMessageConfig{ReturnImmediately: true}
		working := h.send(c, req)
		viewers, joined := make(chan string, 2), make(chan struct{}, 2)
		for range 2 {
			go func() {
				join := sync.OnceFunc(func() { joined <- struct{}{} })
				defer join()
				got, err := collect(c.SubscribeToTask(t.Context(), &sdk.SubscribeToTaskRequest{ID: working.ID}), "task", join)
				viewers <- fmt.Sprint(got.text, err)
			}()
		}
		<-joined
		<-joined
		close(h.gate)
		for range 2 {
			want(t, <-viewers, "About wait<nil>")
		}
	})
}

// tokens knows callers by their tokens.
type tokens map[string]serve.Principal

func (k tokens) Principal(r *http.Request) (serve.Principal, error) {
	who, ok := k[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	if !ok {
		return who, errors.New("unknown token")
	}
	return who, nil
}

func TestRefused(t *testing.T) {
	h := newHouse(t)
	c := h.client(sdk.TransportProtocolJSONRPC)
	data := func(v any) *sdk.SendMessageRequest {
		m := sdk.NewMessage(sdk.MessageRoleUser, sdk.NewDataPart(v))
		m.SetMeta("skill", "draft")
		return &sdk.SendMessageRequest{Message: m}
	}
	nobody := message("draft", "x")
	nobody.Message.Metadata = nil
	for want, req := range map[string]*sdk.SendMessageRequest{
		`did you mean "draft"`:       message("draf", "x"),
		"the message names no skill": nobody,
		`lang`:                       data(map[string]any{"text": "x", "lang": 1}),
	} {
		if _, err := c.SendMessage(t.Context(), req); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s, got %v", want, err)
		}
	}
	both := data(map[string]any{"lang": "en"})
	both.Message.Parts = append(both.Message.Parts, sdk.NewTextPart("slate"))
	want(t, shown(h.send(c, both)), "completed: About slate")
	want(t, shown(h.send(c, message("draft", `{"text": "stone", "lang": "en"}`))), "completed: About stone")
}
