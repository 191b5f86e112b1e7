// Package fakeserver starts HTTP servers that imitate model providers in tests. For complete
// protocols use llm/script, whose Model is an http.Handler.
package fakeserver

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Serve starts a server on the loopback interface and returns its URL. The server is closed at the end of the test. Answer is
// called with the body of each request. It can read r.Body again, so it can pass the request on to an http.Handler.
func Serve(t testing.TB, answer func(w http.ResponseWriter, r *http.Request, body []byte)) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		answer(w, r, body)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// Stream writes a response with server-sent events.
func Stream(w http.ResponseWriter, events string) {
	w.Header().Set("Content-Type", "text/event-stream")
	io.WriteString(w, events)
}
