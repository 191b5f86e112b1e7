package llm_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
	"github.com/stonelayer/stone/llm/gemini"
	"github.com/stonelayer/stone/llm/openai"
)

// report is a row of testdata/reports: what a server sends, or refuses, by a public report, and what is right.
//
//	== a name
//	came: what came, with its source
//	right: what is right
//	--- config     JSON of the model's Config; optional
//	--- ask        JSON of an llm.Request; optional
//	--- answer 400 application/json   as often as requests are expected; the last one repeats
//	data {…}       is an event, event NAME {…} one with a name, anything else stands as it is;
//	               each protocol has abbreviations, see bodies
//	--- want       the reply, one part a line
//	--- sent       JSON that the last request has, beside other things
type report struct {
	name, came, right, want string
	config, ask, sent       string
	answers                 []answered
}

type answered struct {
	status          int
	mediaType, body string
}

func reports(t *testing.T, protocol string) (all []report) {
	data, err := os.ReadFile(filepath.Join("testdata", "reports", protocol+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range strings.Split("\n"+string(data), "\n== ")[1:] {
		head, rest, _ := strings.Cut(text, "\n---")
		lines := strings.SplitN(head, "\n", 3)
		if len(lines) != 3 || !strings.HasPrefix(lines[1], "came: ") || !strings.HasPrefix(lines[2], "right: ") {
			t.Fatalf("%s: %q has no lines came: and right:", protocol, lines[0])
		}
		r := report{name: lines[0], came: lines[1], right: lines[2], ask: `{"messages":[{"role":"user","content":[{"text":"hi"}]}]}`}
		for _, part := range strings.Split("---"+rest, "---") {
			title, body, _ := strings.Cut(strings.TrimSpace(part), "\n")
			words := strings.Fields(title)
			switch {
			case len(words) == 0:
			case words[0] == "answer":
				a := answered{200, "text/event-stream", body}
				for _, w := range words[1:] {
					if n, err := strconv.Atoi(w); err == nil {
						a.status = n
					} else {
						a.mediaType = w
					}
				}
				a.body = bodies(a.body)
				r.answers = append(r.answers, a)
			case words[0] == "want":
				r.want = body
			case words[0] == "ask":
				r.ask = body
			case words[0] == "sent":
				r.sent = body
			case words[0] == "config":
				r.config = body
			default:
				t.Fatalf("%s: %q has a part %q", protocol, r.name, title)
			}
		}
		all = append(all, r)
	}
	return all
}

// bodies expands the abbreviations of a body.
func bodies(text string) string {
	var b strings.Builder
	event := func(format string, args ...any) { fmt.Fprintf(&b, "data: "+format+"\n\n", args...) }
	for line := range strings.Lines(text + "\n") {
		line = strings.TrimRight(line, "\n")
		word, rest, _ := strings.Cut(line, " ")
		switch word {
		case "data":
			event("%s", rest)
		case "event":
			name, data, _ := strings.Cut(rest, " ")
			fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", name, data)
		case "delta": // Chat Completions
			event(`{"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":%s,"finish_reason":null}]}`, rest)
		case "end":
			event(`{"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, rest)
			event("[DONE]")
		case "start": // Messages
			event(`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"c","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}`)
		case "block":
			n, data, _ := strings.Cut(rest, " ")
			event(`{"type":"content_block_start","index":%s,"content_block":%s}`, n, data)
		case "piece":
			n, data, _ := strings.Cut(rest, " ")
			event(`{"type":"content_block_delta","index":%s,"delta":%s}`, n, data)
		case "close":
			event(`{"type":"content_block_stop","index":%s}`, rest)
		case "stop":
			event(`{"type":"message_delta","delta":{"stop_reason":%q},"usage":{"output_tokens":2}}`, rest)
			event(`{"type":"message_stop"}`)
		case "parts": // Gemini
			event(`{"candidates":[{"content":{"role":"model","parts":%s}}]}`, rest)
		case "finish":
			event(`{"candidates":[{"finishReason":%q}]}`, rest)
		case "completed": // Responses
			event(`{"type":"response.completed","response":{"id":"r","object":"response","status":"completed","output":%s}}`, rest)
		default:
			b.WriteString(line + "\n")
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// replies answers requests with the answers of a report.
type replies struct {
	list []answered
	mu   sync.Mutex
	sent []string
}

func (s *replies) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.list[min(len(s.sent), len(s.list)-1)]
	s.sent = append(s.sent, string(body))
	return &http.Response{StatusCode: a.status, Header: http.Header{"Content-Type": {a.mediaType}}, Body: io.NopCloser(strings.NewReader(a.body)), Request: r}, nil
}

// model returns the model of a report.
func (r *report) model(t *testing.T, protocol string, s *replies) llm.Model {
	read := func(to any) {
		if r.config != "" {
			if err := json.Unmarshal([]byte(r.config), to); err != nil {
				t.Fatal(err)
			}
		}
	}
	client, retry := &http.Client{Transport: s}, llm.Retry{Wait: 1}
	switch protocol {
	case "messages":
		c := anthropic.Config{Model: "m", URL: "http://test.invalid", Key: llm.NoKey}
		read(&c)
		c.HTTPClient, c.Retry = client, retry
		return anthropic.New(c)
	case "gemini":
		c := gemini.Config{Model: "gemini-3", URL: "http://test.invalid", Key: llm.NoKey}
		read(&c)
		c.HTTPClient, c.Retry = client, retry
		return gemini.New(c)
	}
	c := openai.Config{Model: "m", URL: "http://test.invalid", Key: llm.NoKey}
	if protocol == "responses" {
		c.Protocol = openai.Responses
	}
	read(&c)
	c.HTTPClient, c.Retry = client, retry
	return openai.New(c)
}

// TestReports reads what servers send by public reports.
func TestReports(t *testing.T) {
	for _, protocol := range []string{"chat", "messages", "responses", "gemini"} {
		for _, r := range reports(t, protocol) {
			t.Run(protocol+"/"+r.name, func(t *testing.T) {
				s := &replies{list: r.answers}
				var req llm.Request
				if err := json.Unmarshal([]byte(r.ask), &req); err != nil {
					t.Fatal(err)
				}
				reply, err := llm.Collect(t.Context(), r.model(t, protocol, s), &req)
				if r.want != "" {
					if got := described(reply, err, len(s.sent), r.want); got != r.want {
						t.Errorf("%s\n%s\n got\n%s\nwant\n%s", r.came, r.right, got, r.want)
					}
				}
				if r.sent != "" {
					if len(s.sent) == 0 {
						t.Fatalf("nothing was sent: %v", err)
					}
					has(t, r, s.sent[len(s.sent)-1])
				}
			})
		}
	}
}

// described returns the reply, one part a line: of usage, stop reason and requests only what is wanted.
func described(r *llm.Reply, err error, asked int, want string) string {
	var lines []string
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if r.Text != "" {
		add("text %q", r.Text)
	}
	if r.Reasoning != "" {
		add("reasoning %q", r.Reasoning)
	}
	ids := map[string]bool{}
	for _, c := range r.ToolCalls {
		if c.Input == nil {
			add("cut call %s %q", c.Name, c.InputText)
		} else {
			add("call %s %s", c.Name, c.Input)
		}
		if c.ID == "" || ids[c.ID] {
			add("the id %q is empty or there twice", c.ID)
		}
		ids[c.ID] = true
	}
	wanted := func(word string) bool { return strings.Contains("\n"+want, "\n"+word) }
	if wanted("stop ") {
		add("stop %s", r.StopReason)
	}
	if wanted("usage ") {
		u := r.Usage.Counted()
		add("usage %d %d cached %d written %d", u.InputTokens, u.OutputTokens, u.CacheReadTokens, u.CacheWriteTokens)
	}
	if err == nil && r.Cut() {
		add("cut")
	}
	if r.Refused() {
		add("refused")
	}
	if wanted("asked ") {
		add("asked %d", asked)
	}
	if err != nil {
		add("%s", strings.TrimPrefix(fmt.Sprintf("%T", err), "*llm."))
	}
	return strings.Join(lines, "\n")
}

// has reports what a request lacks.
func has(t *testing.T, r report, sent string) {
	t.Helper()
	var got, want any
	if err := json.Unmarshal([]byte(sent), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(r.sent), &want); err != nil {
		t.Fatal(err)
	}
	if !within(want, got) {
		t.Errorf("%s\n%s\nsent\n%s\nwant\n%s", r.came, r.right, sent, r.sent)
	}
}

// within reports whether a JSON value is in another: its members are, null is nothing, and lists are as long.
func within(want, got any) bool {
	switch want := want.(type) {
	case map[string]any:
		got, ok := got.(map[string]any)
		for name, value := range want {
			ok = ok && within(value, got[name])
		}
		return ok
	case []any:
		list, ok := got.([]any)
		return ok && slices.EqualFunc(want, list, within)
	}
	return want == "*" && got != nil || reflect.DeepEqual(want, got)
}
