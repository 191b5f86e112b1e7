package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/test/servetest"
	"github.com/stonelayer/stone/journal/sqlite"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/x/mcp/server"
)

type tree struct {
	Name string `json:"name"`
	Kids []tree `json:"kids,omitempty"`
}

var (
	draft  = servetest.Draft
	page   = servetest.Page
	family = dag.NewType[tree]("family")
)

// house is a server of several pipelines over a journal in memory.
type house struct {
	*testing.T
	*serve.Server
	*servetest.Steps
	url     string
	journal *sqlite.DB
}

func newHouse(t *testing.T, access serve.Access, cfg server.Config) *house {
	h := &house{T: t, Steps: servetest.NewSteps(), journal: memdb.New(t)}
	sort := stone.Func("sort", family, family, func(_ context.Context, f tree) (tree, error) { slices.Reverse(f.Kids); return f, nil }, stone.Effects())
	shout := stone.Func("shout", draft, page, func(_ context.Context, s string) (string, error) { return strings.ToUpper(s), nil }, stone.Effects())
	send := stone.Func("send", draft, page, func(_ context.Context, s string) (string, error) { return s, nil }, stone.Effects(effect.Net))
	remove := stone.Func("remove", draft, page, func(_ context.Context, s string) (string, error) { return s, nil }, stone.Effects(effect.FSWrite))
	review := stone.Ask("review", draft, dag.NewType[verdict]("verdict"), func(s string) string { return "How is " + s + "?" })
	guess := stone.Func("guess", draft, page, func(_ context.Context, s string) (string, error) { return s, nil })
	s := servetest.Start(t, serve.Config{
		Journal: h.journal, Access: access, Mounts: map[string]serve.Mount{"/mcp": server.Mount(cfg)},
		Pipelines: []serve.Pipeline{
			{Name: "draft", Ashlar: h.Write(), Description: "Write a draft."}, {Name: "page", Ashlar: h.Publish()},
			{Name: "slow", Ashlar: h.Slow()}, {Name: "sort", Ashlar: sort}, {Name: "shout", Ashlar: shout}, {Name: "send", Ashlar: send}, {Name: "remove", Ashlar: remove},
			{Name: "review", Ashlar: stone.Seq("review", h.Write(), review)}, {Ashlar: guess.Describe("Guess, who knows how.")},
		},
	})
	h.Server, h.url = s.Server, s.URL+"/mcp"
	return h
}

type verdict struct {
	Verdict string   `json:"verdict" enum:"accept,reject"`
	Score   int      `json:"score"`
	Public  bool     `json:"public"`
	Reasons []string `json:"reasons,omitempty" jsonschema:"Why."`
	Where   struct {
		Line int `json:"line"`
	} `json:"where"`
}

// user is a client that answers questions.
type user struct {
	mu       sync.Mutex
	form     string // the last one
	asked    []string
	progress []string
	answers  []*sdk.ElicitResult // to the questions in turn
}

func (u *user) options(elicits bool) *sdk.ClientOptions {
	o := &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{},
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			u.mu.Lock()
			defer u.mu.Unlock()
			u.progress = append(u.progress, fmt.Sprint(r.Params.Progress, " ", r.Params.Message))
		},
	}
	if elicits {
		o.Capabilities.Elicitation = &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}}
		o.ElicitationHandler = func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			u.mu.Lock()
			defer u.mu.Unlock()
			u.asked = append(u.asked, r.Params.Message)
			if form, err := json.Marshal(r.Params.RequestedSchema); err == nil {
				u.form = string(form)
			}
			if len(u.answers) == 0 {
				return nil, errors.New("asked too often")
			}
			res := u.answers[0]
			u.answers = u.answers[1:]
			return res, nil
		}
	}
	return o
}

func accept(text string) *sdk.ElicitResult {
	return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"answer": text}}
}

// http connects a client over HTTP.
func (h *house) http(u *user, elicits bool) *sdk.ClientSession {
	h.Helper()
	return h.connect(u, elicits, "", &sdk.StreamableClientTransport{Endpoint: h.url, MaxRetries: -1})
}

// pipe connects a client over a pipe, as over standard input and output.
func (h *house) pipe(u *user, elicits bool, version string) *sdk.ClientSession {
	h.Helper()
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- server.Serve(h.Context(), h.Server, server.Config{}, in, out)
		out.Close()
	}()
	h.Cleanup(func() {
		toServer.Close()
		if err := <-ended; err != nil {
			h.Error(err)
		}
	})
	return h.connect(u, elicits, version, &sdk.IOTransport{Reader: fromServer, Writer: toServer})
}

func (h *house) connect(u *user, elicits bool, version string, over sdk.Transport) *sdk.ClientSession {
	h.Helper()
	var o *sdk.ClientSessionOptions
	if version != "" {
		o = &sdk.ClientSessionOptions{ProtocolVersion: version}
	}
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, u.options(elicits)).Connect(h.Context(), over, o)
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { session.Close() })
	return session
}

// call calls a tool and returns its text and its structured content.
func call(t *testing.T, s *sdk.ClientSession, name, arguments string) (text string, out map[string]any, isError bool) {
	t.Helper()
	params := &sdk.CallToolParams{Name: name, Arguments: json.RawMessage(arguments)}
	params.SetProgressToken("p")
	res, err := s.CallTool(t.Context(), params)
	if err != nil {
		t.Fatalf("%s %s: %v", name, arguments, err)
	}
	out, _ = res.StructuredContent.(map[string]any)
	for _, c := range res.Content {
		if part, ok := c.(*sdk.TextContent); ok {
			text += part.Text
		}
	}
	return text, out, res.IsError
}

func TestTools(t *testing.T) {
	s := newHouse(t, nil, server.Config{}).http(&user{}, false)
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, tool := range list.Tools {
		in, err := json.Marshal(tool.InputSchema)
		if err != nil {
			t.Fatal(err)
		}
		hints, err := json.Marshal(tool.Annotations)
		if err != nil {
			t.Fatal(err)
		}
		got[tool.Name] = string(hints) + " " + string(in) + " " + tool.Description
	}
	for name, want := range map[string]string{
		"draft":  `{"destructiveHint":false,"idempotentHint":true,"openWorldHint":false,"readOnlyHint":true} {"properties":{"text":{"type":"string"}},"required":["text"],"type":"object"}`,
		"page":   `"idempotentHint":false,"openWorldHint":false,"readOnlyHint":true}`,
		"guess":  `{"idempotentHint":false,"readOnlyHint":false}`,
		"send":   `{"idempotentHint":false,"openWorldHint":true,"readOnlyHint":false}`,
		"remove": `{"destructiveHint":true,"idempotentHint":false,"openWorldHint":false,"readOnlyHint":false}`,
		"shout":  `{"additionalProperties":false,"properties":{"input":{"type":"string"}},"required":["input"],"type":"object"}`,
		"sort":   `"$ref":"#"`,
	} {
		if !strings.Contains(got[name], want) {
			t.Errorf("%s is %s, want %s", name, got[name], want)
		}
	}
	if got := got["guess"]; !strings.Contains(got, "Guess, who knows how.") {
		t.Errorf("guess is %s", got)
	}
	if n := len(list.Tools); n != 9+4 {
		t.Errorf("%d tools, want the pipelines and four for runs", n)
	}
}

// Each protocol version, over HTTP and over a pipe, with a user who is asked and without.
func TestCalls(t *testing.T) {
	h := newHouse(t, nil, server.Config{ModelMayAnswer: true})
	for _, version := range []string{"", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} {
		t.Run("pipe "+version, func(t *testing.T) {
			h := *h
			h.T = t
			u := &user{answers: []*sdk.ElicitResult{accept("yes")}}
			calls(t, h.pipe(u, true, version), u, true)
		})
		t.Run("http "+version, func(t *testing.T) {
			h := *h
			h.T = t
			u := &user{answers: []*sdk.ElicitResult{accept("yes")}}
			s := h.connect(u, true, version, &sdk.StreamableClientTransport{Endpoint: h.url, MaxRetries: -1})
			calls(t, s, u, version == "")
		})
	}
}

func calls(t *testing.T, s *sdk.ClientSession, u *user, elicits bool) {
	text, out, failed := call(t, s, "draft", `{"text":"marble"}`)
	if text != "About marble" || failed || out["state"] != "done" || out["result"] != "About marble" {
		t.Errorf("draft: %q, %v", text, out)
	}
	node, _ := out["node"].(string)
	read, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: node})
	if err != nil || len(read.Contents) != 1 || read.Contents[0].Text != "About marble" {
		t.Errorf("%s: %v, %v", node, read, err)
	}
	if text, _, _ := call(t, s, "sort", `{"name":"a","kids":[{"name":"b"},{"name":"c"}]}`); text != `{"kids":[{"name":"c"},{"name":"b"}],"name":"a"}` {
		t.Errorf("sort: %q", text)
	}
	if text, _, _ := call(t, s, "shout", `{"input":"loud"}`); text != "LOUD" {
		t.Errorf("shout: %q", text)
	}
	if text, _, failed := call(t, s, "draft", `{"text":"bad"}`); !failed || !strings.Contains(text, " failed: not this text (refused at write)") {
		t.Errorf("a failed run: %q", text)
	}
	for _, bad := range []struct{ tool, arguments, want string }{
		{"draft", `{"text":7}`, "text"}, {"draft", `{}`, "text"}, {"shout", `{"inputs":"x"}`, `an object with "input" and nothing else: unknown field "inputs"`}, {"shout", `{}`, "missing"},
		{"run_status", `{"run":"none"}`, "no such run"}, {"run_status", `{"run":"../x"}`, "no such run"}, {"run_status", `{"run":".."}`, "no such"}, {"run_status", `{}`, "run"},
	} {
		if text, _, failed := call(t, s, bad.tool, bad.arguments); !failed || !strings.Contains(text, bad.want) {
			t.Errorf("%s %s: %q, want %q", bad.tool, bad.arguments, text, bad.want)
		}
	}
	text, out, _ = call(t, s, "page", `{"text":"slate"}`)
	if !elicits {
		if !strings.Contains(text, `question "page/approve": Publish About slate? (one of: yes, no)`) || out["state"] != "waiting" {
			t.Fatalf("a run that waits: %q, %v", text, out)
		}
		run := fmt.Sprint(out["run"])
		if text, _, failed := call(t, s, "run_answer", `{"run":"none","question":"q","response":"r"}`); !failed || !strings.Contains(text, "no such run") {
			t.Errorf("an answer to no run: %q", text)
		}
		if text, _, failed := call(t, s, "run_answer", fmt.Sprintf(`{"run":%q,"question":"page/approve","response":"perhaps"}`, run)); !failed || !strings.Contains(text, "perhaps") {
			t.Errorf("an answer that does not fit: %q", text)
		}
		text, out, _ = call(t, s, "run_answer", fmt.Sprintf(`{"run":%q,"question":"page/approve","response":"yes"}`, run))
		if again, _, _ := call(t, s, "run_result", fmt.Sprintf(`{"run":%q}`, run)); again != text {
			t.Errorf("run_result: %q", again)
		}
	} else if len(u.asked) != 1 || u.asked[0] != "Publish About slate?" {
		t.Errorf("the user was asked %q", u.asked)
	}
	if text != "yes: About slate" || out["state"] != "done" {
		t.Errorf("page: %q, %v", text, out)
	}
}
