//go:build unix

package mcp

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stonelayer/stone/llm"
)

// oldAnswer is the result of a request to a server of before 2026-07-28 with one tool.
func oldAnswer(method string) string {
	switch method {
	case "initialize":
		return `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"w","version":"1"}}`
	case "tools/list":
		return `{"tools":[{"name":"today","inputSchema":{"type":"object"}}]}`
	case "tools/call":
		return `{"content":[{"type":"text","text":"Sun"}]}`
	}
	return ""
}

type oldMessage struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Name string
	}
}

// oldAnswers are the lines that servers over stdio write for a request before initialize. "ID" is
// its id, "EXIT" the end of the server, "SLEEP" half a second.
var oldAnswers = map[string]string{
	"method not found":    `{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"Method not found"}}`,
	"invalid params":      `{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"Invalid request parameters","data":""}}`,
	"invalid request":     `{"jsonrpc":"2.0","id":ID,"error":{"code":-32600,"message":"not initialized"}}`,
	"internal error":      `{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"KeyError: 'server/discover'"}}`,
	"a code of its own":   `{"jsonrpc":"2.0","id":ID,"error":{"code":-32002,"message":"Server not initialized"}}`,
	"code 0":              `{"jsonrpc":"2.0","id":ID,"error":{"code":0,"message":""}}`,
	"error with id null":  `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}`,
	"error without id":    `{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"}}`,
	"error with id text":  `{"jsonrpc":"2.0","id":"ID","error":{"code":-32601,"message":"Method not found"}}`,
	"result null":         `{"jsonrpc":"2.0","id":ID,"result":null}`,
	"result empty":        `{"jsonrpc":"2.0","id":ID,"result":{}}`,
	"no version":          `{"id":ID,"error":{"code":-32601,"message":"Method not found"}}`,
	"silent":              ``,
	"exit":                "EXIT",
	"answer, then exit":   `{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"Method not found"}}` + "\nEXIT",
	"a line of a log":     "WARN unknown method server/discover",
	"a line in brackets":  "[warn] unknown method server/discover",
	"a log in JSON":       `{"level":"warn","msg":"unknown method"}`,
	"a line, then answer": "unknown method\n" + `{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"Method not found"}}`,
	"a line, then exit":   "unknown method\nEXIT",
	"slow":                "SLEEP\n" + `{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"Method not found"}}`,
}

// oldServer serves over stdio.
func oldServer(how string) {
	greeted, noise := false, os.Getenv("NOISE")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		var m oldMessage
		json.Unmarshal(in.Bytes(), &m)
		greeted = greeted || m.Method == "initialize"
		switch result := oldAnswer(m.Method); {
		case greeted && result != "":
			if noise != "" {
				fmt.Println(noise)
			}
			fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n", m.ID, result)
		case !greeted && m.ID != nil:
			for line := range strings.Lines(oldAnswers[how]) {
				switch line = strings.TrimSpace(line); line {
				case "EXIT":
					os.Exit(1)
				case "SLEEP":
					time.Sleep(500 * time.Millisecond)
				default:
					fmt.Println(strings.Replace(line, "ID", string(m.ID), 1))
				}
			}
		}
	}
}

// oldReplies are what servers over HTTP reply to a request before initialize: status, type and
// body. Status 0 hangs, 1 hangs up, 2 hangs after the head.
var oldReplies = map[string]struct {
	status    int
	typ, body string
}{
	"400 text":              {400, "text/plain", "no session"},
	"400 empty":             {400, "", ""},
	"400 error":             {400, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Server not initialized"}}`},
	"400 error with id":     {400, "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32600,"message":"Missing session ID"}}`},
	"404 text":              {404, "text/plain", "404 page not found"},
	"404 HTML":              {404, "text/html", "<html>"},
	"405":                   {405, "", ""},
	"406":                   {406, "application/json", `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Not Acceptable"}}`},
	"415":                   {415, "", ""},
	"422 JSON":              {422, "application/json", `{"detail":[{"loc":["body"],"msg":"field required"}]}`},
	"500 text":              {500, "text/plain", "Internal Server Error"},
	"500 error":             {500, "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"boom"}}`},
	"501":                   {501, "", ""},
	"502 HTML":              {502, "text/html", "<html>"},
	"503":                   {503, "", ""},
	"200 error":             {200, "application/json", `{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"Method not found"}}`},
	"200 error, id null":    {200, "application/json", `{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}`},
	"200 text":              {200, "text/plain", "unknown method"},
	"200 HTML":              {200, "text/html", "<html>"},
	"200 empty":             {200, "", ""},
	"200 empty JSON":        {200, "application/json", ""},
	"200 object":            {200, "application/json", `{"error":"unknown method"}`},
	"200 no member":         {200, "application/json", `{}`},
	"200 null":              {200, "application/json", `null`},
	"200 list":              {200, "application/json", `[]`},
	"200 cut":               {200, "application/json", `{"jsonrpc":"2.0","id":`},
	"202":                   {202, "", ""},
	"204":                   {204, "", ""},
	"stream, empty":         {200, "text/event-stream", ""},
	"stream, ping":          {200, "text/event-stream", ": ping\n\n"},
	"stream, error id null": {200, "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,\"message\":\"x\"}}\n\n"},
	"stream, text":          {200, "text/event-stream", "data: unknown method\n\n"},
	"hangs":                 {0, "", ""},
	"hangs up":              {1, "", ""},
	"hangs after its head":  {2, "text/event-stream", ""},
}

// oldHandler serves over streamable HTTP, and counts requests before initialize.
func oldHandler(how string, early *atomic.Int32) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var m oldMessage
		json.NewDecoder(r.Body).Decode(&m)
		a, result := oldReplies[how], oldAnswer(m.Method)
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case m.ID == nil:
			w.WriteHeader(http.StatusBadRequest) // of notifications, which some servers refuse
		case result != "":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
		case a.status < 3:
			early.Add(1)
			if a.status == 1 {
				panic(http.ErrAbortHandler)
			}
			if a.status == 2 {
				w.Header().Set("Content-Type", a.typ)
				w.(http.Flusher).Flush()
			}
			<-r.Context().Done()
		default:
			early.Add(1)
			w.Header().Set("Content-Type", a.typ)
			w.WriteHeader(a.status)
			io.WriteString(w, strings.Replace(a.body, "ID", string(m.ID), 1))
		}
	}
}

// TestOldServers starts servers of before server/discover, whatever they make of it, and starts
// them again without it.
func TestOldServers(t *testing.T) {
	check := func(t *testing.T, cfg Config) {
		t.Helper()
		s := connect(t, cfg)
		want(t, s, "today", "", "Sun")
		s.fail(s.current)
		want(t, s, "today", "", "Sun")
		s.Close()
	}
	for how := range oldAnswers {
		t.Run("stdio/"+how, func(t *testing.T) {
			t.Parallel()
			cfg := overStdio(t, "old")
			cfg.Env["HOW"] = llm.Secret(how)
			if cfg.StartTimeout = 5 * time.Second; how == "silent" {
				cfg.Protocol = "2025-06-18"
				check(t, cfg)
				cfg.Protocol = ""
			}
			check(t, cfg)
		})
	}
	for how := range oldReplies {
		t.Run("http/"+how, func(t *testing.T) {
			t.Parallel()
			var early atomic.Int32
			srv, cfg := serve(t, oldHandler(how, &early))
			t.Cleanup(srv.CloseClientConnections)
			cfg.StartTimeout = 5 * time.Second
			check(t, cfg)
			if n := early.Load(); n != 1 {
				t.Errorf("the second start sent %d requests before initialize", n-1)
			}
		})
	}
}

// TestSlowServer has a server of the newest protocol start slower than the first attempt waits.
func TestSlowServer(t *testing.T) {
	ready := time.Now().Add(1500 * time.Millisecond)
	peer := handler(t, &sdk.StreamableHTTPOptions{Stateless: true})
	_, cfg := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(time.Until(ready)):
			if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), `"initialize"`) {
				w.Header().Set("Content-Type", "application/json")
				io.WriteString(w, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}`)
				return
			} else {
				r.Body = io.NopCloser(strings.NewReader(string(body)))
			}
			peer.ServeHTTP(w, r)
		}
	}))
	cfg.StartTimeout = 2 * time.Second
	want(t, connect(t, cfg), "echo", "a", "a")
}

// TestOldestTransport reaches a server of 2024, which has one address for a stream of answers and
// another for messages. It finds out, or is told.
func TestOldestTransport(t *testing.T) {
	for _, protocol := range []string{"", "2024-11-05"} {
		noLeak(t)
		server := newPeer(t.TempDir())
		var posts atomic.Int32
		inner := sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return server }, nil)
		srv, cfg := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("X-Key") != "hunter22" {
				t.Error("a request without the configured header")
			}
			if r.Method == http.MethodPost && r.URL.RawQuery == "" {
				posts.Add(1)
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			inner.ServeHTTP(w, r)
		}))
		t.Cleanup(srv.CloseClientConnections)
		cfg.Header, cfg.Protocol = map[string]llm.Secret{"X-Key": "hunter22"}, protocol
		s := connect(t, cfg)
		want(t, s, "echo", "a", "a")
		first := posts.Load()
		if (first == 0) != (protocol != "") {
			t.Errorf("protocol %q: %d messages to the stream's address", protocol, first)
		}
		s.fail(s.current)
		want(t, s, "echo", "b", "b")
		if posts.Load() != first {
			t.Error("the second start does not know the server")
		}
		s.Close()
	}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another server got a message") }))
	defer elsewhere.Close()
	_, cfg := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, "event: endpoint\ndata: %s/messages\n\n", elsewhere.URL)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	cfg.Protocol = "2024-11-05"
	if _, err := Connect(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "the server names another server for messages") {
		t.Errorf("got %v", err)
	}
}

// TestListen has trouble with the stream of notifications, which the tools do without.
func TestListen(t *testing.T) {
	for name, listen := range map[string]http.HandlerFunc{
		"no head": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"text":    func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") },
		"no message": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, "{}")
		},
		"accepted":    status(http.StatusAccepted),
		"not found":   http.NotFound,
		"bad gateway": status(http.StatusBadGateway),
		"only its head": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		},
		"at once over": func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", "text/event-stream") },
	} {
		t.Run(name, func(t *testing.T) {
			noLeak(t)
			peer, asked := handler(t, &sdk.StreamableHTTPOptions{Stateless: true}), make(chan bool, 10)
			srv, cfg := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("Mcp-Method") == methodListen {
					asked <- true
					io.Copy(io.Discard, r.Body) // else the end of the request is not noticed
					listen(w, r)
					return
				}
				peer.ServeHTTP(w, r)
			}))
			t.Cleanup(srv.CloseClientConnections)
			s := connect(t, cfg)
			<-asked
			for range 3 {
				want(t, s, "echo", "a", "a")
			}
			s.Close()
		})
	}
}
