package serve_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/serve"
)

// byHeader says who sends a request as its headers do.
type byHeader struct{}

func (byHeader) Principal(r *http.Request) (serve.Principal, error) {
	who := serve.Principal{Name: "somebody", Tenant: r.Header.Get("X-Tenant"), Streams: 30}
	if text := r.Header.Get("X-Roles"); text != "" {
		for role := range strings.SplitSeq(text, " ") {
			who.Roles = append(who.Roles, serve.Role(role))
		}
	}
	return who, nil
}

// A reply is what the AI SDK shows of a message, by the ids of its parts.
type reply struct {
	status   int
	problem  string
	message  string
	parts    map[string]string
	question string // the id of the last open one
	last     string // chunk
}

// read applies the chunks of a stream, as long as more says so.
func (r *reply) read(body io.Reader, more func(*reply) bool) {
	r.parts = map[string]string{}
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, 1<<20)
	for more(r) && lines.Scan() {
		text, ok := strings.CutPrefix(lines.Text(), "data: ")
		var c struct {
			Type, ID, Delta, MessageID, ToolCallID, Output, ErrorText, ApprovalID string
			ProviderMetadata                                                      struct{ Stone struct{ Retracted string } }
		}
		if !ok || json.Unmarshal([]byte(text), &c) != nil {
			continue
		}
		switch r.last = c.Type; c.Type {
		case "start":
			r.message = c.MessageID
		case "text-delta", "reasoning-delta":
			r.parts[c.ID] += c.Delta
		case "text-end":
			if c.ProviderMetadata.Stone.Retracted != "" {
				delete(r.parts, c.ID)
			}
		case "tool-output-available", "tool-output-error":
			r.parts[c.ToolCallID] = c.Output + c.ErrorText
		case "tool-approval-request":
			r.question = c.ApprovalID
		case "data-question":
			r.question = c.ID
		case "error":
			r.problem = c.ErrorText
		}
	}
}

func whole(*reply) bool { return true }

// text is what the reply says, without ids.
func (r *reply) text() string {
	ids := slices.Sorted(maps.Keys(r.parts))
	var texts []string
	for _, id := range ids {
		texts = append(texts, r.parts[id])
	}
	return strings.Join(texts, "|")
}

// chat sends a request. Headers are pairs.
func chat(t *testing.T, method, url, body string, more func(*reply) bool, headers ...string) *reply {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	r := &reply{status: resp.StatusCode}
	if resp.StatusCode != http.StatusOK {
		var p struct{ Detail string }
		_ = json.NewDecoder(resp.Body).Decode(&p)
		r.problem = p.Detail
		return r
	}
	r.read(resp.Body, more)
	return r
}

// saying is the request with a message, after replies with these ids.
func saying(chat, id, text string, replies ...string) string {
	var messages []string
	for _, r := range replies {
		messages = append(messages, fmt.Sprintf(`{"id":%q,"role":"assistant","parts":[]}`, r))
	}
	messages = append(messages, fmt.Sprintf(`{"id":%q,"role":"user","parts":[{"type":"text","text":%q}]}`, id, text))
	return fmt.Sprintf(`{"id":%q,"trigger":"submit-message","messages":[%s]}`, chat, strings.Join(messages, ","))
}

func approving(chat, reply, question string) string {
	return fmt.Sprintf(`{"id":%q,"messages":[{"id":%q,"role":"assistant","parts":[{"type":"tool-buy","toolCallId":"x","approval":{"id":%q,"approved":true}}]}]}`, chat, reply, question)
}

// A history of replies that are none of the conversation starts no turn without it.
func TestConversationUnknownReplies(t *testing.T) {
	q := openQuarry(t, serve.Config{Journal: memdb.New(t)})
	url := q.URL + "/v1/ui/mason"
	chat(t, "POST", url, saying("chat", "m1", "hello"), whole)
	var many []string
	for i := range 40 {
		many = append(many, fmt.Sprint("foreign-", i))
	}
	const lost = `none of the newest 32 replies before the message is one of the conversation "chat": send the ids that came with its replies, or only the message to continue its newest turn`
	for _, c := range []struct {
		replies []string
		problem string
		text    string
	}{
		{many, lost, ""},
		{append([]string{"chat-turn-1"}, many...), lost, ""},
		{append([]string{"chat-turn-1"}, many[:31]...), "", "3: hello"},
		{many[:32], "", "5: hello"}, // the newest turn
	} {
		id := fmt.Sprint("m", len(c.replies), c.replies[0])
		r := chat(t, "POST", url, saying("chat", id, "hello", c.replies...), whole)
		if r.problem != c.problem || r.text() != c.text || (r.status == http.StatusConflict) != (c.problem != "") {
			t.Errorf("%d replies: %+v", len(c.replies), r)
		}
	}
}

// Tenants have conversations of their own under the same ids, and what a caller may do is checked.
func TestConversationsOfTenants(t *testing.T) {
	q := openQuarry(t, serve.Config{Journal: memdb.New(t), Access: byHeader{}})
	url := q.URL + "/v1/ui/mason"
	for _, tenant := range []string{"acme", "globex"} {
		if r := chat(t, "POST", url, saying("chat", "m1", "buy"), whole, "X-Tenant", tenant); r.question == "" || r.message != "chat-turn-1" {
			t.Fatalf("%+v", r)
		}
	}
	asked := chat(t, "GET", url+"/chat/stream?message=m1", "", whole, "X-Tenant", "acme")
	for _, c := range []struct {
		tenant, roles, body string
		status              int
		problem             string
	}{
		{"initech", "", approving("chat", asked.message, asked.question), 404, "no such run"},
		{"acme", "", approving("other", asked.message, asked.question), 404, "no such run"},
		{"acme", "read start", approving("chat", asked.message, asked.question), 403, `this needs the role "answer", which the caller does not have`},
		{"acme", "read answer", saying("new", "m1", "hello"), 403, `this needs the role "start", which the caller does not have`},
		{"acme", "read answer", approving("chat", asked.message, asked.question), 200, ""},
		{"acme", "", approving("chat", asked.message, asked.question), 200, ""}, // the same answer again
	} {
		if r := chat(t, "POST", url, c.body, whole, "X-Tenant", c.tenant, "X-Roles", c.roles); r.status != c.status || r.problem != c.problem {
			t.Errorf("%s with %s: %d %s", c.body, c.roles, r.status, r.problem)
		}
	}
	if n := q.bought.Load(); n != 1 {
		t.Errorf("bought %d times", n)
	}
	if r := chat(t, "GET", url+"/chat/stream?message=m1", "", whole, "X-Tenant", "globex"); r.question == "" {
		t.Errorf("the other tenant has %+v", r)
	}
}

// A caller without a tenant, who sees all runs, has conversations of its own too.
func TestConversationsWithoutTenant(t *testing.T) {
	q := openQuarry(t, serve.Config{Journal: memdb.New(t), Access: byHeader{}})
	url := q.URL + "/v1/ui/mason"
	if r := chat(t, "POST", q.URL+"/v1/ui/page", saying("other", "m1", "slate"), whole, "X-Tenant", "acme"); r.status != http.StatusOK {
		t.Fatalf("%+v", r)
	}
	const some = 35 // more than are read at once
	for n := 1; n <= 1+2*some; n += some {
		for i := n; i < n+some; i++ {
			if r := chat(t, "POST", url, saying("chat", fmt.Sprint("a", i), "hello"), whole, "X-Tenant", "acme"); r.message != fmt.Sprint("chat-turn-", i) {
				t.Fatalf("%d: %+v", i, r)
			}
		}
		number, message := n/some+1, fmt.Sprint("m", n)
		id, text := fmt.Sprint("chat-turn-", number), fmt.Sprintf("%d: hello", 2*number-1)
		if r := chat(t, "POST", url, saying("chat", message, "hello"), whole); r.message != id || r.text() != text {
			t.Errorf("%+v", r)
		}
		if r := chat(t, "GET", url+"/chat/stream?message="+message, "", whole); r.message != id || r.text() != text {
			t.Errorf("%+v", r)
		}
	}
	if r := chat(t, "GET", url+"/chat/stream?message=a105", "", whole); r.status != http.StatusNoContent {
		t.Errorf("%+v", r)
	}
	if r := chat(t, "POST", url, saying("other", "m1", "hello", "acme.other-turn-1"), whole); r.message != "other-turn-1" || r.text() != "1: hello" {
		t.Errorf("%+v", r)
	}
}

// Every reply of a conversation needs the role read, and what a message does another one. The message "m2" answered a question
// of the conversation, and is sent again.
func TestConversationRoles(t *testing.T) {
	const read, start, answer = `this needs the role "read"`, `this needs the role "start"`, `this needs the role "answer"`
	q := openQuarry(t, serve.Config{Journal: memdb.New(t), Access: byHeader{}})
	asks := func(c string) *reply { return chat(t, "POST", q.URL+"/v1/ui/mason", saying(c, "m1", "buy"), whole) }
	chat(t, "POST", q.URL+"/v1/ui/page", saying("said", "m1", "slate"), whole)
	if r := chat(t, "POST", q.URL+"/v1/ui/page", saying("said", "m2", "yes", "said-turn-1"), whole); r.text() != "yes: slate" {
		t.Fatalf("%+v", r)
	}
	for _, c := range []struct {
		roles                         string
		start, answer, again, resumed string // the problem with it
	}{
		{"none", read, read, read, read},
		{"start", read, read, read, read},
		{"answer", read, read, read, read},
		{"start answer", read, read, read, read},
		{"read", start, answer, start, ""},
		{"read start", "", answer, "", ""},
		{"read answer", start, "", "", ""},
		{"", "", "", "", ""}, // all
	} {
		id := strings.ReplaceAll(c.roles, " ", "-") + "x"
		asked := asks(id)
		resume := fmt.Sprintf(`{"threadId":%q,"runId":"2","messages":[],"resume":[{"interruptId":%q,"status":"resolved","payload":{"approved":true}}]}`, id+"ag", asks(id+"ag").question)
		for _, r := range []struct{ name, method, path, body, problem string }{
			{"ui start", "POST", "ui/mason", saying("ui"+id, "m1", "hello"), c.start},
			{"agui start", "POST", "agui/mason", fmt.Sprintf(`{"threadId":%q,"runId":"1","messages":[{"id":"1","role":"user","content":"hello"}]}`, "ag"+id), c.start},
			{"ui answer", "POST", "ui/mason", approving(id, asked.message, asked.question), c.answer},
			{"agui answer", "POST", "agui/mason", resume, c.answer},
			{"ui said", "POST", "ui/page", saying("said", "m2", "yes"), c.again},
			{"agui said", "POST", "agui/page", `{"threadId":"said","runId":"1","messages":[{"id":"m2","role":"user","content":"yes"}]}`, c.again},
			{"stream", "GET", "ui/page/said/stream?message=m1", "", c.resumed},
		} {
			status := http.StatusOK
			if r.problem != "" {
				status = http.StatusForbidden
			}
			if got := chat(t, r.method, q.URL+"/v1/"+r.path, r.body, whole, "X-Roles", c.roles); got.status != status || !strings.HasPrefix(got.problem, r.problem) {
				t.Errorf("%s with %q: %d %s", r.name, c.roles, got.status, got.problem)
			}
		}
	}
}

// What clients get wrong is said.
func TestConversationsRefused(t *testing.T) {
	q := openQuarry(t, serve.Config{Journal: memdb.New(t)})
	if r := chat(t, "POST", q.URL+"/v1/ui/polite", saying("taken", "m1", "x"), func(r *reply) bool { return r.message == "" }); r.status != 200 {
		t.Fatal(r)
	}
	for _, c := range []struct {
		path, body string
		status     int
		problem    string
	}{
		{"ui/mason", `[]`, 422, "the body is not a request of the AI SDK"},
		{"ui/mason", `{"id":"c"}`, 422, "the request has no new message"},
		{"ui/mason", `{"id":"c","messages":[{"id":"1","role":"system","parts":[]}]}`, 422, `the last message has the role "system"`},
		{"ui/mason", `{"id":"c","messages":[{"id":"1","role":"user","parts":[]}]}`, 422, "the request has no new message"},
		{"ui/mason", `{"id":"c","messages":[{"id":"1","role":"user","content":"x"}]}`, 422, "the last message has no parts: want {"},
		{"ui/mason", `{"id":"c","messages":[{"id":"1","role":"user","parts":[{"type":"sound"}]}]}`, 422, `a part of the type "sound": want text, file or data-answer`},
		{"ui/mason", `{"id":"c","messages":[{"id":"1","role":"user","parts":[{"type":"data-answer","data":1}]}]}`, 422, "a part data-answer: want"},
		{"ui/mason", `{"id":"c","messages":[{"id":"1","role":"user","parts":[{"type":"file","url":"data:x"}]}]}`, 422, "a data URL starts with"},
		{"ui/mason", `{"id":"c","messages":[{"id":"1","role":"assistant","parts":[{"type":"text","text":"x"}]}]}`, 422, "the request has no new message"},
		{"ui/mason", `{"id":"c","trigger":"resume","messages":[]}`, 422, `the trigger "resume"`},
		{"ui/mason", saying("c", "", "x"), 422, "the id of the last message has 0 bytes"},
		{"ui/mason", saying("c", strings.Repeat("x", 513), "x"), 422, "the id of the last message has 513 bytes"},
		{"ui/mason", saying(strings.Repeat("c", 201), "m", "x"), 422, "the id of the conversation"},
		{"ui/mason", saying("taken", "m", "x"), 409, `the conversation "taken" is one with the pipeline "polite"`},
		{"ui/mason", approving("c", "r", "c-turn-1~nothing#v"), 404, "no such run"},
		{"ui/mason", approving("c", "r", "nothing"), 422, "was not issued by this server"},
		{"ui/none", saying("c", "m", "x"), 404, `no pipeline "none" is published`},
		{"agui/mason", `{"threadId":"c","messages":[]}`, 422, "the runId is missing"},
		{"agui/mason", `{"threadId":"c","runId":"1","messages":[{"id":"1","role":"user","content":{}}]}`, 422, "neither a text nor a list"},
		{"agui/mason", `{"threadId":"c","runId":"1","messages":[{"id":"1","role":"user","content":[{"type":"image","source":{"type":"file"}}]}]}`, 422, `a source of the type "file": want data or url`},
		{"agui/mason", `{"threadId":"c","runId":"1","messages":[1]}`, 422, "message 1: "},
		{"agui/mason", `{"threadId":"c","runId":"1","messages":[],"resume":[{"interruptId":"x","status":"done"}]}`, 422, `the status "done"`},
		{"agui/mason", `{"threadId":"c","runId":"1","messages":[],"resume":[{"interruptId":"x","status":"resolved"}]}`, 422, "the payload: want a string"},
		{"agui/mason", strings.Repeat(" ", 8<<20+1), 413, "the body is longer"},
	} {
		if r := chat(t, "POST", q.URL+"/v1/"+c.path, c.body, whole); r.status != c.status || !strings.Contains(r.problem, c.problem) {
			t.Errorf("%.200s: %d %s", c.body, r.status, r.problem)
		}
	}
}

// A message that many clients send at the same time is answered once, and all of them get the answer.
func TestConversationOnce(t *testing.T) {
	q := openQuarry(t, serve.Config{Journal: memdb.New(t), Access: byHeader{}})
	url := q.URL + "/v1/ui/slow"
	var all sync.WaitGroup
	replies := make([]*reply, 20)
	var began sync.WaitGroup
	began.Add(len(replies))
	for i := range replies {
		all.Go(func() {
			once := sync.OnceFunc(began.Done)
			replies[i] = chat(t, "POST", url, saying("chat", "m1", "hello"), func(r *reply) bool {
				if r.text() != "" {
					once()
				}
				return true
			})
		})
	}
	began.Wait()
	q.gate.set(true)
	all.Wait()
	for _, r := range replies {
		if r.text() != "One two." || r.last != "finish" {
			t.Errorf("%+v", r)
		}
	}
	if n := q.asked.Load(); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
}

// A message that is sent again is not an answer to the question that it led to.
func TestConversationAsksAgain(t *testing.T) {
	q := openQuarry(t, serve.Config{Journal: memdb.New(t)})
	for _, body := range []string{saying("chat", "m1", "yes"), saying("chat", "m1", "yes")} {
		if r := chat(t, "POST", q.URL+"/v1/ui/page", body, whole); r.question == "" || r.message != "chat-turn-1" {
			t.Errorf("%+v", r)
		}
	}
	for range 2 { // nor does an answer that is sent again start a turn
		if r := chat(t, "POST", q.URL+"/v1/ui/page", saying("chat", "m2", "no", "chat-turn-1"), whole); r.text() != "no: yes" || r.message != "chat-turn-1~m2" {
			t.Errorf("%+v", r)
		}
	}
	if r := chat(t, "POST", q.URL+"/v1/ui/page", saying("chat", "m3", "no", "chat-turn-1", "chat-turn-1~m2"), whole); r.message != "chat-turn-2" {
		t.Errorf("%+v", r)
	}
}

// A caller with too many streams is refused before anything runs.
func TestConversationStreams(t *testing.T) {
	q := openQuarry(t, serve.Config{Journal: memdb.New(t), Streams: 1})
	busy, done := make(chan bool, 1), make(chan bool)
	go func() {
		chat(t, "POST", q.URL+"/v1/ui/slow", saying("one", "m", "hello"), func(r *reply) bool {
			if r.text() != "" {
				busy <- true
				<-done
			}
			return r.text() == ""
		})
		done <- true
	}()
	<-busy
	if r := chat(t, "POST", q.URL+"/v1/ui/mason", saying("two", "m", "hello"), whole); r.status != http.StatusTooManyRequests {
		t.Errorf("%+v", r)
	}
	done <- true
	<-done
	if n := q.asked.Load(); n != 1 {
		t.Errorf("the models were asked %d times", n)
	}
}

// Another server tells of a turn that this one runs, when it is complete, and continues a turn that this one
// gives up: with every server, the reply is the same, and what is recorded is not done again.
func TestConversationElsewhere(t *testing.T) {
	shared := memdb.New(t)
	first, second := openQuarry(t, serve.Config{Journal: shared}), openQuarry(t, serve.Config{Journal: shared})
	started := func(r *reply) bool { return r.text() == "" }
	if r := chat(t, "POST", first.URL+"/v1/ui/slow", saying("chat", "m1", "hello"), started); r.text() != "One " {
		t.Fatalf("%+v", r)
	}
	got := make(chan *reply)
	go func() { got <- chat(t, "GET", second.URL+"/v1/ui/slow/chat/stream", "", whole) }()
	first.gate.set(true)
	if r := <-got; r.text() != "One two." && r.status != http.StatusNoContent { // it was over before the request
		t.Errorf("%+v", r)
	}
	if r := chat(t, "GET", second.URL+"/v1/ui/slow/chat/stream?message=m1", "", whole); r.text() != "One two." || r.message != "chat-turn-1" {
		t.Errorf("%+v", r)
	}
	if r := chat(t, "POST", second.URL+"/v1/ui/mason", saying("buys", "m1", "buy"), whole); r.question == "" {
		t.Errorf("%+v", r)
	} else if r := chat(t, "POST", first.URL+"/v1/ui/mason", approving("buys", r.message, r.question), whole); !strings.Contains(r.text(), "So bought 1.") {
		t.Errorf("%+v", r)
	}
	if n := first.bought.Load() + second.bought.Load(); n != 1 {
		t.Errorf("bought %d times", n)
	}
}

// What a journal has of a turn is what was streamed of it.
func TestConversationRecorded(t *testing.T) {
	q := openQuarry(t, serve.Config{Journal: memdb.New(t)})
	q.gate.set(true)
	for pipeline, text := range map[string]string{"mason": "look", "polite": "hello", "slow": "hello"} {
		url := q.URL + "/v1/ui/" + pipeline
		live := chat(t, "POST", url, saying(pipeline, "m1", text), whole)
		recorded := chat(t, "GET", url+"/"+pipeline+"/stream?message=m1", "", whole)
		if diff := cmp.Diff(live.parts, recorded.parts); diff != "" || len(live.parts) == 0 || live.message != recorded.message {
			t.Errorf("%s: -live +recorded\n%s", pipeline, diff)
		}
	}
}

// A server that ends tells its clients to come back, and the next one continues the turn.
func TestConversationDrained(t *testing.T) {
	shared := memdb.New(t)
	first := openQuarry(t, serve.Config{Journal: shared, Grace: 1})
	var second *quarry
	r := chat(t, "POST", first.URL+"/v1/ui/slow", saying("chat", "m1", "hello"), func(r *reply) bool {
		if r.text() != "" && second == nil {
			go first.Stop()
			second = openQuarry(t, serve.Config{Journal: shared})
		}
		return true
	})
	if r.last != "error" || !strings.Contains(r.problem, "the server is closing") {
		t.Errorf("%+v", r)
	}
	second.gate.set(true)
	if r := chat(t, "POST", second.URL+"/v1/ui/slow", saying("chat", "m1", "hello"), whole); r.text() != "One two." || r.message != "chat-turn-1" {
		t.Errorf("%+v", r)
	}
}
