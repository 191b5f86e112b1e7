package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/stonelayer/stone/serve"
)

func post(t *testing.T, url, kind, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// A body that a page of another origin may send without being asked is refused, in whatever protocol.
func TestBodies(t *testing.T) {
	h := newHouse(t)
	const rpc = `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"none"}}`
	const text = `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"slate"}]}}`
	for _, c := range []struct {
		path, kind, body string
		status           int
	}{
		{"/a2a", "text/plain", rpc, 415},
		{"/a2a", "application/x-www-form-urlencoded", rpc, 415},
		{"/a2a", "a/b/c", rpc, 415},
		{"/a2a/draft", "text/plain", rpc, 415},
		{"/a2a/draft/message:send", "text/plain", text, 415},
		{"/a2a/draft/v1/message:send", "text/plain", text, 415},
		{"/a2a", "", rpc, 200},
		{"/a2a", "application/json; charset=utf-8", rpc, 200},
		{"/a2a/draft/message:send", "application/a2a+json", text, 200},
		{"/a2a/message:send", "application/json", text, 400}, // which skill?
		{"/a2a/draft/message:send", "application/json", `{}`, 400},
		{"/a2a/draft/message:send", "application/json", `{"message":null}`, 400},
		{"/a2a/draft/message:send", "application/json", ``, 400},
		{"/a2a/draft/message:stream", "application/json", `[`, 400},
		{"/a2a/nothing/message:send", "application/json", text, 404},
	} {
		if status, got := post(t, h.url+c.path, c.kind, c.body); status != c.status {
			t.Errorf("%s as %q: %s: %d %s, want %d", c.path, c.kind, c.body, status, got, c.status)
		}
	}
}

// A page of tasks with large results ends before it is large, and the next page continues.
func TestPages(t *testing.T) {
	h := newHouse(t)
	c := h.client(sdk.TransportProtocolHTTPJSON)
	want := map[sdk.TaskID]bool{}
	for range 5 {
		want[h.send(c, message("draft", strings.Repeat("x", 3<<19))).ID] = true // 1.5 MiB
		want[h.send(c, message("chat", "Hello")).ID] = true
	}
	req := &sdk.ListTasksRequest{PageSize: 100, IncludeArtifacts: true}
	for pages := 1; ; pages++ {
		page, err := c.ListTasks(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := json.Marshal(page); len(text) > 5<<20 || len(page.Tasks) == 0 {
			t.Errorf("page %d has %d tasks in %d bytes", pages, len(page.Tasks), len(text))
		}
		for _, one := range page.Tasks {
			if !want[one.ID] {
				t.Errorf("task %s is unknown, or was listed before", one.ID)
			}
			delete(want, one.ID)
		}
		if req.PageToken = page.NextPageToken; req.PageToken == "" {
			if len(want) > 0 || pages != 3 {
				t.Errorf("%d pages, and %d tasks are in none", pages, len(want))
			}
			return
		}
	}
}

// A caller without a token learns no names: the card of a pipeline is like the card of one that there is not.
func TestCardOfUnknown(t *testing.T) {
	h := newHouse(t)
	h.stop()
	h.cfg.Name, h.cfg.Description = "house", "What the house does."
	h.access = tokens{"a": {Name: "a"}, "s": {Name: "s", Roles: []serve.Role{serve.Scrape}}}
	h.start()
	card := func(name, token string) string {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.url+"/a2a/"+name+"/.well-known/agent-card.json", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(resp.Status+" "+string(text), name, "NAME")
	}
	for _, token := range []string{"", "s"} {
		if known, unknown := card("draft", token), card("nothing", token); known != unknown || !strings.HasPrefix(known, "200") || strings.Contains(known, "Write a draft") {
			t.Errorf("token %q: %s\n%s", token, known, unknown)
		}
	}
	if known, unknown := card("draft", "a"), card("nothing", "a"); !strings.Contains(known, "Write a NAME.") || !strings.HasPrefix(unknown, "404") {
		t.Errorf("%s\n%s", known, unknown)
	}
}
