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
	"strings"
	"testing"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
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

// recordings reads the recorded streams, and those of the folder that STONE_STREAMS
// names. They are too large to be part of the module.
func recordings(t testing.TB) []recording {
	t.Helper()
	var all []recording
	for _, dir := range []string{filepath.Join("..", "..", "shared", "data", "streams"), os.Getenv("STONE_STREAMS")} {
		if dir == "" {
			continue
		}
		found := 0
		for _, protocol := range []string{"openai", "anthropic", ""} {
			list := readRecordings(t, filepath.Join(dir, protocol), protocol)
			found += len(list)
			all = append(all, list...)
		}
		if found == 0 && dir == os.Getenv("STONE_STREAMS") {
			t.Fatalf("STONE_STREAMS: no EXPECTED.json in %s, nor in openai/ or anthropic/ below it", dir)
		}
	}
	if len(all) == 0 {
		t.Skip("no recorded streams: ../shared/data/streams is absent and STONE_STREAMS is not set")
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
			if bytes.Contains(body, []byte(`"message_start"`)) || strings.Contains(dir, "anthropic") {
				p = "anthropic"
			}
		}
		list = append(list, recording{name, p, body, want})
	}
	return list
}

// model returns a model of the recording's protocol.
func (r recording) model(url string, client *http.Client) llm.Model {
	if r.protocol == "anthropic" {
		return anthropic.New(anthropic.Config{Model: "m", URL: url, Key: "test-key", HTTPClient: client, MaxContinuations: -1})
	}
	return openai.New(openai.Config{Model: "m", URL: url, Key: "test-key", HTTPClient: client})
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

// cutter answers every request with a recording cut into pieces.
func cutter(body []byte, n int) *http.Client {
	return &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: 200,
			Header:     http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}, "X-Request-Id": {"req_7"}},
			Body:       &cutBody{body, n},
			Request:    r,
		}, nil
	})}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

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
	equal(t, n, "tool calls", show(t, reply.ToolCalls), show(t, want.ToolCalls))
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
