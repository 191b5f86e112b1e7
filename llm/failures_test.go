package llm_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stonelayer/stone/internal/limit"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
	"github.com/stonelayer/stone/llm/gemini"
	"github.com/stonelayer/stone/llm/openai"
)

const (
	hello    = `data: {"id":"c1","model":"m","choices":[{"index":0,"delta":{"content":"Hello"}}]}` + "\n\n"
	world    = `data: {"id":"c1","model":"m","choices":[{"index":0,"delta":{"content":" world"},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	helloAll = hello + world
	key      = "sk-very-secret-key"
)

// step is one answer of a scripted server. The body's pieces come one after the
// other; "~7s" waits, "!" breaks the connection, "…" stays silent forever.
type step struct {
	status int // 0: the connection fails
	header http.Header
	wait   time.Duration // before the head
	body   []string
}

// server is a transport that answers with its steps, and repeats the last one.
type server struct {
	mu       sync.Mutex
	steps    []step
	requests []string // bodies
	open     atomic.Int32
	mostOpen atomic.Int32
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	st := s.steps[min(len(s.requests), len(s.steps)-1)]
	s.requests = append(s.requests, string(body))
	s.mu.Unlock()
	if err := pause(r.Context(), st.wait); err != nil {
		return nil, err
	}
	if st.status == 0 {
		return nil, errors.New("connection refused")
	}
	if n := s.open.Add(1); n > s.mostOpen.Load() {
		s.mostOpen.Store(n)
	}
	pr, pw := io.Pipe()
	go func() {
		defer s.open.Add(-1)
		pw.CloseWithError(play(r.Context(), pw, st.body))
	}()
	h := st.header
	if h == nil {
		h = http.Header{}
	}
	h.Set("X-Request-Id", "req_7")
	return &http.Response{StatusCode: st.status, Header: h, Body: pr, Request: r}, nil
}

func play(ctx context.Context, w io.Writer, pieces []string) error {
	for _, p := range pieces {
		switch {
		case p == "!":
			return errors.New("connection reset")
		case p == "…":
			<-ctx.Done()
			return ctx.Err()
		case strings.HasPrefix(p, "~"):
			d, err := time.ParseDuration(p[1:])
			if err != nil {
				return err
			}
			if err := pause(ctx, d); err != nil {
				return err
			}
		default:
			if _, err := io.WriteString(w, p); err != nil {
				return err
			}
		}
	}
	return nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ask streams one answer and renders its deltas.
func ask(ctx context.Context, m llm.Model) (string, *llm.Reply, error) {
	var b strings.Builder
	var reply *llm.Reply
	var err error
	for d, e := range m.Stream(ctx, &llm.Request{Messages: []llm.Message{llm.User("hi")}}) {
		switch d.Kind {
		case llm.Start:
			b.WriteString("start ")
		case llm.Text:
			fmt.Fprintf(&b, "%q ", d.Text)
		case llm.Progress:
			fmt.Fprintf(&b, "%s ", d.Elapsed)
		case llm.Restart:
			b.WriteString("restart ")
		case llm.Done:
			b.WriteString("done ")
		}
		if d.Reply != nil {
			reply = d.Reply
		}
		err = e
	}
	return strings.TrimSpace(b.String()), reply, err
}

func TestFailures(t *testing.T) {
	ok := step{status: 200, body: []string{helloAll}}
	after := func(v string) http.Header { return http.Header{"Retry-After": {v}} }
	const good = `start "Hello" " world" done`
	once := openai.Config{Retry: llm.Retry{Max: -1}}
	for _, c := range []struct {
		name    string
		steps   []step
		config  openai.Config
		want    string // what the consumer sees
		err     string // beginning of the error
		text    string // of the reply beside an error
		elapsed time.Duration
		asked   int
	}{
		{name: "good", steps: []step{ok}, want: good, asked: 1},
		{name: "Retry-After in seconds", steps: []step{{status: 429, header: after("4")}, ok},
			want: "restart " + good, elapsed: 4 * time.Second, asked: 2},
		{name: "Retry-After as a date", steps: []step{{status: 503, header: after("Sat, 01 Jan 2000 00:00:03 GMT")}, ok},
			want: "restart " + good, elapsed: 3 * time.Second, asked: 2},
		{name: "Retry-After too long", steps: []step{{status: 429, header: after("3600"), body: []string{`{"error":{"message":"slow down"}}`}}},
			err: "llm: HTTP status 429: slow down; the server asks to wait 1h0m0s (request req_7)", asked: 1},
		{name: "progress while waiting", steps: []step{{status: 429, header: after("12")}, ok},
			want: "restart 5s 10s " + good, elapsed: 12 * time.Second, asked: 2},
		{name: "progress as often as configured", steps: []step{{status: 429, header: after("7")}, {status: 200, wait: 7 * time.Second}},
			config: openai.Config{ProgressInterval: 3 * time.Second, Retry: llm.Retry{Max: 1}, Timeouts: llm.Timeouts{FirstByte: 7 * time.Second}},
			want:   "restart 3s 6s 10s 13s", err: "llm: timeout: first byte took longer than 7s", elapsed: 14 * time.Second, asked: 2},
		{name: "server error, then good", steps: []step{{status: 500}, {status: 529}, ok}, want: "restart restart " + good, asked: 3},
		{name: "server error for ever", steps: []step{{status: 502, body: []string{"bad gateway"}}},
			want: "restart restart restart", err: "llm: HTTP status 502: bad gateway (request req_7) (tried 4 times)", asked: 4},
		{name: "no retries", steps: []step{{status: 500}}, config: openai.Config{Retry: llm.Retry{Max: -1}},
			err: "llm: HTTP status 500", asked: 1},
		{name: "bad request", steps: []step{{status: 400, body: []string{`{"error":{"message":"no such model"}}`}}},
			err: "llm: HTTP status 400: no such model (request req_7)", asked: 1},
		{name: "not found", steps: []step{{status: 404}}, err: "llm: HTTP status 404 (request req_7)", asked: 1},
		{name: "redirect", steps: []step{{status: 307, header: http.Header{"Location": {"https://elsewhere.invalid/"}}}},
			err: "llm: HTTP status 307", asked: 1},
		{name: "no connection, then good", steps: []step{{}, {}, ok}, want: "restart restart " + good, asked: 3},
		{name: "no connection for ever", steps: []step{{}}, want: "restart restart restart",
			err: "llm: cannot reach http://test.invalid/v1/chat/completions: connection refused", asked: 4},
		{name: "cut in the midst", steps: []step{{status: 200, body: []string{hello}}}, config: once,
			want: `start "Hello"`, err: "llm: the stream was cut short before the answer's end (request req_7)", text: "Hello", asked: 1},
		{name: "reset in the midst", steps: []step{{status: 200, body: []string{hello, "!"}}}, config: once,
			want: `start "Hello"`, err: "llm: the stream was cut short before the answer's end: connection reset", text: "Hello", asked: 1},
		{name: "cut within an event", steps: []step{{status: 200, body: []string{hello, world[:40]}}}, config: once,
			want: `start "Hello"`, err: "llm: the stream was cut short", text: "Hello", asked: 1},
		{name: "cut, and asked to try again", steps: []step{{status: 200, body: []string{hello, "!"}}, ok},
			config: openai.Config{},
			want:   `start "Hello" restart ` + good, asked: 2},
		{name: "nothing at all", steps: []step{{status: 200}}, want: "start restart start restart start restart start", err: "llm: the stream was cut short", asked: 4},
		{name: "malformed event", steps: []step{{status: 200, body: []string{hello, "data: {oops\n\n", world}}},
			want: `start "Hello"`, err: "llm: the answer breaks the protocol: an event that is not a chunk", text: "Hello", asked: 1},
		{name: "web page", steps: []step{{status: 200, header: http.Header{"Content-Type": {"text/html"}}, body: []string{"<html>"}}},
			want: "start", err: "llm: the answer breaks the protocol: got an HTML page", asked: 1},
		{name: "one document", steps: []step{{status: 200, header: http.Header{"Content-Type": {"application/json"}},
			body: []string{`{"id":"c","model":"m","choices":[{"message":{"content":"Hello"},`, `"finish_reason":"stop"}]}`}}},
			want: `start "Hello" done`, asked: 1},
		{name: "one document with an error", steps: []step{{status: 200, header: http.Header{"Content-Type": {"application/json"}},
			body: []string{`{"error":{"message":"no","type":"t"}}`}}},
			want: "start", err: "llm: the provider reports: no (t, request req_7)", asked: 1},
		{name: "no head", steps: []step{{status: 200, wait: time.Hour}}, config: openai.Config{Timeouts: llm.Timeouts{FirstByte: 7 * time.Second}},
			want: "5s", err: "llm: timeout: first byte took longer than 7s", elapsed: 7 * time.Second, asked: 1},
		{name: "no first byte", steps: []step{{status: 200, body: []string{"…"}}}, config: openai.Config{Timeouts: llm.Timeouts{FirstByte: 7 * time.Second}},
			want: "start 5s", err: "llm: timeout: first byte took longer than 7s; see Timeouts (request req_7)", elapsed: 7 * time.Second, asked: 1},
		{name: "silence", steps: []step{{status: 200, body: []string{hello, "~3s", ": still here\n", "…"}}},
			config: openai.Config{Timeouts: llm.Timeouts{Silence: 4 * time.Second}, Retry: once.Retry},
			want:   `start "Hello" 5s`, err: "llm: timeout: silence took longer than 4s", text: "Hello", elapsed: 7 * time.Second, asked: 1},
		{name: "only signs of life", steps: []step{{status: 200, body: []string{hello, "~3s", ": 1\n", "~3s", ": 2\n", "~3s", ": 3\n", "~3s", ": 4\n", "…"}}},
			config: openai.Config{Timeouts: llm.Timeouts{Silence: 4 * time.Second, Total: -1}, Retry: once.Retry, ProgressInterval: time.Hour},
			want:   `start "Hello"`, err: "llm: timeout: silence took longer than 4s", text: "Hello", elapsed: 16 * time.Second, asked: 1},
		{name: "signs of life for ever", steps: []step{{status: 200, body: []string{hello, "~3s", ": 1\n", "~3s", ": 2\n", "~3s", ": 3\n", "~3s", ": 4\n", "~3s", ": 5\n", "~3s", ": 6\n", "~3s", world}}},
			config: openai.Config{Timeouts: llm.Timeouts{Silence: 4 * time.Second, Total: -1}, Retry: once.Retry, ProgressInterval: time.Hour},
			want:   `start "Hello"`, err: "llm: timeout: silence took longer than 20s", text: "Hello", elapsed: 20 * time.Second, asked: 1},
		{name: "total", steps: []step{{status: 200, body: []string{hello, "~4s", ":\n", "~4s", ":\n", "…"}}},
			config: openai.Config{Timeouts: llm.Timeouts{Total: 9 * time.Second}},
			want:   `start "Hello" 5s`, err: "llm: timeout: total took longer than 9s", text: "Hello", elapsed: 9 * time.Second, asked: 1},
		{name: "slow but steady", steps: []step{{status: 200, body: []string{"~6s", hello, "~6s", world}}},
			want: `start 5s "Hello" 10s " world" done`, elapsed: 12 * time.Second, asked: 1},
		{name: "open after the end", steps: []step{{status: 200, body: []string{helloAll, "…"}}}, want: good, asked: 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &server{steps: c.steps}
				c.config.Model, c.config.URL, c.config.Key = "m", "http://test.invalid", key
				c.config.HTTPClient = &http.Client{Transport: s}
				start := time.Now()
				got, reply, err := ask(t.Context(), openai.New(c.config))
				elapsed := time.Since(start)
				if got != c.want {
					t.Errorf("got  %s\nwant %s", got, c.want)
				}
				switch {
				case c.err == "" && err != nil, c.err != "" && (err == nil || !strings.HasPrefix(err.Error(), c.err)):
					t.Errorf("error %v, want %q", err, c.err)
				case err != nil && (reply == nil || reply.Text != c.text):
					t.Errorf("reply %+v, want text %q", reply, c.text)
				}
				if c.elapsed != 0 && elapsed.Round(time.Second) != c.elapsed {
					t.Errorf("took %s, want %s", elapsed, c.elapsed)
				}
				if len(s.requests) != c.asked {
					t.Errorf("asked %d times, want %d", len(s.requests), c.asked)
				}
			})
		})
	}
}

func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reason := errors.New("the budget is spent")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(2*time.Second, func() { cancel(reason) })
		s := &server{steps: []step{{status: 200, body: []string{hello, "…"}}}}
		m := openai.New(openai.Config{Model: "m", URL: "http://test.invalid", HTTPClient: &http.Client{Transport: s}})
		got, reply, err := ask(ctx, m)
		if got != `start "Hello"` || reply.Text != "Hello" || !errors.Is(err, reason) {
			t.Errorf("got %s, %+v, %v; want the text and the cause", got, reply, err)
		}
	})
}

// TestBreak checks that a consumer that stops leaves no goroutine behind: the bubble would
// not end otherwise.
func TestBreak(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{steps: []step{{status: 200, body: []string{hello, "…"}}}}
		m := openai.New(openai.Config{Model: "m", URL: "http://test.invalid", HTTPClient: &http.Client{Transport: s}})
		for d := range m.Stream(t.Context(), &llm.Request{Messages: []llm.Message{llm.User("hi")}}) {
			if d.Kind == llm.Text {
				break
			}
		}
		synctest.Wait()
		if n := s.open.Load(); n != 0 {
			t.Errorf("%d connections are still open", n)
		}
	})
}

func TestLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{steps: []step{{status: 200, body: []string{"~1s", helloAll}}}}
		m := openai.New(openai.Config{Model: "m", URL: "http://test.invalid", HTTPClient: &http.Client{Transport: s}, Limiter: limit.New(limit.Limits{Concurrency: 3})})
		start := time.Now()
		var wg sync.WaitGroup
		for range 9 {
			wg.Go(func() {
				if _, _, err := ask(t.Context(), m); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n, d := s.mostOpen.Load(), time.Since(start).Round(time.Second); n != 3 || d != 3*time.Second {
			t.Errorf("9 requests, 3 at once: %d at once in %s, want 3 in 3s", n, d)
		}
		m = openai.New(openai.Config{Model: "m", URL: "http://test.invalid", HTTPClient: &http.Client{Transport: s}, Limiter: limit.New(limit.Limits{RequestsPerMinute: 2})})
		start = time.Now()
		for range 5 {
			if _, _, err := ask(t.Context(), m); err != nil {
				t.Error(err)
			}
		}
		if d := time.Since(start).Round(time.Second); d != 2*time.Minute+time.Second {
			t.Errorf("5 requests at 2 a minute took %s, want 2m1s", d)
		}
	})
}

// TestSecrets looks for the keys in every text that a program may show.
func TestSecrets(t *testing.T) {
	echo := func() string {
		return fmt.Sprintf(`{"error":{"message":"wrong key: %s, header: %s"}}`, key, "other-secret-value")
	}
	for _, body := range []step{
		{status: 401, body: []string{echo()}},
		{status: 200, body: []string{"event: error\ndata: " + echo() + "\n\n"}},
		{status: 200, body: []string{"data: " + key + "\n\n"}},
		{},
	} {
		header := map[string]llm.Secret{"api-key": "other-secret-value"}
		url := "http://user:password-in-url@test.invalid/v1?api-key=query-secret"
		client := &http.Client{Transport: &server{steps: []step{body}}}
		oc := openai.Config{Model: "m", URL: url, Key: key, Header: header, HTTPClient: client, Retry: llm.Retry{Max: -1}}
		rc := oc
		rc.Protocol = openai.Responses
		ac := anthropic.Config{Model: "m", URL: url, Key: key, Header: header, HTTPClient: client, Retry: llm.Retry{Max: -1}}
		gc := gemini.Config{Model: "m", URL: url, Key: key, Header: header, HTTPClient: client, Retry: llm.Retry{Max: -1}}
		for _, m := range []llm.Model{openai.New(oc), openai.New(rc), anthropic.New(ac), gemini.New(gc)} {
			_, reply, err := ask(t.Context(), m)
			if err == nil {
				t.Fatal("no error")
			}
			var shown strings.Builder
			fmt.Fprintf(&shown, "%v %+v %#v %s %v %+v %v", err, err, err, m, m, m, m.(llm.Informer).Info())
			fmt.Fprintf(&shown, "%+v %#v %+v %#v", m, m, reply, errors.Unwrap(err))
			var h *llm.HTTPError
			if errors.As(err, &h) {
				shown.WriteString(h.Body)
			}
			log := slog.New(slog.NewJSONHandler(&shown, nil))
			log.Error("x", "err", err, "model", m, "key", oc.Key)
			for _, secret := range []string{key, "other-secret-value", "password-in-url", "query-secret"} {
				if strings.Contains(shown.String(), secret) {
					t.Errorf("%q is shown in %s", secret, shown.String())
				}
			}
		}
		oc.URL, ac.URL, gc.URL = "", "", ""
		raw, _ := json.Marshal([]any{oc.Key, oc.Header, ac.Key, ac.Header, gc.Key, gc.Header})
		shown := fmt.Sprintf("%v %+v %#v %s %q %x", oc, oc, oc.Key, oc.Key, oc.Key, oc.Key) + fmt.Sprintf("%v %+v", ac, ac) + fmt.Sprintf("%v %+v", gc, gc) + string(raw)
		if strings.Contains(shown, key) || strings.Contains(shown, "other-secret-value") {
			t.Errorf("a key is shown in %s", shown)
		}
	}
}
