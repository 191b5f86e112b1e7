package serve_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/test/memdb"
	"github.com/stonelayer/stone/internal/test/servetest"
	"github.com/stonelayer/stone/serve"
)

// form posts a form, and returns the status and the body of the page to which that leads.
func (h *house) form(path string, values url.Values, header ...string) (int, string) {
	h.Helper()
	return h.do("POST", path, values.Encode(), append(header, "Content-Type", "application/x-www-form-urlencoded", "Accept", "text/html")...)
}

func (h *house) page(path, part string) {
	h.Helper()
	if status, text := h.do("GET", path, "", "Accept", "text/html"); status != 200 || !strings.Contains(text, part) {
		h.Errorf("%s: %d %s, want %s", path, status, text, part)
	}
}

// An answer continues the run at once: the server does not wait for its next search of the journal.
func TestAnswerContinues(t *testing.T) {
	steps := servetest.NewSteps()
	s := serveAll(t, serve.Config{Journal: memdb.New(t), Scan: time.Hour, Pipelines: []serve.Pipeline{{Name: "page", Ashlar: steps.Publish()}}})
	h := &house{T: t, Steps: steps, Server: s}
	for _, run := range []string{"a", "b"} {
		h.want("PUT", "/v1/runs/"+run, `{"pipeline":"page","input":{"text":"marble"}}`, 201, "")
		h.want("GET", "/v1/runs/"+run+"/result?wait=30s", "", 202, `"state":"waiting"`)
	}
	h.want("POST", "/v1/runs/a/answers", `{"question":"page/approve","response":"yes"}`, 200, "")
	if status, text := h.form("/runs/b/answers", url.Values{"question": {"page/approve"}, "response": {"yes"}}); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	for _, run := range []string{"a", "b"} {
		h.want("GET", "/v1/runs/"+run+"/result?wait=30s", "", 200, `"state":"done"`)
	}
}

// TestPipelinePage starts runs by the form of a pipeline, and finds them in the overview.
func TestPipelinePage(t *testing.T) {
	h := newHouse(t, nil)
	h.page("/overview", `<a href="/pipelines/draft">draft</a>`)
	h.page("/pipelines/draft", "It has not run yet")
	_, page := h.do("GET", "/pipelines/draft", "", "Accept", "text/html")
	id := regexp.MustCompile(`name="id" value="([a-z0-9]+)"`).FindStringSubmatch(page)
	if id == nil || !strings.Contains(page, `name="field.text"`) {
		t.Fatalf("no form in %s", page)
	}
	form := url.Values{"id": {id[1]}, "field.text": {"marble"}, "usd": {"0.5"}}
	post := func(status int, want string) {
		t.Helper()
		got, text := h.form("/pipelines/draft", form)
		if got != status || !strings.Contains(text, want) {
			t.Errorf("%d %s, want %d and %q", got, text, status, want)
		}
	}
	post(200, id[1])
	h.want("GET", "/v1/runs/"+id[1]+"/result?wait=30s", "", 200, "About marble")
	post(200, "About marble") // a second click
	_, list := h.do("GET", "/v1/runs", "")
	if n := strings.Count(list, `"pipeline":"draft"`); n != 1 {
		t.Errorf("%d runs were started: %s", n, list)
	}
	form.Set("field.text", "slate")
	post(409, "started by another request")
	form.Set("id", "other")
	form.Set("usd", "-1")
	post(400, "want 0 or more")
	for _, usd := range []string{"NaN", "Inf", "1e999"} {
		form.Set("usd", usd)
		post(400, "want 0 or more")
	}
	form.Set("usd", "")
	form.Set("id", "a/b")
	post(422, "the id")
	h.page("/overview", `href="/?q=pipeline%3Adraft&#43;since%3A`)
	h.page("/pipelines/draft", `<a href="/runs/`+id[1]+`">`)
	for _, path := range []string{"/pipelines/none", "/overview?days=0", "/overview?days=x", "/?q=stat:done"} {
		if status, text := h.do("GET", path, "", "Accept", "text/html"); status != 404 && status != 400 {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
}

func TestPages(t *testing.T) {
	h := newHouse(t, nil)
	h.want("PUT", "/v1/runs/a", `{"pipeline":"page","input":{"text":"<script>alert(1)</script>"}}`, 201, "")
	h.want("PUT", "/v1/runs/b", `{"pipeline":"draft","input":{"text":"bad"},"labels":{"team":"x"}}`, 201, "")
	h.want("PUT", "/v1/runs/c", `{"pipeline":"draft","input":{"text":"marble"}}`, 201, "")
	h.want("GET", "/v1/runs/a/result?wait=30s", "", 202, `"state":"waiting"`)
	h.want("GET", "/v1/runs/b/result?wait=30s", "", 200, `"state":"failed"`)
	h.want("GET", "/v1/runs/c/result?wait=30s", "", 200, `"state":"done"`)
	h.page("/", `<a href="/runs/a">a</a>`)
	h.page("/", `team=x`)
	h.page("/?q=state:failed", `<a href="/runs/b">b</a>`)
	h.page("/?q=label:team=y", "No run matches")
	h.page("/runs/b", `retries <a href="/runs/b/step?path=write"><code>write</code></a>`)
	h.page("/runs/b", `It read`)
	h.page("/runs/c", `About marble`)
	h.page("/runs/c/step?path=write", `About marble`)
	h.page("/runs/a", `About &lt;script&gt;alert(1)`)
	h.page("/questions", `name="response" value="yes"`)
	h.page("/compare?a=a&b=c", "the pipeline of run")
	h.page("/runs/c?q=MARBLE", "<mark>marble</mark>")
	for _, path := range []string{"/runs/zzz", "/runs/a/step?path=zzz", "/runs/a/nodes/00", "/runs/a?at=zzz", "/compare?a=a", "/nowhere"} {
		if status, text := h.do("GET", path, "", "Accept", "text/html"); status != 404 || !strings.Contains(text, "<h1>Not Found") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	for _, tt := range []struct {
		values url.Values
		status int
		part   string
	}{
		{url.Values{"question": {"page/approve"}}, 422, "The answer is empty"},
		{url.Values{"question": {"page/approve"}, "response": {"perhaps"}}, 422, "perhaps"},
		{url.Values{"question": {"zzz"}, "response": {"yes"}}, 404, "asks no question"},
		{url.Values{"question": {"page/approve"}, "response": {"yes"}}, 200, `<span class="id">a</span>`}, // the redirect was followed
		{url.Values{"question": {"page/approve"}, "response": {"no"}}, 409, "answered"},
	} {
		if status, text := h.form("/runs/a/answers", tt.values); status != tt.status || !strings.Contains(text, tt.part) {
			t.Errorf("%v: %d %s, want %d with %s", tt.values, status, text, tt.status, tt.part)
		}
	}
	h.want("GET", "/v1/runs/a/result?wait=30s", "", 200, `"content":"yes: About`)
	if status, _ := h.form("/runs/a/answers", url.Values{}, "Origin", "http://evil.example"); status != 403 {
		t.Errorf("a form of another origin: %d", status)
	}
}

// signIn signs a browser in, and returns its cookie.
func (h *house) signIn(token string, header ...string) string {
	h.Helper()
	c := h.session(token, header...)
	return c.Name + "=" + c.Value
}

func (h *house) session(token string, header ...string) *http.Cookie {
	h.Helper()
	req, err := http.NewRequestWithContext(h.Context(), "POST", h.URL+"/login", strings.NewReader(url.Values{"token": {token}}.Encode()))
	if err != nil {
		h.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req) // it follows no redirect
	if err != nil {
		h.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 303 || len(resp.Cookies()) != 1 {
		h.Fatalf("login: %d %v", resp.StatusCode, resp.Header)
	}
	return resp.Cookies()[0]
}

// Whoever has not logged in yet sees the page for that as it is meant to look.
func TestAssetsNeedNoToken(t *testing.T) {
	h := newHouse(t, byToken{})
	_, text := h.do("GET", "/", "", "Accept", "text/html")
	files := regexp.MustCompile(`/assets/[^"]+`).FindAllString(text, -1)
	if len(files) < 2 {
		t.Fatalf("the page names the files %v: %s", files, text)
	}
	for _, file := range files {
		h.want("GET", file, "", 200, "")
	}
}

// A cookie has no token, and logging out ends what it was good for.
func TestLogOut(t *testing.T) {
	h := newHouse(t, byToken{})
	for _, proxy := range []string{"http", "https"} {
		over := []string{"X-Forwarded-Proto", proxy}
		c := h.session("acme", over...)
		_, port, _ := strings.Cut(strings.TrimPrefix(h.URL, "http://"), ":")
		if name := map[string]string{"http": "stone-" + port, "https": "__Host-stone"}[proxy]; c.Name != name || c.Secure != (proxy == "https") ||
			!c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || strings.Contains(c.Raw, "acme") {
			t.Errorf("%s: %s", proxy, c.Raw)
		}
		with := append(over, "Cookie", c.Name+"="+c.Value, "Accept", "text/html")
		other := append(over, "Cookie", h.signIn("acme", over...), "Accept", "text/html")
		if status, text := h.do("GET", "/", "", with...); status != 200 || !strings.Contains(text, `action="/logout"`) {
			t.Errorf("%s: %d %s", proxy, status, text)
		}
		if status, _ := h.do("POST", "/logout", "", append(with, "Origin", "http://evil.example")...); status != 403 {
			t.Errorf("another origin logs out: %d", status)
		}
		if status, text := h.do("POST", "/logout", "", with...); status != 401 || !strings.Contains(text, `name="token"`) { // the redirect was followed
			t.Errorf("%s: %d %s", proxy, status, text)
		}
		if status, _ := h.do("GET", "/", "", with...); status != 401 {
			t.Errorf("%s: the cookie of a session that was ended: %d", proxy, status)
		}
		if status, _ := h.do("GET", "/", "", other...); status != 200 {
			t.Errorf("%s: another session of the token: %d", proxy, status)
		}
	}
	if status, text := h.do("GET", "/", "", "Authorization", "Bearer acme"); status != 200 || strings.Contains(text, "/logout") {
		t.Errorf("without a session: %d %s", status, text)
	}
	for _, cookie := range []string{"stone-token=acme", "__Host-stone=acme", "stone=acme"} {
		if status, _ := h.do("GET", "/", "", "Cookie", cookie); status != 401 {
			t.Errorf("%s: %d", cookie, status)
		}
	}
}

// byToken lets in whoever has a token, which is the name of a tenant.
type byToken struct{ tenants }

func (b byToken) Principal(r *http.Request) (serve.Principal, error) {
	name, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	r = r.Clone(r.Context())
	r.Header.Set("X-Tenant", name)
	return b.tenants.Principal(r)
}

func TestPagesOfTenants(t *testing.T) {
	h := newHouse(t, byToken{})
	acme := []string{"Cookie", h.signIn("acme"), "Accept", "text/html"}
	if status, text := h.do("PUT", "/v1/runs/a", `{"pipeline":"page","input":{"text":"marble"}}`, "Authorization", "Bearer acme"); status != 201 {
		t.Fatalf("%d %s", status, text)
	}
	if status, text := h.do("GET", "/v1/runs/a/result?wait=30s", "", acme...); status != 202 {
		t.Fatalf("%d %s", status, text)
	}
	if status, text := h.do("GET", "/", "", "Accept", "text/html"); status != 401 || !strings.Contains(text, `name="token"`) {
		t.Errorf("without a token: %d %s", status, text)
	}
	for _, path := range []string{"/", "/runs/a", "/runs/a/step?path=page/write", "/questions"} {
		if status, text := h.do("GET", path, "", acme...); status != 200 || !strings.Contains(text, "/runs/a") || strings.Contains(text, "acme.a") {
			t.Errorf("%s: %d %s", path, status, text)
		}
	}
	for _, path := range []string{"/runs/a", "/runs/acme.a", "/runs/a/step?path=page/write", "/compare?a=a&b=a"} {
		if status, _ := h.do("GET", path, "", "Cookie", h.signIn("globex"), "Accept", "text/html"); status != 404 {
			t.Errorf("%s of another tenant: %d", path, status)
		}
	}
	for _, path := range []string{"/", "/questions"} {
		if _, text := h.do("GET", path, "", "Cookie", h.signIn("globex")); strings.Contains(text, "/runs/a") {
			t.Errorf("%s shows the run of another tenant: %s", path, text)
		}
	}
	answer := url.Values{"question": {"page/approve"}, "response": {"yes"}}
	if status, _ := h.form("/runs/a/answers", answer, "Cookie", h.signIn("globex")); status != 404 {
		t.Errorf("another tenant answers: %d", status)
	}
	if status, _ := h.form("/runs/a/answers", answer, "Cookie", h.signIn("reader")); status != 403 {
		t.Errorf("a reader answers: %d", status)
	}
	for _, what := range []string{"resume", "cancel"} {
		if status, _ := h.form("/runs/a/"+what, url.Values{}, "Cookie", h.signIn("globex")); status != 404 {
			t.Errorf("%s by another tenant: %d", what, status)
		}
		if status, _ := h.form("/runs/a/"+what, url.Values{}, "Cookie", h.signIn("reader")); status != 403 {
			t.Errorf("%s by a reader: %d", what, status)
		}
	}
	if status, text := h.form("/login", url.Values{"token": {""}}); status != 401 {
		t.Errorf("an empty token: %d %s", status, text)
	}
}

// An action on chosen runs applies to the caller's runs, as they were shown, and once.
func TestChosenRuns(t *testing.T) {
	h := newHouse(t, byToken{})
	for _, run := range []string{"acme a", "acme b", "globex a"} {
		tenant, id, _ := strings.Cut(run, " ")
		if status, text := h.do("PUT", "/v1/runs/"+id, `{"pipeline":"page","input":{"text":"marble"}}`, "Authorization", "Bearer "+tenant); status != 201 {
			t.Fatalf("%d %s", status, text)
		}
		h.do("GET", "/v1/runs/"+id+"/result?wait=30s", "", "Authorization", "Bearer "+tenant)
	}
	acme := []string{"Cookie", h.signIn("acme"), "Accept", "text/html"}
	state := func(tenant, id string) string {
		_, text := h.do("GET", "/v1/runs/"+id, "", "Authorization", "Bearer "+tenant)
		return regexp.MustCompile(`"state":"(\w+)"`).FindString(text)
	}
	for _, tt := range []struct {
		form   url.Values
		status int
		part   string
		a, b   string
	}{
		{url.Values{"do": {"cancel"}}, 422, "choose 1 to 100", "waiting", "waiting"},
		{url.Values{"do": {"burn"}, "run": {"a"}}, 403, "may not", "waiting", "waiting"},
		{url.Values{"do": {"cancel"}, "run": {"a", "a"}}, 200, "Cancel 1 run?<", "waiting", "waiting"},
		{url.Values{"do": {"cancel"}, "run": {"a"}, "sure": {"yes"}, "seen.a": {"running 0 0"}}, 200, "None of them can be canceled", "waiting", "waiting"},
		{url.Values{"do": {"cancel"}, "run": {"a", "zzz"}, "sure": {"yes"}}, 200, `<h1>Runs`, "canceled", "waiting"}, // the redirect was followed
		{url.Values{"do": {"cancel"}, "run": {"a", "b"}, "sure": {"yes"}}, 200, "Left as they are", "canceled", "canceled"},
		{url.Values{"do": {"remove"}, "run": {"a"}, "sure": {"yes"}}, 200, `<h1>Runs`, "", "canceled"},
		{url.Values{"do": {"remove"}, "run": {"a"}, "sure": {"yes"}}, 200, `<h1>Runs`, "", "canceled"},
	} {
		status, text := h.form("/runs", tt.form, acme...)
		if status != tt.status || !strings.Contains(text, tt.part) {
			t.Errorf("%v: %d %s, want %d with %s", tt.form, status, text, tt.status, tt.part)
		}
		for id, want := range map[string]string{"a": tt.a, "b": tt.b} {
			if got := state("acme", id); want == "" && got != "" || !strings.Contains(got, want) {
				t.Errorf("%v: %s is %s, want %s", tt.form, id, got, want)
			}
		}
	}
	if got := state("globex", "a"); !strings.Contains(got, "waiting") {
		t.Errorf("the run of another tenant is %s", got)
	}
}
