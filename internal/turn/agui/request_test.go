package agui

import "testing"

// Whatever a client sends, it is read or refused: what is read asks for something.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"threadId":"c","runId":"1","messages":[{"id":"1","role":"user","content":[{"type":"image","source":{"type":"data","value":"AA==","mimeType":"image/png"}}]}]}`))
	f.Add([]byte(`{"threadId":"c","runId":"1","messages":[],"resume":[{"interruptId":"r~a#1","status":"resolved","payload":{"approved":true}}]}`))
	f.Add([]byte(`{"runId":"1","messages":[null]}`))
	f.Add([]byte(`{"threadId":"c","runId":"2","messages":[{"id":"t","role":"tool","toolCallId":"r~a/tool-1-1","content":"x"}],"tools":[{"name":"paint","parameters":{"type":"object"}}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		req, err := Read(body)
		if err == nil && len(req.Answers)+len(req.Results) == 0 && len(req.Content) == 0 {
			t.Errorf("%s asks for nothing", body)
		}
	})
}
