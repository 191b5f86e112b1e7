package hostile

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/rest"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/x/mcp"
)

// A server redirects its clients to another one, which must get no request: it may be
// on the loopback interface, or the metadata service of a cloud.
func TestRedirects(t *testing.T) {
	var heard atomic.Bool
	inside := newServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "4711") || strings.Contains(string(body), "initialize") {
			heard.Store(true)
		}
		io.WriteString(w, `{"a":1}`)
	}))
	outside := newServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, inside.URL, http.StatusTemporaryRedirect)
	}))
	req := &call.Request{Intent: "a/b", Input: call.JSON(`{"secret":"4711"}`)}
	ways := map[string]func() error{
		"http": func() error {
			_, err := rest.New(call.Metadata{}, rest.Config{URL: outside.URL}).Invoke(t.Context(), req)
			return err
		},
		"http with a scope": func() error {
			_, err := rest.New(call.Metadata{}, rest.Config{URL: outside.URL, Scope: call.Scope{Net: call.Net{outside.URL}}}).Invoke(t.Context(), req)
			return err
		},
		"x/mcp": func() error {
			s, err := mcp.Connect(t.Context(), mcp.Config{URL: llm.Secret(outside.URL)})
			if err == nil {
				s.Close()
			}
			return err
		},
		"x/mcp on demand": func() error {
			s := mcp.NewOnDemand(mcp.Config{URL: llm.Secret(outside.URL)}, call.Scope{})
			defer s.Close()
			_, err := s.Capability(call.Metadata{}, "t").Invoke(t.Context(), req)
			return err
		},
	}
	for name, ask := range ways {
		heard.Store(false)
		before := inside.requests.Load()
		if err := ask(); err == nil || heard.Load() || inside.requests.Load() != before {
			t.Errorf("%s: the other server heard of it (%v)", name, err)
		}
	}
}

// Within the server that was named, a redirect is followed.
func TestOwnRedirect(t *testing.T) {
	s := newServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/there" {
			http.Redirect(w, r, "/there", http.StatusPermanentRedirect)
			return
		}
		io.WriteString(w, `{"a":1}`)
	}))
	r, err := rest.New(call.Metadata{}, rest.Config{URL: s.URL}).Invoke(t.Context(), &call.Request{Intent: "a/b", Input: call.JSON(`{}`)})
	if err != nil || string(r.Out) != `{"a":1}` {
		t.Error(r, err)
	}
}
