package rest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/rest"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/stonetest"
)

func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"text": "forty-two"}`)
	}))
	defer server.Close()

	remote := rest.New(call.Metadata{ID: "remote/answer"}, rest.Config{URL: server.URL, Scope: call.Scope{Net: call.Net{server.URL}}})
	reply, err := remote.Invoke(context.Background(), &call.Request{Intent: "text/respond", Input: call.JSON(`{"prompt":"?"}`)})
	fmt.Println(string(reply.Out), err)
	// Output: {"text":"forty-two"} <nil>
}

// serve starts a server, and a client that leaves nothing behind.
func serve(t *testing.T, handler http.HandlerFunc) (string, *http.Client) {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL, server.Client()
}

func TestCapability(t *testing.T) {
	stonetest.TestCapability(t, stonetest.Capability{
		Make: func(t *testing.T) call.Capability {
			url, client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if strings.Contains(string(body), "hang") {
					<-r.Context().Done()
					return
				}
				fmt.Fprint(w, `{"text":"x"}`)
			})
			return rest.New(call.Metadata{}, rest.Config{URL: url, Client: client})
		},
		OK:   &call.Request{Intent: "x/y", Input: call.JSON(`{"text":"go"}`)},
		Slow: &call.Request{Intent: "x/y", Input: call.JSON(`{"text":"hang"}`)},
	})
}

// A piece is passed on before the answer ends: the server waits until it was heard.
func TestStreams(t *testing.T) {
	for _, test := range []struct {
		kind  string
		parts []string
		want  string
	}{
		{"application/x-ndjson", []string{`{"type":"delta","text":"one"}` + "\n", `{"type":"delta","text":" two"}` + "\n"}, `{"text":"one two"}`},
		{"application/json", []string{`{"type":"delta","text":"one"}` + "\n", `{"type":"delta","text":" two"}` + "\n" + `{"text":"one two"}`}, `{"text":"one two"}`},
		{"text/event-stream; charset=utf-8", []string{": hello\n\ndata: {\"type\":\"delta\",\ndata: \"text\":\"one\"}\n\n", "data: {:type :delta :text \" two\"}\r\n\r\ndata: [DONE]"}, `{"text":"one two"}`},
		{"text/event-stream", []string{`data: {"type":"delta","text":"one"}` + "\n\n", "data: {\"type\":\"delta\",\"text\":\" two\"}\n\nevent: end\ndata: {\"result\":{\"type\":\"value\",\"out\":{\"text\":\"3\"}}}\n\n"}, `{"text":"3"}`},
		{"text/event-stream", []string{`data: {"type":"delta","text":"one"}` + "\n\n", "data: {\"type\":\"delta\",\"text\":\" two\"}\n\ndata: {\"error\":{\"type\":\"oven/cold\",\"message\":\"no gas\"}}\n\n"}, "oven/cold at act: no gas"},
	} {
		heard := make(chan bool, 1)
		url, client := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", test.kind)
			io.WriteString(w, test.parts[0])
			w.(http.Flusher).Flush()
			<-heard
			io.WriteString(w, test.parts[1])
		})
		app := &call.Applicator{Registry: call.NewRegistry(rest.New(
			call.Metadata{ID: "far", CanProduce: []string{call.Value, call.Stream}}, rest.Config{URL: url, Client: client},
		))}
		var said []string
		resp, _ := app.Act(t.Context(), call.Trace{ID: "r"}, call.Spec{Intent: "x/y"}, stone.Config{
			Grant: []string{"net"},
			Watch: event.Func(event.LevelDelta, func(e event.Event) {
				switch d := e.Data.(type) {
				case event.Delta:
					if said = append(said, d.Text); len(said) == 1 {
						heard <- true
					}
				case event.Retracted:
					said = append(said, "retracted")
				}
			}),
		})
		got, void := "", "retracted"
		if resp.Err != nil {
			got = resp.Err.Error()
		} else {
			got, void = string(resp.Reply.Out), ""
		}
		if got != test.want || strings.Join(said, "") != "one two"+void {
			t.Errorf("%s: %s, heard %q, want %s", test.kind, got, said, test.want)
		}
	}
}

// A stream that breaks off is no answer.
func TestStreamCutOff(t *testing.T) {
	url, client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"type":"delta","text":"one"}`+"\n")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	_, err := rest.New(call.Metadata{}, rest.Config{URL: url, Client: client}).Invoke(t.Context(), &call.Request{})
	if err == nil || !strings.HasPrefix(err.Error(), "runtime/unavailable: ") {
		t.Error(err)
	}
}

func TestAnswers(t *testing.T) {
	for _, test := range []struct {
		status int
		after  string // Retry-After
		body   string
		want   string
		wait   time.Duration
	}{
		{200, "", `{"text":"x"}`, `{"text":"x"}`, 0},
		{201, "", `{:text "x"}`, `{"text":"x"}`, 0},
		{200, "", `{"proto":1,"trace":{"id":"r"},"result":{"type":"value","out":1}}`, `1`, 0},
		{200, "", `{"error":{"type":"oven/cold","message":"no gas"}}`, `oven/cold: no gas`, 0},
		{200, "", `<html> <body>oops</body>`, `schema/invalid: `, 0},
		{200, "", ``, `schema/invalid: `, 0},
		{200, "", `"` + strings.Repeat("x", 2000) + `"`, `schema/invalid: the response of the server 127.0.0.1:`, 0},
		{400, "", `{"error":{"type":"oven/cold","message":"no gas"}}`, `oven/cold: no gas`, 0},
		{400, "", "no\nsuch thing", `runtime/invoke-failed: the server answers with status 400: no such thing`, 0},
		{500, "", ``, `runtime/unavailable: the server answers with status 500`, 0},
		{429, "7", `slow down`, `runtime/unavailable: the server answers with status 429: slow down`, 7 * time.Second},
		{503, "", `{"error":{"type":"x/y","message":"later"}}`, `runtime/unavailable: later`, 0},
		{503, "-5", ``, `runtime/unavailable: `, 0},
		{429, "nonsense", ``, `runtime/unavailable: `, 0},
	} {
		url, client := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if test.after != "" {
				w.Header().Set("Retry-After", test.after)
			}
			w.WriteHeader(test.status)
			io.WriteString(w, test.body)
		})
		reply, err := rest.New(call.Metadata{}, rest.Config{URL: url, Client: client, MaxBody: 1000}).Invoke(t.Context(), &call.Request{})
		got := ""
		var failed *call.Error
		if err != nil {
			got = err.Error()
			errors.As(err, &failed)
		} else {
			got = string(reply.Out)
		}
		if !strings.HasPrefix(got, test.want) || strings.Contains(got, "\n") {
			t.Errorf("%d %.40s: %s, want %s", test.status, test.body, got, test.want)
		}
		if failed != nil && failed.RetryAfter != test.wait {
			t.Errorf("%d %q: wait %v, want %v", test.status, test.after, failed.RetryAfter, test.wait)
		}
	}
}

func TestRetryAfterDate(t *testing.T) {
	url, client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", time.Now().Add(time.Minute).UTC().Format(http.TimeFormat))
		w.WriteHeader(503)
	})
	_, err := rest.New(call.Metadata{}, rest.Config{URL: url, Client: client}).Invoke(t.Context(), &call.Request{})
	var failed *call.Error
	if !errors.As(err, &failed) || failed.RetryAfter < 50*time.Second || failed.RetryAfter > time.Minute {
		t.Error(err)
	}
}

func TestRequest(t *testing.T) {
	t.Setenv("STONE_TEST_KEY", "Bearer s3cret")
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var header http.Header
	var body []byte
	url, client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		header = r.Header.Clone()
		body, _ = io.ReadAll(r.Body)
		fmt.Fprint(w, `1`)
	})
	c := rest.Config{URL: url, Client: client, Header: map[string]rest.Value{
		"Authorization": {Env: "STONE_TEST_KEY"}, "X-Key": {File: file}, "X-Plain": {Text: "plain"}}}
	req := &call.Request{Trace: call.Trace{ID: "r-1"}, Intent: "x/y", Input: call.JSON(`{"a":1}`), Key: "k-1"}
	if _, err := rest.New(call.Metadata{}, c).Invoke(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"Authorization": "Bearer s3cret", "X-Key": "from-file", "X-Plain": "plain", "Idempotency-Key": "k-1", "Content-Type": "application/json"} {
		if got := header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if !strings.Contains(string(body), `"intent":"x/y"`) || !strings.Contains(string(body), `"proto":1`) {
		t.Errorf("%s is not the envelope", body)
	}
	c.Header["Authorization"] = rest.Value{Env: "STONE_TEST_UNSET"}
	if _, err := rest.New(call.Metadata{}, c).Invoke(t.Context(), req); err == nil || !strings.Contains(err.Error(), "runtime/unavailable: header Authorization: the variable STONE_TEST_UNSET is not set") {
		t.Error(err)
	}
}

// A server that repeats what it was sent reveals it to no one else.
func TestSecretsAreHidden(t *testing.T) {
	t.Setenv("STONE_TEST_KEY", "Bearer s3cret-s3cret")
	for _, status := range []int{http.StatusOK, http.StatusInternalServerError} {
		url, client := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(status)
			_, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
			fmt.Fprintf(w, `{"error":{"type":"key/unknown","message":"no key %s","details":{"key":%[1]q}}}`, key)
		})
		c := rest.Config{URL: url, Client: client, Header: map[string]rest.Value{"Authorization": {Env: "STONE_TEST_KEY"}}}
		_, err := rest.New(call.Metadata{}, c).Invoke(t.Context(), &call.Request{})
		var failed *call.Error
		if !errors.As(err, &failed) || failed.Message != "no key [redacted]" || string(failed.Details) != `{"key":"[redacted]"}` {
			t.Errorf("status %d: %v", status, err)
		}
	}
}

// A redirect is followed within the scope, and takes no secret to another host.
func TestRedirect(t *testing.T) {
	var seen http.Header
	other, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen = r.Header.Clone()
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, `"%s, %d bytes"`, r.Method, len(body))
	})
	status := 307
	url, client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/loop" {
			http.Redirect(w, r, "/loop", http.StatusTemporaryRedirect)
			return
		}
		http.Redirect(w, r, other, status)
	})
	c := rest.Config{URL: url, Client: client, Header: map[string]rest.Value{"X-Key": {Text: "s3cret"}}}
	ask := func() (string, error) {
		reply, err := rest.New(call.Metadata{}, c).Invoke(t.Context(), &call.Request{Intent: "x/y"})
		if err != nil {
			return "", err
		}
		return string(reply.Out), nil
	}
	if _, err := ask(); err == nil || !strings.Contains(err.Error(), "a redirect from") {
		t.Errorf("%v, want no redirect to another host", err)
	}
	c.Scope.Net = call.Net{url, other}
	if got, err := ask(); err != nil || !strings.HasPrefix(got, `"POST, `) || got == `"POST, 0 bytes"` || seen.Get("X-Key") != "" {
		t.Errorf("%s, %v, X-Key %q", got, err, seen.Get("X-Key"))
	}
	c.Scope.Net = call.Net{url}
	if _, err := ask(); err == nil || !strings.Contains(err.Error(), "runtime/unavailable") || !strings.Contains(err.Error(), "not in scope") {
		t.Errorf("%v, want out of scope", err)
	}
	c.Scope.Net, status = nil, 302
	if _, err := ask(); err == nil || !strings.Contains(err.Error(), "changes the request method") {
		t.Error(err)
	}
	c.URL = url + "/loop"
	if _, err := ask(); err == nil || !strings.Contains(err.Error(), "more than 5 redirects") {
		t.Error(err)
	}
}

func TestConfig(t *testing.T) {
	for _, test := range []struct {
		config rest.Config
		want   string
	}{
		{rest.Config{}, "URL is not an http or https URL"},
		{rest.Config{URL: "ftp://example.com"}, "URL is not"},
		{rest.Config{URL: "https://u:s3cret@%zz"}, "URL is not"},
		{rest.Config{URL: "http://127.0.0.1:1/x", Scope: call.Scope{Net: call.Net{}}}, "the server http://127.0.0.1:1 is not in scope: the list is empty"},
		{rest.Config{URL: "http://127.0.0.1:1/x", Scope: call.Scope{Net: call.Net{"https://127.0.0.1:1"}}}, "not in scope"},
		{rest.Config{URL: "http://127.0.0.1:1/x", Header: map[string]rest.Value{"A b": {Text: "x"}}}, `header "A b"`},
		{rest.Config{URL: "http://127.0.0.1:1/x", Header: map[string]rest.Value{"A": {Text: "x", Env: "y"}}}, `header "A"`},
		{rest.Config{URL: "http://127.0.0.1:1/x", Header: map[string]rest.Value{"A": {Text: "x\ny"}}}, `not one line`},
		{rest.Config{URL: "http://user:s3cret@127.0.0.1:1/x?key=s3cret"}, "the server 127.0.0.1:1 does not answer: "},
	} {
		_, err := rest.New(call.Metadata{}, test.config).Invoke(t.Context(), &call.Request{})
		if err == nil || !strings.HasPrefix(err.Error(), "runtime/unavailable: ") || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%+v: %v, want %s", test.config, err, test.want)
		}
	}
}
