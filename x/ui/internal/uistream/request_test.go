package uistream

import "testing"

// TestParts ignores parts of a user's message that are of the page alone.
func TestParts(t *testing.T) {
	for part, ok := range map[string]bool{`{"type":"data-cursor","data":{"line":7}}`: true, `{"type":"source-url","url":"https://example.com"}`: true, `{"type":"data-answer","data":{}}`: false, `{"type":"hologram"}`: false} {
		req, err := Read([]byte(`{"id":"c","messages":[{"id":"1","role":"user","parts":[{"type":"text","text":"x"},` + part + `]}]}`))
		if (err == nil) != ok || ok && len(req.Content) != 1 {
			t.Errorf("%s: %v, %v", part, req.Content, err)
		}
	}
}

// A client may send its last message alone, and tools as a list or by their names.
func TestShapes(t *testing.T) {
	const message, tool = `{"id":"m","role":"user","parts":[{"type":"text","text":"x"}]}`, `"description":"Paints.","parameters":{"type":"object"}}`
	for _, body := range []string{
		`{"id":"c","messages":[` + message + `],"tools":[{"name":"paint",` + tool + `]}`,
		`{"id":"c","message":` + message + `,"tools":{"paint":{` + tool + `}}`,
	} {
		req, err := Read([]byte(body))
		if err != nil || req.Message != "m" || req.Text() != "x" || len(req.Tools) != 1 || req.Tools[0].Name != "paint" || string(req.Tools[0].Schema) != `{"type":"object"}` {
			t.Errorf("%s: %+v, %v", body, req, err)
		}
	}
	if req, err := Read([]byte(`{"id":"c","messages":[],"message":` + message + `,"tools":null}`)); err != nil || req.Message != "m" || req.Tools != nil {
		t.Errorf("%+v, %v", req, err)
	}
}

// Whatever a client sends, it is read or refused: what is read asks for something.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"id":"c","messages":[{"id":"1","role":"user","parts":[{"type":"text","text":"x"},{"type":"file","url":"data:image/png;base64,AA=="}]}]}`))
	f.Add([]byte(`{"id":"c","messages":[{"id":"r","role":"assistant","parts":[{"type":"tool-x","toolCallId":"r~a/tool-1-1","approval":{"id":"r~a#1","approved":false}}]}]}`))
	f.Add([]byte(`{"messages":[{"parts":[null]}]}`))
	f.Add([]byte(`{"id":"c","messages":[{"id":"r","role":"assistant","parts":[{"type":"tool-x","toolCallId":"r~a/tool-1-1","state":"output-available","output":{"a":1}}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		req, err := Read(body)
		if err == nil && len(req.Answers)+len(req.Results) == 0 && len(req.Content) == 0 {
			t.Errorf("%s asks for nothing", body)
		}
	})
}
