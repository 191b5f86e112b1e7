package serve_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/agent"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/serve"
)

// scripted are texts that would run owned() where a page takes one as HTML, as an attribute, as an address, as script or
// as Markdown.
var scripted = []string{
	`<script>owned()</script>`, `"><script>owned()</script>`, `'><img src=x onerror=owned()>`, `<img src=x onerror="owned()">`, `<svg onload=owned()>`,
	`<svg><script>owned()</script></svg>`, `<iframe srcdoc="<script>owned()</script>">`, `<body onload=owned()>`, `" autofocus onfocus=owned() x="`, `' onmouseover='owned()`,
	`</title><script>owned()</script>`, `</textarea><script>owned()</script>`, `</script><script>owned()</script>`, `--><script>owned()</script>`, `]]><script>owned()</script>`,
	`<a href="javascript:owned()">x</a>`, `[x](javascript:owned())`, `[x](JaVaScRiPt:owned())`, `[x](data:text/html,<script>owned()</script>)`, `![x](x" onerror="owned())`,
	"[x](java\nscript:owned())", `<javascript:owned()>`, `{{constructor.constructor('owned()')()}}`, `<style>*{background:url(javascript:owned())}</style>`,
	`<math><mtext></p><img src=x onerror=owned()>`, "<scr\x00ipt>owned()</script>", `&lt;script&gt;owned()&lt;/script&gt;`,
}

// run returns where a page would run one of them, "" if nowhere.
func run(n *html.Node) string {
	if n.Type == html.ElementNode {
		if strings.Contains(n.Data, "owned") {
			return "the element " + n.Data
		}
		for _, a := range n.Attr {
			value := strings.ToLower(strings.Map(func(r rune) rune {
				if r <= ' ' {
					return -1
				}
				return r
			}, a.Val))
			switch name := strings.ToLower(a.Key); {
			case strings.HasPrefix(name, "on") || name == "srcdoc" || name == "style" && strings.Contains(value, "owned") || strings.Contains(name, "owned"):
				return "the attribute " + name + " of " + n.Data
			case strings.Contains("href src action formaction data xlink:href poster", name) && (strings.HasPrefix(value, "javascript:") || strings.HasPrefix(value, "data:text") || strings.HasPrefix(value, "vbscript:")):
				return "the address " + a.Val
			}
		}
	}
	if n.Type == html.TextNode && n.Parent != nil && (n.Parent.Data == "script" || n.Parent.Data == "style") && strings.Contains(n.Data, "owned") {
		return "the text of a " + n.Parent.Data
	}
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if where := run(c); where != "" {
			return where
		}
	}
	return ""
}

// What pipelines, callers and models write is text on every page: questions, choices, names of lanes, results, failures, the
// texts that a call was asked with, labels, conversations; and what is no page is not taken for one.
func TestPagesRunNothing(t *testing.T) {
	items, item, made := dag.NewType[[]string]("items"), dag.NewType[string]("item"), dag.NewType[string]("made")
	sum := dag.NewType[int]("sum")
	name, reply, greeting := dag.NewType[string]("name"), dag.NewType[stone.Answer]("reply"), dag.NewType[call.JSON]("greeting")
	said := dag.NewType[agent.Text]("said")
	app := &call.Applicator{Registry: call.NewRegistry(call.Func(call.Metadata{ID: "greeter", Intents: []string{"text/greet"}},
		func(_ context.Context, in struct{ Name string }) (map[string]string, error) {
			return map[string]string{"text": in.Name}, nil
		}))}
	lane := stone.Func("lane", item, made, func(_ context.Context, s string) (string, error) {
		if s == "b" {
			return s, nil
		}
		return "", errors.New(s)
	})
	pipelines := []serve.Pipeline{
		{Name: "says", Ashlar: stone.Func("says", name, said, func(_ context.Context, s string) (agent.Text, error) { return agent.Text{Text: s}, nil })},
		{Name: "asks", Ashlar: stone.Ask("asks", name, reply, func(s string) string { return s })},
		{Name: "lanes", Ashlar: stone.Seq("both", stone.Map("each", items, item, lane, stone.Quorum(1)), stone.Reduce(
			stone.Func("sum", dag.Lanes(made), sum, func(_ context.Context, all []string) (int, error) { return len(all), nil }))), Result: "sum"},
		{Name: "calls", Ashlar: call.New("calls", greeting, call.Spec{Applicator: app, Intent: "text/greet",
			Input: call.From(dag.Derive(name, func(s string) map[string]string { return map[string]string{"name": s} }))})},
	}
	h := &house{T: t, Server: serveAll(t, serve.Config{Journal: memdb.New(t), Applicator: app, Pipelines: pipelines})}
	pages := 0
	look := func(payload, method, at, body string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, h.URL+at, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/html, */*") // errors are pages, too
		if body != "" {
			req.Header.Set("Content-Type", "application/json")
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
		kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
		switch {
		case kind == "text/html":
			pages++
			root, err := html.Parse(strings.NewReader(string(text)))
			if err != nil {
				t.Fatal(err)
			}
			if where := run(root); where != "" {
				t.Errorf("%s %s with %q: %s", method, at, payload, where)
			}
			if policy := resp.Header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe-inline") && strings.Contains(policy, "script-src 'unsafe-inline'") {
				t.Errorf("%s: policy %q", at, policy)
			}
		case len(text) > 0 && resp.Header.Get("X-Content-Type-Options") != "nosniff":
			t.Errorf("%s %s is %q and may be taken for a page", method, at, kind)
		}
		if file := resp.Header.Get("Content-Disposition"); file != "" {
			how, params, err := mime.ParseMediaType(file)
			if base := params["filename"]; err != nil || how != "attachment" || base != path.Base(base) || strings.ContainsAny(base, "\r\n\"\\<>") {
				t.Errorf("%s: Content-Disposition %q: %v", at, file, err)
			}
		}
	}
	for i, p := range scripted {
		quoted := func(v any) string {
			data, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		}
		for _, name := range []string{"says", "asks", "lanes", "calls"} {
			id := fmt.Sprint(name, "-", i)
			var input any = p
			if name == "lanes" {
				input = []string{p, "b"}
			}
			h.want("PUT", "/v1/runs/"+id, fmt.Sprintf(`{"pipeline":%q,"input":%s,"labels":{"of":%s}}`, name, quoted(input), quoted(p)), 201, "")
			h.do("GET", "/v1/runs/"+id+"/result?wait=30s", "")
			for _, at := range []string{"", "?at=" + url.QueryEscape(p), "/result", "/trace", "/step?path=" + name, "/step?path=" + url.QueryEscape("both/each[0]/lane"), "/step?path=" + url.QueryEscape(p)} {
				look(p, "GET", "/runs/"+id+at, "")
			}
		}
		chat := fmt.Sprintf(`{"id":%s,"trigger":"submit-message","messages":[{"id":"m","role":"user","parts":[{"type":"text","text":%s}]}]}`, quoted(fmt.Sprint("chat-", i)), quoted(p))
		look(p, "POST", "/v1/ui/says", chat)
		look(p, "POST", "/v1/agui/says", fmt.Sprintf(`{"threadId":"t-%d","runId":"r-%d","state":{},"messages":[{"id":"m","role":"user","content":%s}],"tools":[],"context":[],"forwardedProps":{}}`, i, i, quoted(p)))
		for _, route := range []string{"/v1/responses", "/v1/chat/completions", "/v1/messages"} {
			look(p, "POST", route, fmt.Sprintf(`{"model":%s,"max_tokens":9,"input":%[1]s,"messages":[{"role":"user","content":%[1]s}]}`, quoted(p)))
		}
		escaped := url.PathEscape(p)
		for _, at := range []string{"/", "/overview", "/questions", "/?text=" + url.QueryEscape(p), "/?label.of=" + url.QueryEscape(p), "/pipelines/says", "/pipelines/" + escaped, "/runs/" + escaped, "/compare?a=" + url.QueryEscape(p) + "&b=" + url.QueryEscape(p),
			"/v1/threads", "/v1/ui/says", "/v1/ui/says/" + escaped, fmt.Sprint("/v1/ui/says/chat-", i), "/v1/questions", "/search?q=" + url.QueryEscape(p)} {
			look(p, "GET", at, "")
		}
	}
	if pages < 20*len(scripted) {
		t.Errorf("%d pages", pages)
	}
	t.Logf("%d pages of %d texts", pages, len(scripted))
}
