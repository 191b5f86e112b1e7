// Package fakeserver starts HTTP servers that imitate those of providers, for tests. For the
// answers of whole protocols see package llm/script, whose Model is an http.Handler.
package fakeserver

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// Serve starts a server until the end of the test and returns its URL. It passes the body of each
// request to answer; the request still has it, too, so that a script can take over.
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

// Stream answers with events.
func Stream(w http.ResponseWriter, events string) {
	w.Header().Set("Content-Type", "text/event-stream")
	io.WriteString(w, events)
}
