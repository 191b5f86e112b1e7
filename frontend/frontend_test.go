package frontend_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/frontend"
	"github.com/stonelayer/stone/kind"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	number = dag.NewType[int]("number")
	reply  = dag.NewType[stone.Answer]("reply")
	whole  = dag.NewType[string]("whole")
)

// several asks n questions at once, "0" to "n-1", and joins the answers.
func several(n int, opts ...stone.AskOption) stone.Ashlar {
	return stone.Seq("s",
		stone.Map("each", dag.ReaderFunc(func(dag.DAG) ([]int, error) {
			var all []int
			for i := range n {
				all = append(all, i)
			}
			return all, nil
		}), number, stone.Ask("ask", number, reply, func(n int) string { return fmt.Sprint(n) }, opts...)),
		stone.Reduce(stone.Func("join", dag.All(reply), whole, func(_ context.Context, all []stone.Answer) (string, error) {
			var parts []string
			for _, a := range all {
				parts = append(parts, a.Response)
			}
			return strings.Join(parts, ","), nil
		})))
}

func TestChannel(t *testing.T) {
	questions := frontend.NewChannel(0)
	go func() {
		var open []frontend.Asked
		for range 5 {
			open = append(open, <-questions)
		}
		for i := range open { // backwards
			q := open[len(open)-1-i]
			if q.Text == "3" {
				q.Cancel()
			}
			q.Answer("to "+q.Text, "ada")
			q.Answer("too late", "")
		}
	}()
	res, err := stone.Run(t.Context(), several(5), stone.Config{Frontend: questions})
	if err != nil || res.Node.Text() != "to 0,to 1,to 2,,to 4" {
		t.Errorf("%q, %v", res.Node.Text(), err)
	}
}

func TestChannelIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		questions := frontend.NewChannel(1)
		go func() {
			synctest.Wait()
			cancel()
		}()
		_, err := stone.Run(ctx, several(3), stone.Config{Frontend: questions})
		var failure *stone.Failure
		if !errors.As(err, &failure) || failure.Kind != kind.Canceled {
			t.Errorf("error %v, want kind canceled", err)
		}
		asked := <-questions
		<-asked.Done()
		asked.Answer("to nobody", "")
	})
}

// people receives questions and answers them.
type people struct {
	t      *testing.T
	client *http.Client
	answer func(q frontend.Posted) (now string, later string)
	group  sync.WaitGroup
	got    atomic.Int64
}

func (p *people) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.got.Add(1)
	var q frontend.Posted
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		p.t.Error(err)
	}
	now, later := p.answer(q)
	if later != "" {
		p.group.Go(func() {
			res, err := p.client.Post(q.Answer, "application/json", strings.NewReader(fmt.Sprintf(`{"response":%q}`, later)))
			if err != nil {
				p.t.Error(err)
				return
			}
			res.Body.Close()
		})
	}
	fmt.Fprint(w, now)
}

// serve starts both servers.
func serve(t *testing.T, answer func(frontend.Posted) (string, string)) (*frontend.HTTP, *people) {
	h := &frontend.HTTP{}
	back := httptest.NewServer(h)
	p := &people{t: t, client: back.Client(), answer: answer}
	front := httptest.NewServer(p)
	h.URL, h.Base, h.Client = front.URL, back.URL, front.Client()
	t.Cleanup(func() {
		p.group.Wait()
		front.Close()
		back.Close()
	})
	return h, p
}

func TestHTTP(t *testing.T) {
	h, _ := serve(t, func(q frontend.Posted) (string, string) {
		if q.Text == "1" {
			return `{"response":"now"}`, ""
		}
		return "thank you", "later " + q.Text
	})
	var runs sync.WaitGroup
	for i := range 2 {
		runs.Go(func() {
			res, err := stone.Run(t.Context(), several(3), stone.Config{RunID: fmt.Sprint(i), Frontend: h})
			if err != nil || res.Node.Text() != "later 0,now,later 2" {
				t.Errorf("run %d: %q, %v", i, res.Node.Text(), err)
			}
		})
	}
	runs.Wait()
	if open := h.Open(); len(open) != 0 {
		t.Errorf("still open: %v", open)
	}
}

func TestHTTPRefusedAnswerIsAskedAgain(t *testing.T) {
	h, p := serve(t, func(q frontend.Posted) (string, string) {
		if q.Problem == "" {
			return "", "maybe"
		}
		return "", q.Choices[0]
	})
	res, err := stone.Run(t.Context(), several(1, stone.Choices("yes", "no")), stone.Config{Frontend: h})
	if err != nil || res.Node.Text() != "yes" || p.got.Load() != 2 {
		t.Errorf("%q after %d questions, %v", res.Node.Text(), p.got.Load(), err)
	}
}

func TestHTTPErrors(t *testing.T) {
	tests := []struct {
		status int
		tries  int64 // how often it is posted
		want   string
	}{
		{http.StatusForbidden, 1, "status 403"},
		{http.StatusBadGateway, 2, "tried 2 times: status 502"},
	}
	for _, tt := range tests {
		var got atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			got.Add(1)
			w.WriteHeader(tt.status)
		}))
		h := &frontend.HTTP{URL: server.URL + "/?key=s3cret", Header: map[string]string{"Authorization": "s3cret"}, Client: server.Client(), Tries: 2}
		_, err := stone.Run(t.Context(), several(1), stone.Config{Frontend: h})
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "s3cret") || got.Load() != tt.tries {
			t.Errorf("status %d: posted %d times, error %v", tt.status, got.Load(), err)
		}
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("asking", "frontend", h)
		if shown := fmt.Sprintf("%v %+v %#v %s %+v", h, h, h, h, stone.Config{Frontend: h}) + log.String(); strings.Contains(shown, "s3cret") {
			t.Errorf("the key is shown in %s", shown)
		}
		server.Close()
		if _, err := h.Ask(t.Context(), ask.Question{Name: "q"}); err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("a server that is gone: %v", err)
		}
	}
}

// TestHTTPRedirect checks that no other host gets the headers.
func TestHTTPRedirect(t *testing.T) {
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	h := &frontend.HTTP{URL: server.URL, Header: map[string]string{"X-Api-Key": "s3cret"}}
	if _, err := h.Ask(t.Context(), ask.Question{Name: "q"}); err == nil || !strings.Contains(err.Error(), "status 307") || elsewhere.Load() != 0 {
		t.Errorf("error %v, and %d requests elsewhere; want status 307, and none", err, elsewhere.Load())
	}
}

func TestHTTPHandler(t *testing.T) {
	h := &frontend.HTTP{Base: "/answers/"}
	ctx, cancel := context.WithCancel(t.Context())
	answers := make(chan string)
	go func() {
		response, err := h.Ask(ctx, ask.Question{Name: "q", Text: "Well?"})
		answers <- fmt.Sprint(response.Response, " by ", response.By, " ", err)
	}()
	for len(h.Open()) == 0 { // the question is on its way
		runtime.Gosched()
	}
	key := strings.TrimPrefix(h.Open()[0].Answer, "/answers")
	tests := []struct {
		method, path, body string
		status             int
		want               string
	}{
		{"GET", "/", "", 403, "Bearer"},
		{"GET", "/?run=", "", 403, "Bearer"},
		{"PUT", "/", "", 405, "POST an answer"},
		{"POST", "/guess", `{"response":"x"}`, 410, "no such question"},
		{"POST", key, `yes`, 400, `{"response":"yes","by":"ada"}`},
		{"POST", key, `{}`, 400, `{"response":"yes","by":"ada"}`},
		{"POST", key, `{"response":"yes","by":"` + strings.Repeat("a", 257) + `"}`, 400, "at most 256"},
		{"POST", key, `{"response":"yes","by":"ada"}`, 204, ""},
		{"POST", key, `{"response":"no"}`, 410, "already answered"},
		{"POST", key + "x", `{"response":"no"}`, 410, "no such question"},
	}
	for _, tt := range tests {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(tt.method, tt.path, strings.NewReader(tt.body)))
		body, err := io.ReadAll(w.Body)
		if err != nil || w.Code != tt.status || !strings.Contains(string(body), tt.want) || strings.Contains(string(body), strings.Trim(key, "/")) {
			t.Errorf("%s %s: status %d, %s", tt.method, tt.body, w.Code, body)
		}
	}
	if got := <-answers; got != "yes by ada <nil>" {
		t.Errorf("answer %q", got)
	}
	cancel()
	if _, err := h.Ask(ctx, ask.Question{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled question: %v", err)
	}
}

// TestHTTPList checks that a run's questions are listed only with its token.
func TestHTTPList(t *testing.T) {
	h := &frontend.HTTP{}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for _, run := range []string{"a", "b"} {
		group.Go(func() { _, _ = h.Ask(ctx, ask.Question{Name: "q", RunID: run, Path: "p", Text: "of " + run}) })
	}
	for len(h.Open()) < 2 {
		runtime.Gosched()
	}
	get := func(run, token string) string {
		r := httptest.NewRequest("GET", "/?run="+run, nil)
		if token != "" {
			r.Header.Set("Authorization", "Bearer "+token)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return fmt.Sprint(w.Code, " ", w.Body)
	}
	if got := get("a", h.Token("a")); !strings.Contains(got, "of a") || strings.Contains(got, "of b") || !strings.HasPrefix(got, "200") {
		t.Errorf("with the token: %s", got)
	}
	for _, token := range []string{"", "guess", h.Token("b"), (&frontend.HTTP{}).Token("a")} {
		if got := get("a", token); !strings.HasPrefix(got, "403") || strings.Contains(got, "of a") {
			t.Errorf("with the token %q: %s", token, got)
		}
	}
	cancel()
	group.Wait()
}

// A key that can be guessed serves nothing: neither the list of a run, nor an answer.
func TestHTTPShortKey(t *testing.T) {
	h := &frontend.HTTP{Key: []byte("guess")}
	if _, err := h.Ask(t.Context(), ask.Question{}); err == nil || !strings.Contains(err.Error(), "want 16 or more") {
		t.Errorf("Ask returned %v", err)
	}
	for _, r := range []*http.Request{httptest.NewRequest(http.MethodGet, "/?run=a", nil), httptest.NewRequest(http.MethodPost, "/x", strings.NewReader("yes"))} {
		r.Header.Set("Authorization", "Bearer "+h.Token("a"))
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "want 16 or more") {
			t.Errorf("%s %s: %d %s", r.Method, r.URL, w.Code, w.Body)
		}
	}
}

// TestHTTPLate checks that an address outlives the process that made it, with its key.
func TestHTTPLate(t *testing.T) {
	key := []byte("a key of the store")
	ctx, cancel := context.WithCancel(t.Context())
	first := &frontend.HTTP{Key: key}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = first.Ask(ctx, ask.Question{Name: "q", RunID: "r", Path: "a/b[2]/c"})
	}()
	for len(first.Open()) == 0 {
		runtime.Gosched()
	}
	address := first.Open()[0].Answer
	cancel()
	<-ended

	var late string
	for _, tt := range []struct {
		h    *frontend.HTTP
		path string
		want int
	}{
		{&frontend.HTTP{Key: key}, address, 410},
		{&frontend.HTTP{}, address, 410},
		{&frontend.HTTP{Key: []byte("another key, as long")}, address, 410},
		{&frontend.HTTP{Key: key}, strings.Replace(address, "/", "/x", 1), 410},
		{&frontend.HTTP{Key: key}, address, 204},
	} {
		if tt.want == 204 || tt.path != address {
			tt.h.Late = func(_ context.Context, run, path string, a ask.Answer) error {
				late = run + " " + path + " " + a.Response + " by " + a.By
				return nil
			}
		}
		w := httptest.NewRecorder()
		tt.h.ServeHTTP(w, httptest.NewRequest("POST", tt.path, strings.NewReader(`{"response":"yes","by":"ada"}`)))
		if w.Code != tt.want {
			t.Errorf("%s: %d %s", tt.path, w.Code, w.Body)
		}
	}
	if late != "r a/b[2]/c yes by ada" {
		t.Errorf("the late answer is %q", late)
	}
	if _, err := (&frontend.HTTP{Key: []byte("short")}).Ask(t.Context(), ask.Question{}); err == nil {
		t.Error("a key that can be guessed")
	}
}

// TestHTTPSlowBody checks that a client that sends an answer byte by byte is disconnected.
func TestHTTPSlowBody(t *testing.T) {
	deadlines := 0
	w := &deadlined{ResponseRecorder: httptest.NewRecorder(), set: &deadlines}
	h := &frontend.HTTP{Key: []byte("a key of the store")}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = h.Ask(ctx, ask.Question{Name: "q"})
	}()
	for len(h.Open()) == 0 {
		runtime.Gosched()
	}
	h.ServeHTTP(w, httptest.NewRequest("POST", h.Open()[0].Answer, strings.NewReader(`{"response":"yes"}`)))
	cancel()
	<-ended
	if deadlines != 1 || w.Code != 204 {
		t.Errorf("%d read deadlines, status %d", deadlines, w.Code)
	}
}

type deadlined struct {
	*httptest.ResponseRecorder
	set *int
}

func (d *deadlined) SetReadDeadline(t time.Time) error {
	if until := time.Until(t); until > 0 && until < time.Minute {
		*d.set++
	}
	return nil
}
