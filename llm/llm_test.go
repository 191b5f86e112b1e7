package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/script"
)

func ExampleCollect() {
	var model llm.Model = script.New(script.Text("Because of Rayleigh scattering."))
	reply, err := llm.Collect(context.Background(), model, &llm.Request{
		System:   "You answer in one sentence.",
		Messages: []llm.Message{llm.User("Why is the sky blue?")},
	})
	fmt.Println(reply.Text, err)
	// Output: Because of Rayleigh scattering. <nil>
}

func ExampleModel() {
	model := script.New(script.Text("One step. Another one."))
	req := &llm.Request{Messages: []llm.Message{llm.User("Walk.")}}
	for d, err := range model.Stream(context.Background(), req) {
		switch {
		case err != nil:
			fmt.Println(err)
		case d.Kind == llm.Text:
			fmt.Print(d.Text)
		case d.Kind == llm.Done:
			fmt.Printf(" (%s)\n", d.Reply.StopReason)
		}
	}
	// Output: One step. Another one. (stop)
}

func TestText(t *testing.T) {
	part := func(p ...llm.Part) llm.Message { return llm.Message{Content: p} }
	for _, c := range []struct {
		m    llm.Message
		want string
	}{
		{llm.Message{}, ""},
		{llm.User("a"), "a"},
		{part(llm.Part{Value: json.RawMessage(`{"a":1}`)}), `{"a":1}`},
		{part(llm.Part{Text: "a"}, llm.Part{Media: &llm.Media{Type: "image/png"}}, llm.Part{Text: "b"}), "ab"},
		{part(llm.Part{Media: &llm.Media{Type: "image/png"}}), ""},
		{part(llm.Part{}), ""},
	} {
		if got := c.m.Text(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.m, got, c.want)
		}
	}
}

func TestMessageJSON(t *testing.T) {
	m := llm.Message{
		Role:      llm.RoleAssistant,
		Content:   []llm.Part{{Text: "a"}, {Value: json.RawMessage(`{"b":[1]}`)}, {Media: &llm.Media{Type: "image/png", Data: []byte{0, 255}}}},
		ToolCalls: []llm.ToolCall{{ID: "1", Name: "f", Input: json.RawMessage(`{}`)}},
		CallID:    "c", IsError: true,
		Metadata: map[string]json.RawMessage{"x/y": json.RawMessage(`[null]`)},
	}
	raw, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"role":"assistant","content":[{"text":"a"},{"value":{"b":[1]}},{"media":{"type":"image/png","data":"AP8="}}],` +
		`"tool_calls":[{"id":"1","name":"f","input":{}}],"call_id":"c","is_error":true,"metadata":{"x/y":[null]}}`
	if string(raw) != want {
		t.Errorf("\n got %s\nwant %s", raw, want)
	}
	var back llm.Message
	if err := json.Unmarshal(raw, &back); err != nil || !reflect.DeepEqual(back, m) {
		t.Errorf("back: %+v, %v", back, err)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		err       error
		want      string
		id        string
		retryable bool
	}{
		{&llm.HTTPError{Status: 429, Body: `{"error":{"message":"slow  \n down"}}`, RequestID: "r"}, "llm: HTTP status 429: slow down (request r)", "r", true},
		{&llm.HTTPError{Status: 500, Body: `{"detail":"x"}`}, `llm: HTTP status 500: {"detail":"x"}`, "", true},
		{&llm.HTTPError{Status: 501}, "llm: HTTP status 501", "", false},
		{&llm.HTTPError{Status: 401, Body: `{"message":"who?"}`}, "llm: HTTP status 401: who?", "", false},
		{&llm.ConnectError{URL: "http://x", Err: errors.New("refused")}, "llm: cannot reach http://x: refused", "", true},
		{&llm.TruncatedError{RequestID: "r"}, "llm: the stream was cut short before the answer's end (request r)", "r", true},
		{&llm.ProviderError{Message: "busy", Type: "overloaded_error", RequestID: "r"}, "llm: the provider reports: busy (overloaded_error, request r)", "r", true},
		{&llm.ProviderError{Message: "no", Code: "400"}, "llm: the provider reports: no (400)", "", false},
		{&llm.ProtocolError{Reason: "x", RequestID: "r"}, "llm: the answer breaks the protocol: x (request r)", "r", false},
		{&llm.TimeoutError{Phase: "silence", Limit: 2e9, RequestID: "r"}, "llm: timeout: silence took longer than 2s; see Timeouts (request r)", "r", true},
		{&llm.EmptyResponseError{StopReason: "stop", RequestID: "r"}, "llm: the model answered with neither text nor a tool call (stop reason stop, request r)", "r", false},
		{&llm.RepetitionExhaustedError{Attempts: 3}, "llm: the model still repeats itself after 3 retries", "", false},
		{context.Canceled, "context canceled", "", false},
	} {
		wrapped := fmt.Errorf("step x: %w", c.err)
		if got := c.err.Error(); got != c.want {
			t.Errorf("\n got %s\nwant %s", got, c.want)
		}
		if llm.RequestID(wrapped) != c.id || llm.Retryable(wrapped) != c.retryable {
			t.Errorf("%v: id %q, retryable %v; want %q, %v", c.err, llm.RequestID(wrapped), llm.Retryable(wrapped), c.id, c.retryable)
		}
	}
}

func TestCheckContent(t *testing.T) {
	for _, c := range []struct {
		reply llm.Reply
		empty bool
	}{
		{llm.Reply{}, true},
		{llm.Reply{Reasoning: "hm", StopReason: "stop"}, true},
		{llm.Reply{Text: "a"}, false},
		{llm.Reply{Refusal: "no"}, false},
		{llm.Reply{ToolCalls: []llm.ToolCall{{}}}, false},
	} {
		if err := c.reply.CheckContent(); errors.As(err, new(*llm.EmptyResponseError)) != c.empty {
			t.Errorf("%+v: %v", c.reply, err)
		}
	}
}

func TestUsageAdd(t *testing.T) {
	one, two := 1, 2
	got := llm.Usage{InputTokens: &one, CachedInputTokens: 3}.Add(llm.Usage{InputTokens: &two, OutputTokens: &two, ReasoningTokens: 4})
	if *got.InputTokens != 3 || *got.OutputTokens != 2 || got.CachedInputTokens != 3 || got.ReasoningTokens != 4 || one != 1 {
		t.Errorf("sum %+v of %d", got, one)
	}
	if sum := (llm.Usage{}).Add(llm.Usage{}); sum.InputTokens != nil {
		t.Error("the sum of nothing known is known")
	}
}
