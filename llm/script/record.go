package script

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/internal/transport"
)

// exchange is one line of a recording: a request and its answer.
type exchange struct {
	Method string            `json:"method"`
	Path   string            `json:"path"`
	Body   json.RawMessage   `json:"body"`
	Status int               `json:"status"`
	Header map[string]string `json:"header,omitempty"`
	Pieces []piece           `json:"pieces"`
	// Error is the reason why the answer ended, or "" for a normal end.
	Error string `json:"error,omitempty"`
}

// piece is a part of an answer that arrived in a single read.
type piece struct {
	After int64  `json:"ms"` // time since the request was sent, in milliseconds
	Text  string `json:"text,omitempty"`
	Bytes []byte `json:"bytes,omitempty"` // replaces Text if the piece is not valid UTF-8
}

// keptHeaders are the response headers that models read.
var keptHeaders = []string{"Content-Type", "Retry-After", "X-Request-Id", "Request-Id"}

// Recorder is an http.RoundTripper that records each exchange. It is safe for concurrent
// use.
type Recorder struct {
	next http.RoundTripper
	mu   sync.Mutex
	file *os.File
	err  error // the first write error
}

// Record creates or truncates the file, and returns a Recorder that sends requests through next, or through http.DefaultTransport
// if next is nil.
func Record(name string, next http.RoundTripper) (*Recorder, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	if next == nil {
		next = http.DefaultTransport
	}
	return &Recorder{next: next, file: file}, nil
}

// Client returns an HTTP client that uses the Recorder as its transport.
func (r *Recorder) Client() *http.Client { return &http.Client{Transport: r} }

// Close closes the file and returns the first error that occurred while writing it. Before calling Close, read all answers
// completely or close them.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.err, r.file.Close())
}

// Over returns a transport that records to the same file as r, but sends requests through next.
func (r *Recorder) Over(next http.RoundTripper) http.RoundTripper { return over{r, next} }

type over struct {
	recorder *Recorder
	next     http.RoundTripper
}

// RoundTrip sends a request.
func (o over) RoundTrip(req *http.Request) (*http.Response, error) {
	return o.recorder.send(req, o.next)
}

// RoundTrip sends a request.
func (r *Recorder) RoundTrip(req *http.Request) (*http.Response, error) { return r.send(req, r.next) }

func (r *Recorder) send(req *http.Request, next http.RoundTripper) (*http.Response, error) {
	body, err := readBody(req)
	if err != nil {
		return nil, err
	}
	sent := req.Clone(req.Context())
	sent.Body = io.NopCloser(bytes.NewReader(body))
	secrets := secretsIn(req)
	x := &exchange{Method: req.Method, Path: req.URL.Path, Body: canonical([]byte(secrets.Clean(string(transport.Match(req.Context(), body)))))}
	begin := time.Now()
	resp, err := next.RoundTrip(sent)
	if err != nil {
		x.Error = "no answer"
		r.write(x)
		return nil, err
	}
	x.Status, x.Header = resp.StatusCode, map[string]string{}
	for _, name := range keptHeaders {
		if v := resp.Header.Get(name); v != "" {
			x.Header[name] = secrets.Clean(v)
		}
	}
	resp.Body = &tape{ReadCloser: resp.Body, recorder: r, exchange: x, secrets: secrets, begin: begin}
	return resp, nil
}

func (r *Recorder) write(x *exchange) {
	line, err := json.Marshal(x)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		_, err = r.file.Write(append(line, '\n'))
	}
	if err != nil && r.err == nil {
		r.err = fmt.Errorf("replay: an exchange was not recorded: %w", err)
	}
}

// tape records a body while it is read.
type tape struct {
	io.ReadCloser
	recorder *Recorder
	exchange *exchange
	secrets  *redact.Set
	begin    time.Time
	once     sync.Once
}

func (t *tape) Read(p []byte) (int, error) {
	n, err := t.ReadCloser.Read(p)
	if n > 0 {
		t.exchange.Pieces = append(t.exchange.Pieces, newPiece(time.Since(t.begin), p[:n]))
	}
	if err != nil {
		if err != io.EOF {
			t.exchange.Error = "cut"
		}
		t.finish()
	}
	return n, err
}

func (t *tape) Close() error {
	t.finish()
	return t.ReadCloser.Close()
}

func (t *tape) finish() {
	t.once.Do(func() {
		x := t.exchange
		var all []byte
		for _, p := range x.Pieces {
			all = append(all, p.data()...)
		}
		// A server may repeat the key in its answer, where it may be cut anywhere. Such an answer becomes one piece.
		if cleaned := t.secrets.Clean(string(all)); cleaned != string(all) {
			x.Pieces = []piece{newPiece(time.Since(t.begin), []byte(cleaned))}
		}
		t.recorder.write(x)
	})
}

// secretsIn returns the secrets in the headers and the URL of a request.
func secretsIn(req *http.Request) *redact.Set {
	s := new(redact.Set)
	for name, values := range req.Header {
		if name != "Content-Type" && name != "Accept" && name != "User-Agent" {
			s.NoteHeader(values...)
		}
	}
	s.NoteURL(req.URL.String())
	s.Join(redact.From(req.Context()))
	return s
}

func readBody(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	defer req.Body.Close()
	return io.ReadAll(req.Body)
}

// canonical returns the body as JSON with sorted keys, or as a JSON string if it is not
// JSON.
func canonical(body []byte) json.RawMessage {
	var v any
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	if d.Decode(&v) != nil {
		v = string(body)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null") // cannot fail, because the value has been decoded from JSON
	}
	return raw
}
