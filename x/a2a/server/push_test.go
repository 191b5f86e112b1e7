package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/stonelayer/stone/journal"
)

// receiver gets notifications.
type receiver struct {
	*httptest.Server
	got    chan string
	status atomic.Int32
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{got: make(chan string, 16)}
	r.status.Store(200)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		w.WriteHeader(int(r.status.Load()))
		var event sdk.StreamResponse
		if err := json.Unmarshal(body, &event); err != nil {
			t.Errorf("%v: %s", err, body)
			return
		}
		r.got <- fmt.Sprintf("%s %s %s %v", shown(event.Event.(*sdk.Task)), req.Header.Get("A2A-Notification-Token"), req.Header.Get("Authorization"), req.Header.Get("Webhook-Signature") != "")
	}))
	t.Cleanup(r.Close)
	return r
}

func TestPush(t *testing.T) {
	h := newHouse(t)
	c := h.client(sdk.TransportProtocolJSONRPC)
	r := newReceiver(t)
	req := message("page", "slate")
	req.Config = &sdk.SendMessageConfig{ReturnImmediately: true, PushConfig: &sdk.PushConfig{ID: "one", URL: r.URL, Token: "t0ken", Auth: &sdk.PushAuthInfo{Scheme: "Bearer", Credentials: "s3cret"}}}
	task := h.send(c, req)
	want(t, <-r.got, "input_required: Publish About slate? t0ken Bearer s3cret false")
	// The receiver is down while the task ends, and the server is another one when it is back.
	r.status.Store(503)
	want(t, shown(h.send(c, answer(task, "yes"))), "completed: yes: About slate")
	<-r.got
	h.stop()
	r.status.Store(200)
	for len(r.got) > 0 {
		<-r.got
	}
	h.start()
	want(t, <-r.got, "completed: yes: About slate t0ken Bearer s3cret false")

	c = h.client(sdk.TransportProtocolHTTPJSON)
	signed := &sdk.PushConfig{TaskID: task.ID, URL: r.URL + "/2", Token: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
	if _, err := c.CreateTaskPushConfig(t.Context(), signed); err != nil {
		t.Fatal(err)
	}
	want(t, <-r.got, "completed: yes: About slate "+signed.Token+"  true") // it was over
	all, err := c.ListTaskPushConfigs(t.Context(), &sdk.ListTaskPushConfigRequest{TaskID: task.ID})
	text, _ := json.Marshal(all)
	if err != nil || len(all) != 2 || strings.Contains(string(text), "s3cret") || strings.Contains(string(text), "t0ken") {
		t.Errorf("%s, %v", text, err)
	}
	runs, err := h.journal.Runs(t.Context(), journal.Query{Limit: 100})
	if err != nil || len(runs) != 1 {
		t.Errorf("%d runs, want that of the task alone: %v", len(runs), err)
	}
	if err := c.DeleteTaskPushConfig(t.Context(), &sdk.DeleteTaskPushConfigRequest{TaskID: task.ID, ID: "one"}); err != nil {
		t.Fatal(err)
	}
	if all, err = c.ListTaskPushConfigs(t.Context(), &sdk.ListTaskPushConfigRequest{TaskID: task.ID}); err != nil || len(all) != 1 {
		t.Errorf("%v, %v", all, err)
	}
}

// Receivers outside the public Internet are refused, unless the operator allows them.
func TestPushPrivate(t *testing.T) {
	h := newHouse(t)
	h.stop()
	h.cfg.Private = false
	h.start()
	c := h.client(sdk.TransportProtocolJSONRPC)
	for _, url := range []string{"http://127.0.0.1:1/x", "ftp://example.com", "https://user:pass@example.com"} {
		req := message("draft", "slate")
		req.Config = &sdk.SendMessageConfig{PushConfig: &sdk.PushConfig{URL: url}}
		if _, err := c.SendMessage(t.Context(), req); err == nil || h.written.Load() != 0 {
			t.Errorf("%s: %v, and the task has started: %v", url, err, h.written.Load() > 0)
		}
	}
}
