package llm_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stonelayer/stone/internal/limit"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
	"github.com/stonelayer/stone/llm/gemini"
	"github.com/stonelayer/stone/llm/openai"
)

// counted are complete answers of each protocol, with 100 tokens of input, 20 of them read from a cache, and
// 10 of output.
var counted = map[string]string{
	"openai": hello + strings.Replace(world, "data: [DONE]",
		`data: {"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":10,"prompt_tokens_details":{"cached_tokens":20}}}`+"\n\ndata: [DONE]", 1),
	"anthropic": `event: message_start
data: {"type":"message_start","message":{"id":"m","model":"m","content":[],"usage":{"input_tokens":80,"cache_read_input_tokens":20,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":10}}

event: message_stop
data: {"type":"message_stop"}

`,
	"gemini": `data: {"candidates":[{"content":{"parts":[{"text":"Hello"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":10,"cachedContentTokenCount":20}}` + "\n\n",
}

// connect returns a model of a protocol.
func connect(protocol string, t http.RoundTripper, l *limit.Limiter) llm.Model {
	c := &http.Client{Transport: t}
	switch protocol {
	case "anthropic":
		return anthropic.New(anthropic.Config{Model: "m", URL: "http://test.invalid", HTTPClient: c, Limiter: l})
	case "gemini":
		return gemini.New(gemini.Config{Model: "m", URL: "http://test.invalid", HTTPClient: c, Limiter: l})
	}
	return openai.New(openai.Config{Model: "m", URL: "http://test.invalid", HTTPClient: c, Limiter: l})
}

// TestServerLimits has a second model wait for what the server said to the first.
func TestServerLimits(t *testing.T) {
	in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	for name, test := range map[string]struct {
		protocol string
		header   func() map[string]string
		status   int // of the first answer
		body     string
		waits    time.Duration
	}{
		"openai, requests": {"openai", func() map[string]string {
			return map[string]string{"X-Ratelimit-Remaining-Requests": "0", "X-Ratelimit-Reset-Requests": "7s",
				"X-Ratelimit-Remaining-Tokens": "149984", "X-Ratelimit-Reset-Tokens": "6ms"}
		}, 200, "", 7 * time.Second},
		"openai, tokens": {"openai", func() map[string]string {
			return map[string]string{"X-Ratelimit-Remaining-Tokens": "0", "X-Ratelimit-Reset-Tokens": "51.5s"}
		}, 200, "", 51500 * time.Millisecond},
		"openai, few tokens": {"openai", func() map[string]string {
			return map[string]string{"X-Ratelimit-Remaining-Tokens": "100", "X-Ratelimit-Reset-Tokens": "9s"}
		}, 200, "", 9 * time.Second},
		"azure, without a limit": {"openai", func() map[string]string {
			return map[string]string{"X-Ratelimit-Remaining-Tokens": "-1", "X-Ratelimit-Reset-Tokens": "0"}
		}, 200, "", 0},
		"azure, seconds": {"openai", func() map[string]string {
			return map[string]string{"X-Ratelimit-Remaining-Tokens": "0", "X-Ratelimit-Reset-Tokens": "12"}
		}, 200, "", 12 * time.Second},
		"nonsense": {"openai", func() map[string]string {
			return map[string]string{"X-Ratelimit-Remaining-Tokens": "0", "X-Ratelimit-Reset-Tokens": "NaN"}
		}, 200, "", 0},
		"anthropic, requests": {"anthropic", func() map[string]string {
			return map[string]string{"Anthropic-Ratelimit-Requests-Remaining": "0", "Anthropic-Ratelimit-Requests-Reset": in(8 * time.Second)}
		}, 200, "", 8 * time.Second},
		"anthropic, output": {"anthropic", func() map[string]string {
			return map[string]string{"Anthropic-Ratelimit-Input-Tokens-Remaining": "90000", "Anthropic-Ratelimit-Input-Tokens-Reset": in(time.Second),
				"Anthropic-Ratelimit-Output-Tokens-Remaining": "0", "Anthropic-Ratelimit-Output-Tokens-Reset": in(5 * time.Second)}
		}, 200, "", 5 * time.Second},
		"openai refuses": {"openai", func() map[string]string { return map[string]string{"Retry-After": "20"} }, 429, `{"error":{"message":"slow down"}}`, 20 * time.Second},
		"gemini refuses": {"gemini", nil, 429, `{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34s"}]}}`, 34 * time.Second},
		"overloaded":     {"anthropic", func() map[string]string { return map[string]string{"Retry-After": "3"} }, 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, 3 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := step{status: test.status, header: http.Header{}, body: []string{test.body}}
				if test.status == 200 {
					first.body = []string{counted[test.protocol]}
				}
				if test.header != nil {
					for name, value := range test.header() {
						first.header.Set(name, value)
					}
				}
				shared := new(limit.Limiter)
				s := &server{steps: []step{first, {status: 200, body: []string{counted[test.protocol]}}}}
				a, b := connect(test.protocol, s, shared), connect(test.protocol, s, shared)
				begin := time.Now()
				var all sync.WaitGroup
				all.Go(func() {
					if _, _, err := ask(t.Context(), a); err != nil {
						t.Error(err)
					}
				})
				time.Sleep(time.Millisecond)
				said, _, err := ask(t.Context(), b)
				if d := time.Since(begin).Round(time.Millisecond); err != nil || max(d-test.waits, test.waits-d) > 50*time.Millisecond {
					t.Errorf("the other model had its answer after %v with %v, want %v", d, err, test.waits)
				}
				if !strings.Contains(said, "Hello") || strings.Contains(said, "restart") {
					t.Errorf("the other model was not only delayed: %s", said)
				}
				all.Wait()
			})
		})
	}
}

// TestRefusal counts the requests of many lanes to a server that accepts five a second.
func TestRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &strict{perSecond: 5}
		shared := new(limit.Limiter)
		var all sync.WaitGroup
		for range 30 {
			m := connect("openai", s, shared)
			all.Go(func() {
				for range 4 {
					if _, _, err := ask(t.Context(), m); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		t.Logf("120 answers by %d requests, of which %d were refused", s.asked, s.refused)
		if s.refused > s.asked/2 {
			t.Errorf("%d of %d requests were refused", s.refused, s.asked)
		}
	})
}

// strict is a server that refuses what exceeds its rate, with the second after which to try again.
type strict struct {
	mu                           sync.Mutex
	perSecond, n, asked, refused int
	second                       int64
}

func (s *strict) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now().Unix(); now != s.second {
		s.second, s.n = now, 0
	}
	s.asked++
	answer := step{status: 200, body: []string{helloAll}}
	if s.n++; s.n > s.perSecond {
		s.refused++
		answer = step{status: 429, header: http.Header{"Retry-After": {"1"}}, body: []string{`{}`}}
	}
	left := fmt.Sprint(max(s.perSecond-s.n, 0))
	answer.wait = 20 * time.Millisecond
	s.mu.Unlock()
	defer s.mu.Lock()
	resp, err := (&server{steps: []step{answer}}).RoundTrip(r)
	resp.Header.Set("X-Ratelimit-Remaining-Requests", left)
	resp.Header.Set("X-Ratelimit-Reset-Requests", "1s")
	return resp, err
}

// TestSettledTokens asks as often as the true usage allows, not the estimate: of 4,096 tokens of answer.
func TestSettledTokens(t *testing.T) {
	for protocol, used := range map[string]int{"openai": 110, "gemini": 110, "anthropic": 90} { // anthropic: cached tokens are free
		t.Run(protocol, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{steps: []step{{status: 200, body: []string{counted[protocol]}}}}
				m := connect(protocol, s, limit.New(limit.Limits{TokensPerMinute: 5000 + 9*used}))
				begin := time.Now()
				n := 0
				for ; time.Since(begin) < time.Minute; n++ {
					if _, _, err := ask(t.Context(), m); err != nil {
						t.Fatal(err)
					}
				}
				// The estimate, of about 4,100 tokens, has to fit beside what was used.
				if want := (5000+9*used-4100)/used + 2; n < want-2 || n > want {
					t.Errorf("%d requests in the first minute, want %d", n-1, want-1)
				}
			})
		})
	}
}

func TestWaitIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{steps: []step{{status: 200, body: []string{helloAll}}}}
		m := openai.New(openai.Config{Model: "m", URL: "http://test.invalid", HTTPClient: &http.Client{Transport: s},
			Limiter: limit.New(limit.Limits{RequestsPerMinute: 1}), ProgressInterval: 40 * time.Second, Timeouts: llm.Timeouts{Total: 10 * time.Second}})
		if _, _, err := ask(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		var said []string
		for d, err := range m.Stream(t.Context(), &llm.Request{Messages: []llm.Message{llm.User("hi")}}) {
			if err != nil {
				t.Error(err)
			}
			if d.Kind == llm.Progress {
				said = append(said, d.Text)
			}
		}
		if got, want := strings.Join(said, "\n"), "waiting for 40s: at most 1 requests a minute"; got != want {
			t.Errorf("said %q, want %q", got, want)
		}
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(gone) })
		begin := time.Now()
		if _, _, err := ask(ctx, m); !errors.Is(err, gone) || time.Since(begin) != time.Second {
			t.Errorf("cancelled: %v after %v", err, time.Since(begin))
		}
		for d := range m.Stream(t.Context(), &llm.Request{Messages: []llm.Message{llm.User("hi")}}) {
			if d.Kind == llm.Progress {
				break // the consumer stops while the request waits
			}
		}
		if len(s.requests) != 2 {
			t.Errorf("%d requests were sent, want 2", len(s.requests))
		}
	})
}

// TestLongPause ends a request at once if the server's pause is longer than any retry waits.
func TestLongPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{steps: []step{{status: 200, body: []string{helloAll}, header: http.Header{
			"X-Ratelimit-Remaining-Requests": {"0"}, "X-Ratelimit-Reset-Requests": {"18h"}}}}}
		m := connect("openai", s, nil)
		if _, _, err := ask(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		_, _, err := ask(t.Context(), m)
		if want := "llm: no request may be sent for 18h0m0s, beyond the longest wait of 1m0s: the server accepts no more requests"; err == nil || err.Error() != want || time.Since(begin) != 0 {
			t.Errorf("got %v after %v", err, time.Since(begin))
		}
		if !llm.Retryable(err) || llm.RetryAfter(err) != 18*time.Hour {
			t.Errorf("retryable %v after %v", llm.Retryable(err), llm.RetryAfter(err))
		}
	})
}
