package agui

import (
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/turn"
)

// TestRead reads messages as newer and older clients send them.
func TestRead(t *testing.T) {
	const user = `{"id":"1","role":"user","content":"hi"}`
	for _, c := range []struct{ messages, want string }{ // "" is nothing asked
		{user, "1 hi"},
		{user + `,{"id":"2","role":"activity","activityType":"PLAN","content":{}}`, "1 hi"},
		{user + `,{"id":"2","role":"system","content":"be kind"},{"id":"3","role":"developer","content":"x"}`, "1 hi"},
		{user + `,{"id":"2","role":"assistant","content":"hello"}`, ""},
		{user + `,{"id":"2","role":"assistant","content":"hello"},{"id":"3","role":"system","content":"x"}`, ""},
		{`{"role":"user","content":"hi"}`, "0-"},
		{`{"id":"1","role":"user","content":[{"type":"binary","mimeType":"image/png","data":"iVBORw0KGgo="}]}`, "1 [image/png, 8 bytes]"},
		{`{"id":"1","role":"user","content":[{"type":"binary","mimeType":"image/png","url":"data:image/png;base64,iVBORw0KGgo="}]}`, "1 [image/png, 8 bytes]"},
	} {
		req, err := Read([]byte(`{"threadId":"c","runId":"1","messages":[` + c.messages + `]}`))
		got := req.Message
		for _, p := range req.Content {
			if got += " " + p.Text; p.Media != nil {
				got += "[" + p.Media.String() + "]"
			}
		}
		if c.want == "" && err != turn.ErrNothing || c.want != "" && (err != nil || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%s: got %q, %v, want %q", c.messages, got, err, c.want)
		}
	}
}

// Whatever a client sends, it is read or refused: what is read asks for something.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"threadId":"c","runId":"1","messages":[{"id":"1","role":"user","content":[{"type":"image","source":{"type":"data","value":"AA==","mimeType":"image/png"}}]}]}`))
	f.Add([]byte(`{"threadId":"c","runId":"1","messages":[],"resume":[{"interruptId":"r~a#1","status":"resolved","payload":{"approved":true}}]}`))
	f.Add([]byte(`{"runId":"1","messages":[null]}`))
	f.Add([]byte(`{"threadId":"c","runId":"2","messages":[{"id":"t","role":"tool","toolCallId":"r~a/tool-1-1","content":"x"}],"tools":[{"name":"paint","parameters":{"type":"object"}}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		req, err := Read(body)
		if err == nil && !req.Join && len(req.Answers)+len(req.Results) == 0 && len(req.Content) == 0 {
			t.Errorf("%s asks for nothing", body)
		}
	})
}
