package stonetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
)

// TestModel checks that a model meets the contract of llm.Model, in subtests of t. The function newModel must return a model that
// gives the answers in order. For a model that is called over HTTP, start a server that returns the answers, such as
// script.New(answers...).
func TestModel(t *testing.T, newModel func(t *testing.T, answers ...script.Answer) llm.Model) {
	t.Run("Replies", func(t *testing.T) { modelReplies(t, newModel) })
	t.Run("Conversation", func(t *testing.T) { modelConversation(t, newModel) })
	t.Run("Media", func(t *testing.T) { modelMedia(t, newModel) })
	t.Run("HTTPError", func(t *testing.T) { modelHTTPError(t, newModel) })
	t.Run("ProviderError", func(t *testing.T) { modelProviderError(t, newModel) })
	t.Run("Break", func(t *testing.T) { modelBreak(t, newModel) })
	t.Run("Cancel", func(t *testing.T) { modelCancel(t, newModel) })
	t.Run("Concurrent", func(t *testing.T) { modelConcurrent(t, newModel) })
	t.Run("Check", func(t *testing.T) { modelCheck(t, newModel) })
}

// request returns a request that uses every field of llm.Request.
func request() *llm.Request {
	return &llm.Request{
		System:    "You are a test.",
		MaxTokens: 1000,
		Messages: []llm.Message{
			llm.User("List the files."),
			{Role: llm.RoleAssistant, Content: []llm.Part{{Text: "One moment."}}, ToolCalls: []llm.ToolCall{
				{ID: "a", Name: "list", Input: json.RawMessage(`{"dir":"."}`)},
				{ID: "b", Name: "list", Input: json.RawMessage(`{"dir":"llm"}`)},
			}},
			llm.ToolResult("a", "go.mod"),
			llm.ToolResult("b", "doc.go"),
			{Role: llm.RoleUser, Content: []llm.Part{{Text: "And this:"}, {Value: json.RawMessage(`{"a":[1,2]}`)}}},
		},
		Tools: []llm.Tool{
			{Name: "list", Description: "Lists files.", Schema: json.RawMessage(`{"type":"object","properties":{"dir":{"type":"string"}}}`)},
			{Name: "now"},
		},
	}
}

// stream requests one answer and checks that its deltas agree with each other and with the reply.
func stream(t *testing.T, ctx context.Context, m llm.Model, req *llm.Request) (*llm.Reply, error) {
	t.Helper()
	var f fold
	var reply *llm.Reply
	var failure error
	over := false
	for d, err := range m.Stream(ctx, req) {
		if over {
			t.Errorf("a delta of kind %d after the end", d.Kind)
		}
		f.add(t, d)
		failure = err
		if over = err != nil || d.Kind == llm.Done; over {
			reply = d.Reply
		}
	}
	switch {
	case !over:
		t.Fatal("the stream ended with neither Done nor an error")
	case reply == nil:
		t.Fatal("the last delta has no Reply")
	}
	f.check(t, reply)
	return reply, failure
}

// fold is the answer assembled from the deltas.
type fold struct {
	text, reasoning, refusal strings.Builder
	calls                    []llm.ToolCall
	inputs                   []string
}

func (f *fold) add(t *testing.T, d llm.Delta) {
	t.Helper()
	switch d.Kind {
	case llm.Text:
		f.text.WriteString(d.Text)
	case llm.Reasoning:
		f.reasoning.WriteString(d.Text)
	case llm.Refusal:
		f.refusal.WriteString(d.Text)
	case llm.Restart:
		*f = fold{}
	case llm.ToolCallStart:
		if d.Call == nil || d.Index != len(f.calls) {
			t.Fatalf("call number %d begins with %v, after %d others", d.Index, d.Call, len(f.calls))
		}
		f.calls, f.inputs = append(f.calls, *d.Call), append(f.inputs, "")
	case llm.ToolInput:
		if d.Index >= len(f.calls) {
			t.Fatalf("input for call number %d, which has not started", d.Index)
		}
		f.inputs[d.Index] += d.Text
	}
}

func (f *fold) check(t *testing.T, r *llm.Reply) {
	t.Helper()
	same := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: the deltas say %q, the reply %q", what, got, want)
		}
	}
	same("text", f.text.String(), r.Text)
	same("reasoning", f.reasoning.String(), r.Reasoning)
	same("refusal", f.refusal.String(), r.Refusal)
	same("number of calls", fmt.Sprint(len(f.calls)), fmt.Sprint(len(r.ToolCalls)))
	for i := range min(len(f.calls), len(r.ToolCalls)) {
		call := r.ToolCalls[i]
		same("call", f.calls[i].ID+" "+f.calls[i].Name, call.ID+" "+call.Name)
		if call.Input == nil {
			same("input that was cut off", f.inputs[i], call.InputText)
		} else if f.inputs[i] != "" && !sameJSON(f.inputs[i], string(call.Input)) {
			t.Errorf("input: the deltas say %q, the reply %q", f.inputs[i], call.Input)
		}
	}
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

func modelReplies(t *testing.T, newModel func(t *testing.T, answers ...script.Answer) llm.Model) {
	in, out := 12, 34
	for name, want := range map[string]llm.Reply{
		"text":           {Text: "A short answer."},
		"unicode":        {Text: "Größe → 🌟🌟, \"quoted\"\n\tand \\ more \u2028"},
		"long":           {Text: strings.Repeat("All work and no play. ", 5000)},
		"reasoning":      {Text: "So it is.", Reasoning: "Let me think about it."},
		"call":           {ToolCalls: []llm.ToolCall{{ID: "1", Name: "list", Input: json.RawMessage(`{"dir":"a \"b\" ü"}`)}}},
		"parallel calls": {Text: "Both.", ToolCalls: []llm.ToolCall{{ID: "1", Name: "list", Input: json.RawMessage(`{}`)}, {ID: "2", Name: "now", Input: json.RawMessage(`{"z":[1.5,null,true]}`)}}},
		"cut-off call":   {StopReason: "length", ToolCalls: []llm.ToolCall{{ID: "1", Name: "list", InputText: `{"dir": "a`}}},
		"usage":          {Text: "x", Usage: llm.Usage{InputTokens: &in, OutputTokens: &out, CachedInputTokens: 5}},
		"names":          {Text: "x", ID: "id-1", Model: "model-1", RequestID: "req-1", StopReason: "stop_sequence"},
		"refusal":        {Refusal: "I will not."},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, script.Answer{Reply: want})
			got, err := stream(t, t.Context(), m, request())
			if err != nil {
				t.Fatal(err)
			}
			got.Usage.Raw = nil
			if want.ID == "" {
				got.ID, got.Model, got.RequestID, got.StopReason = "", "", "", want.StopReason
			}
			got.Metadata = nil // the metadata is specific to the provider
			a, b := asJSON(t, got), asJSON(t, &want)
			if !sameJSON(a, b) {
				t.Errorf("\n got %s\nwant %s", a, b)
			}
		})
	}
}

// modelConversation continues with a reply's own message, and checks that requests are not
// modified.
func modelConversation(t *testing.T, newModel func(t *testing.T, answers ...script.Answer) llm.Model) {
	m := newModel(t,
		script.Answer{Reply: llm.Reply{Reasoning: "Which?", ToolCalls: []llm.ToolCall{{ID: "c", Name: "now", Input: json.RawMessage(`{}`)}}}},
		script.Text("It is late."))
	req := request()
	before := asJSON(t, req)
	reply, err := stream(t, t.Context(), m, req)
	if err != nil {
		t.Fatal(err)
	}
	if after := asJSON(t, req); after != before {
		t.Errorf("the request was modified:\nbefore %s\nafter  %s", before, after)
	}
	var stored llm.Message
	if err := json.Unmarshal([]byte(asJSON(t, reply.Message())), &stored); err != nil {
		t.Fatal(err)
	}
	req.Messages = append(req.Messages, stored, llm.ToolResult("c", "23:59"))
	reply, err = stream(t, t.Context(), m, req)
	if err != nil || reply.Text != "It is late." {
		t.Errorf("second turn: %q, %v", reply.Text, err)
	}
}

// modelMedia sends media of many types in messages of every role. For each type, the model must either accept it or refuse it
// before sending anything, exactly as llm.CheckMedia reports.
func modelMedia(t *testing.T, newModel func(t *testing.T, answers ...script.Answer) llm.Model) {
	data := []byte("\x89PNG\r\n\x1a\n")
	types := []string{"image/png", "image/tiff", "application/pdf", "text/plain", "application/zip", "audio/wav", "audio/ogg", "video/mp4"}
	for _, role := range []llm.Role{llm.RoleUser, llm.RoleTool, llm.RoleAssistant, llm.RoleSystem} {
		for _, mediaType := range types {
			for _, media := range []*llm.Media{{Type: mediaType, Data: data, Name: "a.b"}, {Type: mediaType, URL: "https://test.invalid/a"}} {
				t.Run(fmt.Sprintf("%s %s", role, media), func(t *testing.T) {
					m := newModel(t, script.Text("Seen."))
					refused := llm.CheckMedia(m, role, media)
					reply, err := stream(t, t.Context(), m, showing(role, media))
					switch {
					case refused == nil && (err != nil || reply.Text != "Seen."):
						t.Errorf("answer %q, error %v; want an answer: CheckMedia accepts it", reply.Text, err)
					case refused == nil:
					case err == nil || !strings.Contains(err.Error(), refused.Error()) || !strings.Contains(err.Error(), mediaType):
						t.Errorf("error %v\nwant the one of CheckMedia, with the type: %v", err, refused)
					default:
						if reply, err := stream(t, t.Context(), m, request()); err != nil || reply.Text != "Seen." {
							t.Errorf("after the refusal: %q, %v; want the answer that nobody has asked for", reply.Text, err)
						}
					}
				})
			}
		}
	}
	empty := newModel(t, script.Text("Seen."))
	for _, media := range []*llm.Media{{Type: "image/png"}, {Type: "image", Data: data}, {Type: "image/png", Data: data, URL: "https://test.invalid/a"}} {
		if llm.CheckMedia(empty, llm.RoleUser, media) == nil {
			t.Errorf("CheckMedia accepts %+v", media)
		}
	}
}

// showing returns a request with media in a message of the given role.
func showing(role llm.Role, media *llm.Media) *llm.Request {
	req := request()
	for i := range req.Messages {
		if m := &req.Messages[i]; m.Role == role {
			m.Content = append(m.Content, llm.Part{Media: media})
			return req
		}
	}
	req.Messages = append([]llm.Message{{Role: role, Content: []llm.Part{{Text: "See:"}, {Media: media}}}}, req.Messages...)
	return req
}

func modelHTTPError(t *testing.T, newModel func(t *testing.T, answers ...script.Answer) llm.Model) {
	m := newModel(t, script.Status(400, `{"error":{"message":"no such model"}}`), script.Text("Again."))
	_, err := stream(t, t.Context(), m, request())
	var h *llm.HTTPError
	if !errors.As(err, &h) || h.Status != 400 || !strings.Contains(h.Body, "no such model") {
		t.Errorf("error %v, want an *llm.HTTPError of status 400 with the body", err)
	}
	if reply, err := stream(t, t.Context(), m, request()); err != nil || reply.Text != "Again." {
		t.Errorf("after an error: %q, %v", reply.Text, err)
	}
}

func modelProviderError(t *testing.T, newModel func(t *testing.T, answers ...script.Answer) llm.Model) {
	m := newModel(t, script.Answer{Reply: llm.Reply{Text: "It begins well"}, Err: &llm.ProviderError{Message: "but ends badly", Type: "t"}})
	reply, err := stream(t, t.Context(), m, request())
	var p *llm.ProviderError
	if !errors.As(err, &p) || p.Message != "but ends badly" || p.Type != "t" {
		t.Errorf("error %v, want an *llm.ProviderError with message and type", err)
	}
	if reply.Text != "It begins well" {
		t.Errorf("text %q, want the text before the error", reply.Text)
	}
}

// modelBreak checks that the model stops yielding when the caller breaks out of the loop, after each possible delta. If the model
// continues to yield, the range statement panics.
func modelBreak(t *testing.T, newModel func(t *testing.T, answers ...script.Answer) llm.Model) {
	answer := script.Answer{Reply: llm.Reply{Reasoning: "hm", Text: "Some words.", ToolCalls: []llm.ToolCall{{ID: "1", Name: "now", Input: json.RawMessage(`{}`)}}}}
	const most = 20
	answers := make([]script.Answer, most)
	for i := range answers {
		answers[i] = answer
	}
	m := newModel(t, answers...)
	for stop := range most {
		n := 0
		for range m.Stream(t.Context(), request()) {
			if n++; n > stop {
				break
			}
		}
		if n <= stop {
			return
		}
	}
}

func modelCancel(t *testing.T, newModel func(t *testing.T, answers ...script.Answer) llm.Model) {
	slow := script.Text("too late")
	slow.Wait = time.Minute
	m := newModel(t, slow, slow)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	begin := time.Now()
	for _, when := range []string{"while it waits", "before it begins"} {
		if _, err := stream(t, ctx, m, request()); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled %s: error %v, want context.Canceled", when, err)
		}
	}
	if d := time.Since(begin); d > 10*time.Second {
		t.Errorf("cancelling took %s", d)
	}
}

func modelConcurrent(t *testing.T, newModel func(t *testing.T, answers ...script.Answer) llm.Model) {
	const n = 16
	answers := make([]script.Answer, n)
	for i := range answers {
		answers[i] = script.Text(fmt.Sprintf("answer %d", i))
	}
	m := newModel(t, answers...)
	req := request()
	var mu sync.Mutex
	seen := map[string]bool{}
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			reply, err := llm.Collect(t.Context(), m, req)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			seen[reply.Text] = true
		})
	}
	wg.Wait()
	if len(seen) != n {
		t.Errorf("%d different answers, want %d: %v", len(seen), n, seen)
	}
}

func modelCheck(t *testing.T, newModel func(t *testing.T, answers ...script.Answer) llm.Model) {
	m := newModel(t)
	if c, ok := m.(llm.Checker); ok {
		if err := c.Check(); err != nil {
			t.Errorf("a sound model fails its check: %v", err)
		}
	}
	if i, ok := m.(llm.Informer); ok && i.Info().Provider == "" {
		t.Error("Info names no provider")
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
