package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone/llm"
)

// front is a door to a server that a test can change.
type front struct{ behind atomic.Value } // an http.HandlerFunc

func (f *front) set(h http.HandlerFunc) { f.behind.Store(h) }

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.behind.Load().(http.HandlerFunc)(w, r)
}

// TestSessionForgotten restarts an HTTP server between calls, so that it does not
// know the session any more. Servers say that in several ways.
func TestSessionForgotten(t *testing.T) {
	for _, tt := range []struct {
		name string
		says http.HandlerFunc
	}{
		{"404", http.NotFound},
		{"404 with an error of the protocol", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}`)
		}},
		{"400 with an error of the protocol", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			noLeak(t)
			door := &front{}
			door.set(handler(t, nil).ServeHTTP)
			_, cfg := serve(t, door)
			s := connect(t, cfg)
			echo := toolOf(t, s, "echo")
			old := s.current.client.ID()
			if old == "" {
				t.Fatal("there is no session to forget")
			}
			fresh := handler(t, nil)
			door.set(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Mcp-Session-Id") == old {
					tt.says(w, r)
					return
				}
				fresh.ServeHTTP(w, r)
			})
			if res, err := echo.Run(t.Context(), []byte(`{"text":"again"}`)); err != nil || res.Text != "again" {
				t.Errorf("got %q, %v", res.Text, err)
			}
			if s.current.client.ID() == old {
				t.Error("the session is the old one")
			}
		})
	}
}

// isCall reports whether a request is the call of a tool.
func isCall(r *http.Request) bool {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return bytes.Contains(body, []byte(`"method":"tools/call"`))
}

// TestHTTPFailures answers one call with a failure and looks at what is made of it.
func TestHTTPFailures(t *testing.T) {
	hangUp := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	for _, tt := range []struct {
		name, tool string
		answer     http.HandlerFunc
		want       string // in the error, empty if the call is repeated
		uncertain  bool
	}{
		{"hangs up", "fail", hangUp, `went away during the call`, true},
		{"hangs up while reading", "echo", hangUp, ``, false},
		{"stream without answer", "fail", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, ": hello\n\n")
		}, `terminated without response`, true},
		{"gateway timeout", "fail", status(http.StatusGatewayTimeout), `Gateway Timeout`, true},
		{"unauthorized", "fail", status(http.StatusUnauthorized), `the call was not done, since the server "peer" did not take it: calling "tools/call": sending "tools/call": Unauthorized`, false},
		{"too many", "fail", status(http.StatusTooManyRequests), `Too Many Requests`, false},
		{"no JSON", "fail", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `<html>`)
		}, `failed to decode response`, true},
		{"too long", "fail", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"%s"}]}}`, strings.Repeat("x", maxFrame))
		}, `request body too large`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			noLeak(t)
			door, peer := &front{}, handler(t, nil)
			door.set(peer.ServeHTTP)
			_, cfg := serve(t, door)
			cfg.Harmless = []string{"echo"}
			s := connect(t, cfg)
			doomed := toolOf(t, s, tt.tool)
			var once atomic.Bool
			door.set(func(w http.ResponseWriter, r *http.Request) {
				if isCall(r) && !once.Swap(true) {
					tt.answer(w, r)
					return
				}
				peer.ServeHTTP(w, r)
			})
			res, err := doomed.Run(t.Context(), []byte(`{"text":"x"}`))
			if tt.want == "" {
				if err != nil || res.Text != "x" {
					t.Errorf("got %q, %v", res.Text, err)
				}
			} else if err == nil || !strings.Contains(err.Error(), tt.want) || errors.Is(err, ErrUncertain) != tt.uncertain {
				t.Errorf("got %v, uncertain %v", err, errors.Is(err, ErrUncertain))
			}
			if !once.Load() {
				t.Error("the call was not seen")
			}
			want(t, s, "echo", "after", "after")
		})
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// TestUnreachable has the server gone for a while: calls are tried again, and then
// told to the model as not done.
func TestUnreachable(t *testing.T) {
	noLeak(t)
	srv, cfg := serve(t, handler(t, nil))
	s := connect(t, cfg)
	echo := toolOf(t, s, "echo")
	srv.Close()
	before, err := time.Now(), ErrUncertain
	for range 4 {
		if !errors.Is(err, ErrUncertain) { // a connection that was kept may break under a call
			break
		}
		before = time.Now()
		_, err = echo.Run(t.Context(), []byte(`{"text":"x"}`))
	}
	if start, ok := errors.AsType[*StartError](err); !ok || errors.Is(err, ErrUncertain) || !strings.Contains(start.Error(), "connection refused") {
		t.Errorf("got %v", err)
	}
	if took := time.Since(before); took < 600*time.Millisecond || took > 10*time.Second {
		t.Errorf("gave up after %v: want at least 100, 200 and 400 ms between starts", took)
	}
	// A caller that does not want to wait does not have to.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := echo.Run(ctx, []byte(`{"text":"x"}`)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// TestHeaders checks that headers go to the host of the URL and nowhere else.
func TestHeaders(t *testing.T) {
	noLeak(t)
	peer := handler(t, nil)
	check := func(want string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if got := r.Header.Get("X-Key"); got != want {
				t.Errorf("%s %s came with %q, want %q", r.Method, r.URL, got, want)
			}
			peer.ServeHTTP(w, r)
		}
	}
	elsewhere := httptest.NewServer(check(""))
	defer elsewhere.Close()
	door := &front{}
	door.set(check("hunter22"))
	_, cfg := serve(t, door)
	cfg.Header = map[string]llm.Secret{"X-Key": "hunter22"}
	s := connect(t, cfg)
	want(t, s, "echo", "here", "here")
	echo := toolOf(t, s, "echo")
	door.set(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, elsewhere.URL+"/mcp", http.StatusTemporaryRedirect)
	})
	echo.Run(t.Context(), nil) // whatever comes of it
}

// TestSecrets prints everything that holds secrets.
func TestSecrets(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"no access for %s at %s"}}`, r.Header.Get("Authorization"), r.URL)
	}))
	defer srv.Close()
	cfg := Config{
		URL:    llm.Secret(strings.Replace(srv.URL, "http://", "http://user:pass-word@", 1) + "/path-key?key=query+key"),
		Header: map[string]llm.Secret{"Authorization": "Bearer header-key"},
	}
	_, err := Connect(t.Context(), cfg)
	if err == nil || !strings.Contains(err.Error(), "no access for [redacted]") {
		t.Fatalf("got %v", err)
	}
	s := newServer(cfg)
	defer s.Close()
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).Info("all", "cfg", cfg, "server", s, "err", err)
	start, _ := errors.AsType[*StartError](err)
	for _, text := range []string{
		log.String(), printed(cfg), fmt.Sprintf("%v %+v %#v", s, s, s),
		fmt.Sprintf("%v %+v %#v", err, err, err), fmt.Sprintf("%v %+v %#v", *start, *start, *start), fmt.Sprintf("%+v %#v", start.Err, start.Err),
	} {
		for _, secret := range []string{"pass-word", "path-key", "query+key", "query key", "header-key"} {
			if strings.Contains(text, secret) || strings.Contains(text, fmt.Sprintf("%x", secret)) {
				t.Errorf("%q is in %s", secret, text)
			}
		}
	}
}

// printed is a value with every verb, also those that go vet warns of.
func printed(v any) (all string) {
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%d", "%x"} {
		all += fmt.Sprintf(verb, v)
	}
	return all
}
