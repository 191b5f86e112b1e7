package serve_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stonelayer/stone/llm"
)

// writer is a model that writes an answer word by word, each when it is allowed to.
type writer struct {
	words []string
	next  chan struct{} // nil does not wait
	reply llm.Reply     // its text is that of the words
	asked atomic.Int32
	cut   atomic.Int32 // answers that the server did not want to the end
}

func (w *writer) Stream(ctx context.Context, _ *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		w.asked.Add(1)
		reply := w.reply
		for _, word := range w.words {
			if w.next != nil {
				select {
				case <-w.next:
				case <-ctx.Done():
					w.cut.Add(1)
					yield(llm.Delta{Reply: &reply}, context.Cause(ctx))
					return
				}
			}
			reply.Text += word
			if !yield(llm.Delta{Kind: llm.Text, Text: word}, nil) {
				w.cut.Add(1)
				return
			}
		}
		yield(llm.Delta{Kind: llm.Done, Reply: &reply}, nil)
	}
}

// A responseEvent is an event of a response.
type responseEvent struct {
	Type     string `json:"type"`
	Number   int    `json:"sequence_number"`
	Delta    string `json:"delta"`
	Response struct {
		ID     string `json:"id"`
		Status string `json:"status"`
		Error  struct{ Code, Message string }
	} `json:"response"`
}

// listen sends a request and calls each for every event, until it returns false.
func (h *house) listen(method, path, body string, each func(responseEvent) bool) {
	h.Helper()
	ctx, cancel := context.WithCancel(h.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, h.URL+path, strings.NewReader(body))
	if err != nil {
		h.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		h.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		var e responseEvent
		if !ok || string(data) == "[DONE]" {
			continue
		}
		if err := json.Unmarshal(data, &e); err != nil {
			h.Fatalf("%v: %s", err, data)
		}
		if !each(e) {
			return
		}
	}
}

// A live model's text is streamed as it is written; another model's text when the checks have accepted it.
func TestLive(t *testing.T) {
	weak := &writer{words: []string{"polite", ", ", "and ", "slow"}, next: make(chan struct{})}
	h := gatewayServer(t, gated(weak, weak), nil, "chat/answer")
	var got []string
	h.listen("POST", "/v1/responses", `{"model":"stone/chat/answer","input":"x","stream":true}`, func(e responseEvent) bool {
		switch e.Type {
		case "response.in_progress", "response.output_text.delta": // the next word is written when the last one is here
			got = append(got, e.Delta)
			if len(got) <= len(weak.words) {
				weak.next <- struct{}{}
			}
		case "response.completed":
			got = append(got, "completed")
		}
		return true
	})
	if text := fmt.Sprintf("%q", got); text != `["" "polite" ", " "and " "slow" "completed"]` {
		t.Errorf("got %s", text)
	}
	// What does not stream is answered as ever.
	close(weak.next)
	if text := outputText(t, h.want("POST", "/v1/responses", `{"model":"stone/chat/answer","input":"x"}`, 200, "")); text != "polite, and slow" {
		t.Errorf("got %q", text)
	}
}

// A chat of a live model is streamed as it is written, too.
func TestLiveChat(t *testing.T) {
	weak := &writer{words: []string{"polite", ", ", "and slow"}}
	h := gatewayServer(t, gated(weak, weak), nil, "chat/answer")
	body := `{"model":"stone/chat/answer","stream":true,"messages":[{"role":"user","content":"x"}]}`
	all := fmt.Sprintf("%s", h.streamed("POST", "/v1/chat/completions", body))
	text := ""
	for part := range strings.SplitSeq(all, `"content":"`) {
		piece, _, _ := strings.Cut(part, `"`)
		if !strings.HasPrefix(piece, "[") {
			text += piece
		}
	}
	if text != "polite, and slow" || !strings.Contains(all, `"finish_reason":"stop"`) {
		t.Errorf("%q of %s", text, all)
	}
	weak.words = []string{"what", "ever"}
	all = fmt.Sprintf("%s", h.streamed("POST", "/v1/chat/completions", body))
	if strings.Contains(all, "finish_reason\":\"stop") || strings.Contains(all, "[DONE]") || !strings.Contains(all, `{"error":{"message":`) {
		t.Errorf("the end of a rejected answer is %s", all)
	}
}

// An answer that is rejected after it was streamed cannot be taken back. The response fails,
// in the stream and when it is asked for, and nothing more is paid.
func TestLiveRejected(t *testing.T) {
	weak := &writer{words: []string{"what", "ever"}, next: make(chan struct{})}
	strong := &writer{words: []string{"polite"}}
	h := gatewayServer(t, gated(weak, strong), nil, "chat/answer")
	var text string
	var last responseEvent
	h.listen("POST", "/v1/responses", `{"model":"stone/chat/answer","input":"x","stream":true}`, func(e responseEvent) bool {
		if e.Type == "response.in_progress" || e.Type == "response.output_text.delta" && text == "" {
			weak.next <- struct{}{}
		}
		text, last = text+e.Delta, e
		return true
	})
	if text != "whatever" || last.Type != "response.failed" || last.Response.Error.Code != "invalid_prompt" || !strings.Contains(last.Response.Error.Message, "retracted: the answer was rejected after it was streamed") {
		t.Errorf("%q, then %+v", text, last)
	}
	if n := strong.asked.Load(); n != 0 {
		t.Errorf("the strong model was asked %d times for an answer that nobody is shown", n)
	}
	h.want("GET", "/v1/responses/"+last.Response.ID, "", 200, `"status":"failed","error":{"code":"invalid_prompt","message":"retracted: `)
	h.want("GET", "/v1/runs/"+last.Response.ID, "", 200, `"state":"canceled"`)

	// The last model is rejected by the checks, as when nothing is streamed.
	weak.next = nil
	only := gatewayServer(t, gated(weak, weak), nil, "chat/answer")
	all := only.streamed("POST", "/v1/responses", `{"model":"stone/chat/answer","input":"x","stream":true}`)
	if end := string(all[len(all)-1]); !strings.Contains(end, `"type":"response.failed"`) {
		t.Errorf("the last event is %s", end)
	}
}

// A client that was cut continues a live stream after any of its events, while the run continues
// and when it is done. It never gets the rest of another text.
func TestLiveAgain(t *testing.T) {
	weak := &writer{words: []string{"polite", " ", "wörds", " only"}, next: make(chan struct{}, 8)}
	h := gatewayServer(t, gated(weak, weak), nil, "chat/answer")
	var events []responseEvent
	var id string
	h.listen("POST", "/v1/responses", `{"model":"stone/chat/answer","input":"x","stream":true,"background":true}`, func(e responseEvent) bool {
		if id == "" {
			id = e.Response.ID
		}
		if len(events) < 3 {
			weak.next <- struct{}{}
		}
		events = append(events, e)
		return !strings.HasSuffix(e.Delta, "wörds")
	})
	again := func(after int) (text string, last responseEvent) {
		h.listen("GET", fmt.Sprintf("/v1/responses/%s?stream=true&starting_after=%d", id, after), "", func(e responseEvent) bool {
			text, last = text+e.Delta, e
			return true
		})
		return text, last
	}
	weak.next <- struct{}{}
	for _, state := range []string{"running", "done"} {
		said := ""
		for _, e := range events {
			said += e.Delta
			if text, last := again(e.Number); said+text != "polite wörds only" || last.Type != "response.completed" {
				t.Errorf("%s: after %d: %q and %q, and %+v", state, e.Number, said, text, last)
			}
		}
	}
	for _, after := range []int{events[len(events)-1].Number - 1, events[len(events)-1].Number + 1} {
		if text, last := again(after); text != "" || last.Type != "response.failed" || !strings.HasPrefix(last.Response.Error.Message, "retracted: ") {
			t.Errorf("after the end of another text: %q, %+v", text, last)
		}
	}
	if n := weak.asked.Load(); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
}

// A client that goes in the middle of an answer stops it: the model writes no further and no
// other one is asked, whether the text is streamed live or not.
func TestGoneStopsPaying(t *testing.T) {
	for _, live := range []string{"chat/answer", "none"} {
		for _, path := range []string{"/v1/responses", "/v1/chat/completions"} {
			t.Run(live+path, func(t *testing.T) {
				weak, strong := &writer{words: []string{"what", "ever"}, next: make(chan struct{})}, &writer{words: []string{"polite"}}
				h := gatewayServer(t, gated(weak, strong), nil, live)
				body := `{"model":"stone/chat/answer","stream":true,"input":"x"}`
				if path != "/v1/responses" {
					body = `{"model":"stone/chat/answer","stream":true,"messages":[{"role":"user","content":"x"}]}`
				}
				h.listen("POST", path, body, func(responseEvent) bool {
					weak.next <- struct{}{}
					return false
				})
				h.until("/v1/runs?pipeline=chat/answer", `"state":"canceled"`)
				if weak.asked.Load() != 1 || weak.cut.Load() != 1 || strong.asked.Load() != 0 {
					t.Errorf("asked %d, cut %d, asked the other one %d", weak.asked.Load(), weak.cut.Load(), strong.asked.Load())
				}
			})
		}
	}
	weak, strong := &writer{words: []string{"what", "ever"}, next: make(chan struct{})}, &writer{words: []string{"polite"}}
	h := gatewayServer(t, gated(weak, strong), nil, "chat/answer")
	var r struct{ ID string }
	if err := json.Unmarshal([]byte(h.want("POST", "/v1/responses", `{"model":"stone/chat/answer","background":true,"input":"x"}`, 200, "")), &r); err != nil {
		t.Fatal(err)
	}
	weak.next <- struct{}{}
	h.want("POST", "/v1/responses/"+r.ID+"/cancel", "", 200, `"status":"cancelled"`)
	if weak.asked.Load() != 1 || weak.cut.Load() != 1 || strong.asked.Load() != 0 {
		t.Errorf("after cancel: asked %d, cut %d, asked the other one %d", weak.asked.Load(), weak.cut.Load(), strong.asked.Load())
	}
}
