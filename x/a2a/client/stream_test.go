package client_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/x/a2a/client"
)

// streaming is an agent whose streams have one event: the chunk of an artifact, or else the task. Once the task has stopped, they
// stay open.
func streaming(t *testing.T, state *atomic.Value, chunk string) (url string, canceled *atomic.Int32) {
	t.Helper()
	canceled = new(atomic.Int32)
	s := httptest.NewUnstartedServer(nil)
	url = "http://" + s.Listener.Addr().String()
	s.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			fmt.Fprintf(w, `{"name":"w","description":"","version":"1","capabilities":{"streaming":true},"defaultInputModes":[],"defaultOutputModes":[],"skills":[],"supportedInterfaces":[{"url":"%s/a2a","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`, url)
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ Message struct{ TaskID string } }
		}
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
			t.Error(err)
		}
		if m.Method == "SendMessage" && m.Params.Message.TaskID != "" {
			state.Store("COMPLETED")
		}
		task := fmt.Sprintf(`{"id":"t","contextId":"c","status":{"state":"TASK_STATE_%s","message":{"messageId":"q","role":"ROLE_AGENT","parts":[{"text":"Which one?"}]}},"artifacts":[{"artifactId":"a","parts":[{"text":"sunny"}]}]}`, state.Load())
		switch m.Method {
		case "SubscribeToTask":
			w.Header().Set("Content-Type", "text/event-stream")
			event := `{"task":` + task + `}`
			if chunk != "" {
				event = fmt.Sprintf(`{"artifactUpdate":{"taskId":"t","contextId":"c","append":true,"artifact":{"artifactId":"a","parts":[{"text":%q}]}}}`, chunk)
			}
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", m.ID, event)
			if w.(http.Flusher).Flush(); state.Load() != "WORKING" {
				<-r.Context().Done()
			}
		case "SendMessage":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"task":%s}}`, m.ID, task)
		case "CancelTask":
			canceled.Add(1)
			fallthrough
		case "GetTask":
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, task)
		default:
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, m.ID)
		}
	})
	s.Start()
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return url, canceled
}

// An agent that stops before anybody listens says so with the task alone. Its stream stays open.
func TestStoppedBeforeStream(t *testing.T) {
	for state, want := range map[string]string{
		"INPUT_REQUIRED": `the agent asks "Which one?", which nobody answers`,
		"AUTH_REQUIRED":  "the agent requires a login by the user: Which one?",
		"FAILED":         "the task of the agent is failed: Which one?",
	} {
		t.Run(state, func(t *testing.T) {
			now := new(atomic.Value)
			now.Store("WORKING")
			url, _ := streaming(t, now, "")
			time.AfterFunc(50*time.Millisecond, func() { now.Store(state) }) // the reply to the message says that it works
			agent := client.New(call.Metadata{ID: "agent"}, client.Config{URL: url, Poll: 10 * time.Millisecond})
			started := time.Now()
			_, err := agent.Invoke(t.Context(), input("Bern"))
			if err == nil || !strings.Contains(err.Error(), want) || time.Since(started) > 20*time.Second {
				t.Errorf("after %s: %v, want %s", time.Since(started), err, want)
			}
		})
	}
}

// What an agent says in many streams is bounded like what it says in one.
func TestEndlessStreams(t *testing.T) {
	now := new(atomic.Value)
	now.Store("WORKING")
	url, canceled := streaming(t, now, strings.Repeat("x", 600<<10))
	agent := client.New(call.Metadata{ID: "agent"}, client.Config{URL: url, Poll: time.Millisecond, MaxBody: 1 << 20})
	_, err := agent.Invoke(t.Context(), input("Bern"))
	if err == nil || !strings.Contains(err.Error(), "the agent's answer has more than 1048576 bytes") || canceled.Load() == 0 {
		t.Errorf("%v, canceled %d times", err, canceled.Load())
	}
}
