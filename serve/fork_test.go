package serve_test

import (
	"context"
	"html"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/serve"
)

// A run of a server is forked from the page of a step: what is repeated and its side effects are said before, the other results are
// reused, a form that is sent twice starts one run, and no other tenant reaches it.
func TestForkOnPages(t *testing.T) {
	topic, text, mail := dag.NewType[string]("topic"), dag.NewType[string]("text"), dag.NewType[string]("mail")
	var wrote, sent atomic.Int32
	p := stone.Seq("letter",
		stone.Func("write", topic, text, func(_ context.Context, s string) (string, error) { wrote.Add(1); return "about " + s, nil }, stone.Effects()),
		stone.Func("send", text, mail, func(_ context.Context, s string) (string, error) { sent.Add(1); return "sent " + s, nil }, stone.Effects(effect.Net)))
	h := &house{T: t, Server: serveAll(t, serve.Config{Journal: memdb.New(t), Access: byHeader{}, Pipelines: []serve.Pipeline{{Name: "letter", Ashlar: p}}})}
	for _, tenant := range []string{"acme", ""} {
		want := func(status int, method, path, body string, parts ...string) string {
			t.Helper()
			header := []string{"X-Tenant", tenant, "Content-Type", "application/json"}
			if !strings.HasPrefix(path, "/v1/") {
				header = []string{"X-Tenant", tenant, "Content-Type", "application/x-www-form-urlencoded", "Accept", "text/html"}
			}
			got, text := h.do(method, path, body, header...)
			for _, part := range parts {
				if !strings.Contains(text, part) {
					t.Errorf("%s %s of %q: no %q in %s", method, path, tenant, part, text)
				}
			}
			if got != status {
				t.Fatalf("%s %s of %q: %d %s, want %d", method, path, tenant, got, text, status)
			}
			return text
		}
		want(201, "PUT", "/v1/runs/a", `{"pipeline":"letter","input":"marble"}`)
		want(200, "GET", "/v1/runs/a/result?wait=30s", "", `"done"`)
		wrote.Store(0)
		sent.Store(0)
		link := regexp.MustCompile(`href="(/runs/a/fork[^"]*)"`).FindStringSubmatch(want(200, "GET", "/runs/a/step?path=letter/send", "", "from here"))
		at := html.UnescapeString(link[1])
		asks := want(200, "GET", at, "", `Repeated</dt><dd>1 step<`, `Reused</dt><dd>1 step<`, "letter/send: net")
		form := url.Values{"path": {"letter/send"}, "id": {regexp.MustCompile(`name="id" value="([^"]*)"`).FindStringSubmatch(asks)[1]}}
		for range 2 {
			want(200, "POST", "/runs/a/fork", form.Encode(), `Fork of</dt><dd><a href="/runs/a">a</a>`)
		}
		want(200, "GET", "/v1/runs/"+form.Get("id")+"/result?wait=30s", "", "sent about marble")
		if wrote.Load() != 0 || sent.Load() != 1 {
			t.Errorf("the fork wrote %d and sent %d times", wrote.Load(), sent.Load())
		}
		form.Set("path", "letter/write") // of another fork
		want(409, "POST", "/runs/a/fork", form.Encode())
		form.Set("path", "letter/none")
		want(404, "POST", "/runs/a/fork", form.Encode())
		for header, status := range map[string]int{"X-Tenant": 404, "X-Roles": 403} { // another tenant, and a role that starts nothing
			value := map[string]string{"X-Tenant": "globex", "X-Roles": "read"}[header]
			if got, text := h.do("POST", "/runs/a/fork", form.Encode(), header, value, "Content-Type", "application/x-www-form-urlencoded", "Accept", "text/html"); got != status {
				t.Errorf("%s %s forks: %d %s", header, value, got, text)
			}
		}
	}
}
