package llm_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
	"github.com/stonelayer/stone/llm/gemini"
	"github.com/stonelayer/stone/llm/openai"
)

// expected is the entry of a stream in EXPECTED.json.
type expected struct {
	Text            string
	Reasoning       string
	ToolCalls       []llm.ToolCall `json:"tool_calls"`
	StopReason      *string        `json:"stop_reason"`
	Usage           tokens
	Error           *string
	ErrorKind       string `json:"error_kind"`
	ErrorAcceptable bool   `json:"error_acceptable"`
	Refusal         string
	UsageExtra      struct {
		Cached    int `json:"cached_input_tokens"`
		Written   int `json:"cache_write_tokens"`
		Reasoning int `json:"reasoning_tokens"`
	} `json:"usage_extra"`
	UsageVendor json.RawMessage `json:"usage_vendor"`
	Tags        []string
}

type tokens struct {
	In  *int `json:"input_tokens"`
	Out *int `json:"output_tokens"`
}

// recording is one recorded stream.
type recording struct {
	name, protocol string
	body           []byte
	want           expected
}

// recordings reads the recorded streams, and the streams in the folder that STONE_STREAMS names. They are too large to be part of
// the module.
func recordings(t testing.TB) []recording {
	t.Helper()
	var all []recording
	for _, dir := range []string{filepath.Dir(filepath.Dir(need.Recorded(t, "data/streams/openai/EXPECTED.json")[0])), os.Getenv("STONE_STREAMS")} {
		if dir == "" {
			continue
		}
		found := 0
		for _, protocol := range []string{"openai", "anthropic", "responses", "gemini", ""} {
			list := readRecordings(t, filepath.Join(dir, protocol), protocol)
			if protocol == "responses" && list == nil {
				list = readResponses(t, filepath.Join(dir, protocol))
			}
			found += len(list)
			all = append(all, list...)
		}
		if found == 0 && dir == os.Getenv("STONE_STREAMS") {
			t.Fatalf("STONE_STREAMS: no EXPECTED.json in %s, nor in openai/, anthropic/ or gemini/ below it", dir)
		}
	}
	for _, x := range geminiExchanges(t, "*") {
		all = append(all, x.recording(t))
	}
	return all
}

func readRecordings(t testing.TB, dir, protocol string) []recording {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "EXPECTED.json"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var wants map[string]expected
	if err = cmp.Or(err, json.Unmarshal(data, &wants)); err != nil {
		t.Fatal(err)
	}
	var list []recording
	for name, want := range wants {
		body, err := os.ReadFile(filepath.Join(dir, name+".sse"))
		if err != nil {
			t.Fatal(err)
		}
		p := protocol
		if p == "" {
			p = "openai"
			switch {
			case bytes.Contains(body, []byte(`"message_start"`)) || strings.Contains(dir, "anthropic"):
				p = "anthropic"
			case bytes.Contains(body, []byte(`"response.created"`)):
				p = "responses"
			case strings.Contains(dir, "gemini"):
				p = "gemini"
			}
		}
		list = append(list, recording{name, p, body, want})
	}
	return list
}

// readResponses reads streams of the Responses protocol. They need no EXPECTED.json, since their
// last event has all of the answer.
func readResponses(t testing.TB, dir string) []recording {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.sse"))
	if err != nil {
		t.Fatal(err)
	}
	var list []recording
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, last, ok := bytes.Cut(body, []byte("event: response.completed\ndata: "))
		var event struct{ Response wholeResponse }
		if err := json.NewDecoder(bytes.NewReader(last)).Decode(&event); !ok || err != nil {
			t.Fatalf("%s: no response at the end: %v", file, err)
		}
		list = append(list, recording{strings.TrimSuffix(filepath.Base(file), ".sse"), "responses", body, event.Response.expected()})
	}
	return list
}

// wholeResponse is a complete answer of the Responses protocol.
type wholeResponse struct {
	Status string
	Output []struct {
		Type      string
		Name      string
		CallID    string `json:"call_id"`
		Arguments string
		Content   []struct{ Text, Refusal string }
		Summary   []struct{ Text string }
	}
	Usage struct {
		tokens
		In struct {
			Cached  int `json:"cached_tokens"`
			Written int `json:"cache_write_tokens"`
		} `json:"input_tokens_details"`
		Out struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	}
}

func (r *wholeResponse) expected() expected {
	e := expected{StopReason: &r.Status, Usage: r.Usage.tokens}
	e.UsageExtra.Cached, e.UsageExtra.Written, e.UsageExtra.Reasoning = r.Usage.In.Cached, r.Usage.In.Written, r.Usage.Out.Reasoning
	for _, item := range r.Output {
		switch item.Type {
		case "message":
			for _, c := range item.Content {
				e.Text += c.Text
				e.Refusal += c.Refusal
			}
		case "reasoning":
			for _, s := range item.Summary {
				e.Reasoning += s.Text
			}
		case "function_call":
			e.ToolCalls = append(e.ToolCalls, llm.ToolCall{ID: item.CallID, Name: item.Name, Input: json.RawMessage(item.Arguments)})
		}
	}
	return e
}

// TestWholeResponses reads recorded answers that are no streams.
func TestWholeResponses(t *testing.T) {
	read := 0
	for _, file := range need.Recorded(t, "data/streams/responses/*.json") {
		data, err := os.ReadFile(file)
		var exchange struct{ Reply json.RawMessage }
		var want wholeResponse
		if err = cmp.Or(err, json.Unmarshal(data, &exchange)); err != nil {
			t.Fatal(err)
		}
		if exchange.Reply == nil || json.Unmarshal(exchange.Reply, &want) != nil || want.Status == "queued" {
			continue
		}
		if want.Status == "complete" {
			want.Status = "completed" // an answer that was not recorded but made up
		}
		r := recording{filepath.Base(file), "responses", exchange.Reply, want.expected()}
		for _, n := range []int{7, len(r.body)} {
			client := cutter(r.body, n)
			client.Transport.(*cutServer).mediaType = "application/json"
			r.check(t, n, r.model("http://test.invalid", client))
		}
		read++
	}
	if read < 70 {
		t.Errorf("read %d answers, want more than 70", read)
	}
}

// model returns a model of the recording's protocol.
func (r recording) model(url string, client *http.Client) llm.Model {
	switch r.protocol {
	case "anthropic":
		return anthropic.New(anthropic.Config{Model: "m", URL: url, Key: "test-key", HTTPClient: client, MaxContinuations: -1})
	case "gemini":
		return gemini.New(gemini.Config{Model: "m", URL: url, Key: "test-key", HTTPClient: client})
	}
	c := openai.Config{Model: "m", URL: url, Key: "test-key", HTTPClient: client}
	if r.protocol == "responses" {
		c.Protocol = openai.Responses
	}
	return openai.New(c)
}

// cutBody is a body that comes in pieces of n bytes.
type cutBody struct {
	rest []byte
	n    int
}

func (b *cutBody) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.rest[:min(b.n, len(b.rest))])
	b.rest = b.rest[n:]
	return n, nil
}

func (b *cutBody) Close() error { return nil }

// cutServer answers every request with a recording cut into pieces of n bytes.
type cutServer struct {
	body      []byte
	n         int
	mediaType string
}

func (s *cutServer) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: 200,
		Header:     http.Header{"Content-Type": {s.mediaType}, "X-Request-Id": {"req_7"}},
		Body:       &cutBody{s.body, s.n},
		Request:    r,
	}, nil
}

func cutter(body []byte, n int) *http.Client {
	return &http.Client{Transport: &cutServer{body, n, "text/event-stream; charset=utf-8"}}
}

func TestStreams(t *testing.T) {
	for _, r := range recordings(t) {
		t.Run(r.protocol+"/"+r.name, func(t *testing.T) {
			t.Parallel()
			for _, n := range []int{1, 7, 64, len(r.body)} {
				r.check(t, n, r.model("http://test.invalid", cutter(r.body, n)))
			}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				w.Header().Set("X-Request-Id", "req_7")
				w.Write(r.body)
			}))
			defer server.Close()
			r.check(t, 0, r.model(server.URL, nil))
		})
	}
}

func (r recording) check(t *testing.T, n int, m llm.Model) {
	t.Helper()
	want := r.want
	var text, reasoning strings.Builder
	var reply *llm.Reply
	var err error
	for d, e := range m.Stream(context.Background(), &llm.Request{Messages: []llm.Message{llm.User("hi")}}) {
		switch d.Kind {
		case llm.Text:
			text.WriteString(d.Text)
		case llm.Reasoning:
			reasoning.WriteString(d.Text)
		}
		if d.Reply != nil {
			reply = d.Reply
		}
		err = e
	}
	if text.String() != reply.Text || reasoning.String() != reply.Reasoning {
		t.Errorf("pieces of %d: the deltas are not the reply", n)
	}
	if rest, ok := strings.CutPrefix(want.Text, "<think>"); ok && want.Reasoning == "" {
		want.Reasoning, want.Text, _ = strings.Cut(rest, "</think>")
	}
	equal(t, n, "text", reply.Text, want.Text)
	equal(t, n, "reasoning", reply.Reasoning, want.Reasoning)
	equal(t, n, "refusal", reply.Refusal, want.Refusal)
	equal(t, n, "stop reason", reply.StopReason, deref(want.StopReason))
	equal(t, n, "request id", reply.RequestID, "req_7")
	equal(t, n, "tool calls", made.ReplaceAllString(show(t, reply.ToolCalls), "made up"), show(t, want.ToolCalls))
	if reply.Usage.Vendor == "" || want.UsageVendor == nil {
		equal(t, n, "usage", show(t, tokens{reply.Usage.InputTokens, reply.Usage.OutputTokens}), show(t, want.Usage))
	}
	if x := want.UsageExtra; x.Cached+x.Written+x.Reasoning != 0 {
		equal(t, n, "cached tokens", reply.Usage.CachedInputTokens, x.Cached)
		equal(t, n, "written tokens", reply.Usage.CacheWriteTokens, x.Written)
		equal(t, n, "reasoning tokens", reply.Usage.ReasoningTokens, x.Reasoning)
	}
	r.checkError(t, n, err)
}

func (r recording) checkError(t *testing.T, n int, err error) {
	t.Helper()
	if r.want.Error == nil {
		if err != nil && !r.want.ErrorAcceptable {
			t.Errorf("pieces of %d: error %v, want none", n, err)
		}
		return
	}
	var provider *llm.ProviderError
	var protocol *llm.ProtocolError
	var cut *llm.TruncatedError
	switch r.want.ErrorKind {
	case "provider":
		if !errors.As(err, &provider) || provider.Message != *r.want.Error {
			t.Errorf("pieces of %d: error %v, want the provider's %q", n, err, *r.want.Error)
		}
	case "protocol":
		if !errors.As(err, &protocol) {
			t.Errorf("pieces of %d: error %v, want a protocol error", n, err)
		}
	case "cut-short":
		if !errors.As(err, &cut) {
			t.Errorf("pieces of %d: error %v, want a truncated stream", n, err)
		}
	default:
		t.Fatalf("unknown error kind %q", r.want.ErrorKind)
	}
	if err != nil && llm.RequestID(err) != "req_7" {
		t.Errorf("pieces of %d: error %v has no request id", n, err)
	}
}

// made matches the ids of calls whose server gave none.
var made = regexp.MustCompile(`call_[a-z0-9]{10}_\d+`)

func equal[T comparable](t *testing.T, n int, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("pieces of %d: %s\n got %v\nwant %v", n, what, got, want)
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// show renders a value as canonical JSON: inputs are compared as values, not as text.
func show(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	var plain any
	if err = cmp.Or(err, json.Unmarshal(raw, &plain)); err != nil {
		t.Fatal(err)
	}
	raw, err = json.Marshal(plain)
	if err != nil {
		t.Fatal(err)
	}
	if string(raw) == "null" {
		return "[]"
	}
	return string(raw)
}
