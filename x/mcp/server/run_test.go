package server_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve"
	"github.com/stonelayer/stone/x/mcp/server"
)

func TestProgress(t *testing.T) {
	h := newHouse(t, nil, server.Config{})
	u := &user{answers: []*sdk.ElicitResult{accept("yes")}}
	s := h.pipe(u, true, "2025-11-25")
	call(t, s, "page", `{"text":"slate"}`)
	const want = "1 page/write, 2 page/approve, 3 page/publish"
	told := func() string {
		u.mu.Lock()
		defer u.mu.Unlock()
		return strings.Join(u.progress, ", ")
	}
	// The client handles what it is told beside the reply.
	for end := time.Now().Add(10 * time.Second); told() != want && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if got := told(); got != want {
		t.Errorf("told %q, want %q", got, want)
	}
}

// What a user fills in that does not fit is asked again, and what a user declines fails the run.
func TestAnswers(t *testing.T) {
	h := newHouse(t, nil, server.Config{})
	for _, tt := range []struct {
		name    string
		answers []*sdk.ElicitResult
		want    string
	}{
		{"again", []*sdk.ElicitResult{accept("perhaps"), accept("no")}, "no: About slate"},
		{"declined", []*sdk.ElicitResult{{Action: "decline"}}, "declined"},
		{"undecided", []*sdk.ElicitResult{{Action: "cancel"}}, "waits for an answer"},
	} {
		for _, version := range []string{"", "2025-11-25"} {
			if version == "" && tt.name == "again" {
				continue // this client checks answers by itself: see TestRounds
			}
			t.Run(tt.name+" "+version, func(t *testing.T) {
				u := &user{answers: tt.answers}
				text, _, _ := call(t, h.pipe(u, true, version), "page", `{"text":"slate"}`)
				if !strings.Contains(text, tt.want) || len(u.answers) > 0 {
					t.Errorf("got %q after %q", text, u.asked)
				}
			})
		}
	}
}

// A typed answer is asked for field by field.
func TestTypedForm(t *testing.T) {
	h := newHouse(t, nil, server.Config{})
	content := map[string]any{"verdict": "accept", "score": 7, "public": true, "reasons": "plain\nshort", "where": `{"line":3}`}
	for _, version := range []string{"", "2025-11-25"} {
		u := &user{answers: []*sdk.ElicitResult{{Action: "accept", Content: content}}}
		text, out, _ := call(t, h.pipe(u, true, version), "review", `{"text":"slate"}`)
		if text != `{"public":true,"reasons":["plain","short"],"score":7,"verdict":"accept","where":{"line":3}}` {
			t.Errorf("%s: got %s, %v", version, text, out)
		}
		if got, want := u.form, `{"properties":{`+
			`"public":{"title":"public","type":"boolean"},`+
			`"reasons":{"description":"Why. One per line.","title":"reasons","type":"string"},`+
			`"score":{"title":"score","type":"integer"},`+
			`"verdict":{"enum":["accept","reject"],"title":"verdict","type":"string"},`+
			`"where":{"description":"JSON of the schema {\"type\":\"object\",\"properties\":{\"line\":{\"type\":\"integer\"}},\"required\":[\"line\"]}","title":"where","type":"string"}},`+
			`"required":["verdict","score","public","where"],"type":"object"}`; got != want {
			t.Errorf("%s: the form is %s, want %s", version, got, want)
		}
	}
}

// What is never accepted is not asked for ever: the run waits for somebody else.
func TestRefusedForever(t *testing.T) {
	h := newHouse(t, nil, server.Config{})
	params := `{"name":"page","arguments":{"text":"slate"}`
	state, asked := "", 0
	for {
		more := ""
		if state != "" {
			more = fmt.Sprintf(`,"requestState":%q,"inputResponses":{"page/approve":{"action":"accept","content":{"answer":"perhaps"}}}`, state)
		}
		_, text := h.rpc("tools/call", params+more+"}")
		var reply struct {
			Result struct {
				State string `json:"requestState"`
			} `json:"result"`
		}
		if err := json.Unmarshal([]byte(text), &reply); err != nil {
			t.Fatal(text)
		}
		if state = reply.Result.State; state == "" {
			if !strings.Contains(text, "waits for an answer") || asked != 3 {
				t.Errorf("asked %d times, then %s", asked, text)
			}
			return
		}
		asked++
	}
}

func TestRounds(t *testing.T) {
	h := newHouse(t, nil, server.Config{})
	params := `{"name":"page","arguments":{"text":"slate"}`
	_, text := h.rpc("tools/call", params+"}")
	var asked struct {
		Result struct {
			State    string `json:"requestState"`
			Type     string `json:"resultType"`
			Requests map[string]struct {
				Params sdk.ElicitParams `json:"params"`
			} `json:"inputRequests"`
			Content any `json:"structuredContent"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(text), &asked); err != nil || asked.Result.Type != "input_required" {
		t.Fatal(text)
	}
	params += fmt.Sprintf(`,"requestState":%q`, asked.Result.State)
	for _, tt := range []struct{ responses, want string }{
		{`{}`, `"message":"Publish About slate?"`},
		{`{"page/other":{"action":"accept","content":{}}}`, `"message":"Publish About slate?"`},
		{`{"page/approve":{"action":"accept","content":{"answer":"perhaps"}}}`, `The previous answer was not accepted: `},
		{`{"page/approve":{"action":"accept","content":{"answer":7}}}`, `The previous answer was not accepted: `},
		{`{"page/approve":{"action":"accept"}}`, `The previous answer was not accepted: `},
		{`{"page/approve":{"action":"cancel"}}`, `waits for an answer`},
		{`{"page/approve":{"action":"accept","content":{"answer":"yes"}}}`, `"yes: About slate"`},
		{`{"page/approve":{"action":"accept","content":{"answer":"no"}}}`, `"yes: About slate"`}, // it is answered
	} {
		if _, text := h.rpc("tools/call", params+`,"inputResponses":`+tt.responses+"}"); !strings.Contains(text, tt.want) {
			t.Errorf("%s: %s, want %s", tt.responses, text, tt.want)
		}
	}
}

// A call that is not the answer to a question of its own is refused.
func TestForeignState(t *testing.T) {
	h := newHouse(t, nil, server.Config{})
	s := h.pipe(&user{}, true, "")
	_, out, _ := call(t, s, "draft", `{"text":"marble"}`)
	for _, state := range []string{"none", fmt.Sprint(out["run"]), "../" + fmt.Sprint(out["run"])} {
		if _, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "page", RequestState: state}); err == nil || !strings.Contains(err.Error(), "requestState") {
			t.Errorf("state %q: %v", state, err)
		}
	}
}

// A run that takes long is left to the tools for runs.
func TestLongRun(t *testing.T) {
	h := newHouse(t, nil, server.Config{Wait: time.Millisecond})
	s := h.http(&user{}, false)
	text, out, failed := call(t, s, "slow", `{"text":"x"}`)
	run := fmt.Sprint(out["run"])
	if failed || !strings.Contains(text, "run_result") || out["state"] != "running" {
		t.Fatalf("got %q, %v", text, out)
	}
	of := fmt.Sprintf(`{"run":%q}`, run)
	if text, _, _ := call(t, s, "run_status", of); !strings.Contains(text, "is running") {
		t.Errorf("run_status: %q", text)
	}
	close(h.Gate)
	for text = ""; text != "slow"; text, _, _ = call(t, s, "run_result", of) {
	}
	if text, _, failed := call(t, s, "run_cancel", of); !failed || !strings.Contains(text, "done") {
		t.Errorf("run_cancel of a run that is done: %q", text)
	}
}

func TestCancelledRun(t *testing.T) {
	h := newHouse(t, nil, server.Config{Wait: time.Millisecond})
	s := h.http(&user{}, false)
	_, out, _ := call(t, s, "slow", `{"text":"x"}`)
	<-h.Started
	if text, out, failed := call(t, s, "run_cancel", fmt.Sprintf(`{"run":%q}`, out["run"])); failed || out["state"] != "canceled" {
		t.Errorf("run_cancel: %q", text)
	}
	<-h.Stopped
}

// A call that is cancelled cancels its run.
func TestCancelledCall(t *testing.T) {
	for _, over := range []string{"pipe 2025-11-25", "pipe", "http"} {
		t.Run(over, func(t *testing.T) {
			h := newHouse(t, nil, server.Config{})
			kind, version, _ := strings.Cut(over, " ")
			s := h.http(&user{}, false)
			if kind == "pipe" {
				s = h.pipe(&user{}, false, version)
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-h.Started
				cancel()
			}()
			if _, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "slow", Arguments: json.RawMessage(`{"text":"x"}`)}); err == nil {
				t.Error("the call returned")
			}
			<-h.Stopped
		})
	}
}

// A client that ends leaves its runs to continue.
func TestClientEnds(t *testing.T) {
	h := newHouse(t, nil, server.Config{})
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(t.Context(), h.Server, server.Config{}, in, out) }()
	go io.Copy(io.Discard, fromServer)
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	if _, err := io.WriteString(toServer, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{"text":"x"},`+meta+"}}\n"); err != nil {
		t.Fatal(err)
	}
	var runs []journal.RunInfo
	for len(runs) == 0 {
		var err error
		if runs, err = h.journal.Runs(t.Context(), journal.Query{Pipeline: "slow"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	toServer.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	close(h.Gate)
	if text, _, _ := call(t, h.http(&user{}, false), "run_result", fmt.Sprintf(`{"run":%q}`, runs[0].ID)); text != "slow" {
		t.Errorf("the run that was left: %q", text)
	}
}

// rpc sends a request as a client of the newest protocol, with the extension for tasks.
func (h *house) rpc(method, params string, header ...string) (int, string) {
	h.Helper()
	var given struct {
		Name   string `json:"name"`
		TaskID string `json:"taskId"`
	}
	if err := json.Unmarshal([]byte(params), &given); err != nil {
		h.Fatal(err)
	}
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
	if len(params) > 2 {
		meta += ","
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s%s}`, method, meta, params[1:])
	header = append([]string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream", "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", method, "Mcp-Name", given.Name + given.TaskID}, header...)
	return h.post(body, header...)
}

// post sends a body and returns the status, and the last message of the reply.
func (h *house) post(body string, header ...string) (int, string) {
	h.Helper()
	req, err := http.NewRequestWithContext(h.Context(), "POST", h.url, strings.NewReader(body))
	if err != nil {
		h.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		h.Fatal(err)
	}
	if i := bytes.LastIndex(text, []byte("data: ")); i >= 0 {
		text = text[i+len("data: "):]
	}
	return resp.StatusCode, string(bytes.TrimSpace(text))
}

type taskReply struct {
	Result struct {
		ResultType    string                     `json:"resultType"`
		ID            string                     `json:"taskId"`
		Status        string                     `json:"status"`
		Result        map[string]any             `json:"result"`
		InputRequests map[string]json.RawMessage `json:"inputRequests"`
	} `json:"result"`
	Error struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

func (h *house) task(method, params string) (r taskReply) {
	h.Helper()
	status, text := h.rpc(method, params)
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		h.Fatalf("%s %s: %d %s", method, params, status, text)
	}
	return r
}

func (h *house) waitFor(id, status string) taskReply {
	h.Helper()
	for {
		r := h.task("tasks/get", fmt.Sprintf(`{"taskId":%q}`, id))
		if r.Result.Status == status {
			return r
		}
		if r.Result.Status != "working" && r.Result.Status != "input_required" {
			h.Fatalf("the task is %+v, want %s", r, status)
		}
		time.Sleep(time.Millisecond)
	}
}

func TestTasks(t *testing.T) {
	h := newHouse(t, nil, server.Config{Wait: time.Millisecond})
	start := func() string {
		r := h.task("tools/call", `{"name":"slow","arguments":{"text":"x"}}`)
		if r.Result.ResultType != "task" || r.Result.Status != "working" || r.Result.ID == "" {
			t.Fatalf("got %+v", r)
		}
		return r.Result.ID
	}
	id := start()
	<-h.Started
	if r := h.task("tasks/cancel", fmt.Sprintf(`{"taskId":%q}`, id)); r.Result.ResultType != "complete" {
		t.Errorf("tasks/cancel: %+v", r)
	}
	h.waitFor(id, "cancelled")
	<-h.Stopped
	id = start()
	close(h.Gate)
	if r := h.waitFor(id, "completed"); r.Result.ResultType != "complete" || r.Result.Result["structuredContent"].(map[string]any)["result"] != "slow" {
		t.Errorf("got %+v", r)
	}
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		if r := h.task(method, `{"taskId":"none"}`); r.Error.Code != -32602 {
			t.Errorf("%s of no task: %+v", method, r)
		}
	}
	// A question of a run that is a task.
	if _, text := h.rpc("tools/list", `{}`); !strings.Contains(text, `"cacheScope":"private"`) {
		t.Errorf("tools/list may be shared: %.200s", text)
	}
	status, text := h.rpc("tools/call", `{"name":"page","arguments":{"text":"x"}}`)
	var asked struct {
		Result struct {
			State string `json:"requestState"`
			Task  string `json:"taskId"` // if the run asks only after the call has returned
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(text), &asked); err != nil || asked.Result.State == "" && asked.Result.Task == "" {
		t.Fatalf("%d %s", status, text)
	}
	id, _, _ = strings.Cut(cmp.Or(asked.Result.Task, asked.Result.State), "/")
	if r := h.waitFor(id, "input_required"); len(r.Result.InputRequests["page/approve"]) == 0 {
		t.Errorf("got %+v", r)
	}
	answer := `{"taskId":%q,"inputResponses":{"page/approve":{"action":"accept","content":{"answer":%q}}}}`
	if r := h.task("tasks/update", fmt.Sprintf(answer, id, "perhaps")); r.Error.Code != -32602 {
		t.Errorf("an answer that does not fit: %+v", r)
	}
	if r := h.task("tasks/update", fmt.Sprintf(answer, id, "yes")); r.Result.ResultType != "complete" {
		t.Errorf("tasks/update: %+v", r)
	}
	h.waitFor(id, "completed")
}

// tokens gives each caller what its token says.
type tokens struct{}

func (tokens) Principal(r *http.Request) (serve.Principal, error) {
	switch name := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "); name {
	case "acme", "globex":
		return serve.Principal{Name: name, Tenant: name}, nil
	case "reader":
		return serve.Principal{Name: name, Tenant: "acme", Roles: []serve.Role{serve.Read}}, nil
	}
	return serve.Principal{}, fmt.Errorf("who are you?")
}

type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func TestTenants(t *testing.T) {
	h := newHouse(t, tokens{}, server.Config{ModelMayAnswer: true})
	as := func(name, version string) *sdk.ClientSession {
		return h.connect(&user{}, false, version, &sdk.StreamableClientTransport{Endpoint: h.url, MaxRetries: -1, HTTPClient: &http.Client{Transport: bearer(name)}})
	}
	for _, version := range []string{"", "2025-11-25"} {
		acme, globex, reader := as("acme", version), as("globex", version), as("reader", version)
		_, out, _ := call(t, acme, "page", `{"text":"marble"}`)
		of := fmt.Sprintf(`{"run":%q}`, out["run"])
		if text, _, failed := call(t, reader, "run_status", of); failed || !strings.Contains(text, "Publish About marble?") {
			t.Errorf("the reader of the tenant: %q", text)
		}
		_, done, _ := call(t, acme, "draft", `{"text":"marble"}`)
		for _, tt := range []struct {
			who             *sdk.ClientSession
			tool, arguments string
			want            string
		}{
			{globex, "run_status", of, "no such run"}, {globex, "run_result", of, "no such run"}, {globex, "run_cancel", of, "no such run"},
			{globex, "run_answer", strings.TrimSuffix(of, "}") + `,"question":"page/approve","response":"yes"}`, "no such run"},
			{reader, "run_cancel", of, `role "start"`}, {reader, "draft", `{"text":"x"}`, `role "start"`},
			{reader, "run_answer", strings.TrimSuffix(of, "}") + `,"question":"page/approve","response":"yes"}`, `role "answer"`},
		} {
			if text, _, failed := call(t, tt.who, tt.tool, tt.arguments); !failed || !strings.Contains(text, tt.want) {
				t.Errorf("%s %s: %q, want %q", tt.tool, tt.arguments, text, tt.want)
			}
		}
		node := &sdk.ReadResourceParams{URI: fmt.Sprint(done["node"])}
		if _, err := reader.ReadResource(t.Context(), node); err != nil {
			t.Error(err)
		}
		if _, err := globex.ReadResource(t.Context(), node); err == nil || !strings.Contains(err.Error(), "not found") {
			t.Errorf("the node of another tenant: %v", err)
		}
	}
}

func TestHostile(t *testing.T) {
	h := newHouse(t, nil, server.Config{})
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	ok := []string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream"}
	for _, tt := range []struct {
		name, body string
		header     []string
		want       int
		part       string
	}{
		{"fine", list, nil, 200, `"tools"`},
		{"a host of a page", list, []string{"Host", "evil.example"}, 421, ""},
		{"a host that looks local", list, []string{"Host", "localhost.evil.example:80"}, 421, ""},
		{"another origin", list, []string{"Origin", "http://evil.example"}, 403, ""},
		{"an origin of null", list, []string{"Origin", "null"}, 403, ""},
		{"a form", list, []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, ""},
		{"a session of someone", list, []string{"Mcp-Session-Id", "1"}, 200, `"tools"`},
		{"an unknown version", list, []string{"MCP-Protocol-Version", "1999-01-01"}, 400, ""},
		{"no JSON", `{`, nil, 400, ""},
		{"nothing", ``, nil, 400, ""},
		{"a huge body", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"draft","arguments":{"text":"` + strings.Repeat("x", 9<<20) + `"}}}`, nil, 413, ""},
		{"deep arguments", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"draft","arguments":` + strings.Repeat("[", 100000) + strings.Repeat("]", 100000) + `}}`, nil, 400, ""},
		{"no such tool", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"../draft"}}`, nil, 200, `unknown tool`},
		{"script in a name", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"<script>"}}`, nil, 200, `unknown tool`},
		{"arguments that are no object", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"draft","arguments":"x"}}`, nil, 200, `"isError":true`},
		{"a field twice", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"shout","arguments":{"input":"a","input":"b"}}}`, nil, 200, ``},
		{"a file", `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}`, nil, 200, `not found`},
		{"a path in a run", `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"stone://run/..%2f..%2fhealthz/node/x"}}`, nil, 200, `not found`},
		{"a path in a node", `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"stone://run/x/node/../../../healthz"}}`, nil, 200, `not found`},
		{"a run without a node", `{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"stone://run/x"}}`, nil, 200, `not found`},
		{"tasks of an older client", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"x"}}`, nil, 200, `-32`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := *h
			h.T = t
			status, text := h.post(tt.body, append(ok, tt.header...)...)
			if status != tt.want || !strings.Contains(text, tt.part) {
				t.Errorf("%d %.300s, want %d with %q", status, text, tt.want, tt.part)
			}
		})
	}
	for _, method := range []string{"GET", "PUT", "DELETE", "PATCH"} {
		req, err := http.NewRequestWithContext(t.Context(), method, h.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", method, resp.StatusCode)
		}
	}
}

// A pipeline cannot take the place of a tool for runs.
func TestReservedName(t *testing.T) {
	taken := stone.Func("run_result", draft, page, func(_ context.Context, s string) (string, error) { return s, nil })
	_, err := serve.New(serve.Config{Journal: memdb.New(t), Mounts: map[string]serve.Mount{"/mcp": server.Mount(server.Config{})}, Pipelines: []serve.Pipeline{{Ashlar: taken}}})
	if err == nil || !strings.Contains(err.Error(), "run_result") {
		t.Errorf("got %v", err)
	}
}
