package wire

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stonelayer/stone/internal/limit"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/internal/retryafter"
	"github.com/stonelayer/stone/internal/transport"
	"github.com/stonelayer/stone/kind"
	"github.com/stonelayer/stone/llm"
)

const (
	pieceSize    = 1 << 10
	maxErrorBody = 64 << 10
)

// question is either the original request or a request for the missing part of its answer.
type question struct {
	method string
	url    *url.URL
	body   []byte
	tokens int  // estimated number of tokens
	answer bool // the request calls a model, so an empty answer is retried once
}

// exchange is one request and its answer. A separate goroutine sends and reads, so that the consumer can also wait for timeouts
// and cancellation.
type exchange struct {
	head    chan head
	pieces  chan []byte // closed at the end of the body; a piece is valid until the next one
	err     error       // reason why the body ended, or nil; set before pieces is closed
	done    chan struct{}
	cancel  context.CancelCauseFunc
	buffers *[2][pieceSize]byte // one buffer is filled while the other is consumed
}

// head is the beginning of an answer.
type head struct {
	status    int
	mediaType string
	requestID string
	quota     limit.Answer // the server's limits
	err       error
}

var buffers = sync.Pool{New: func() any { return new([2][pieceSize]byte) }}

func (c *Client) begin(ctx context.Context, q question) *exchange {
	ctx, cancel := context.WithCancelCause(ctx)
	x := &exchange{
		head:   make(chan head, 1),
		pieces: make(chan []byte),
		done:   make(chan struct{}),
		cancel: cancel,
	}
	go x.run(ctx, c, q)
	return x
}

// end stops the exchange and waits for its goroutines. After a normal end, it gives the server a moment to finish the body, so
// that the connection can be reused.
func (x *exchange) end(regular bool) {
	if regular {
		select {
		case <-x.pieces:
		case <-time.After(25 * time.Millisecond):
		}
	}
	x.cancel(nil)
	<-x.done
	if x.buffers != nil {
		buffers.Put(x.buffers) // only after the consumer has released the last piece
	}
}

// run sends the request. A separate goroutine reads the answer: it waits most of the time and needs only a small stack, whereas
// sending needs a large stack.
func (x *exchange) run(ctx context.Context, c *Client, q question) {
	answer, h := c.open(ctx, q)
	x.head <- h
	if answer == nil {
		x.finish()
		return
	}
	go x.pass(ctx, answer)
}

// finish records the end of the answer.
func (x *exchange) finish() {
	close(x.pieces)
	close(x.done)
}

// open sends the request and returns the body of its answer, or nil after an error.
func (c *Client) open(ctx context.Context, q question) (io.ReadCloser, head) {
	resp, err := c.send(ctx, q)
	if err != nil {
		return nil, head{err: err}
	}
	h := head{status: resp.StatusCode, requestID: c.clean(ctx, requestID(resp.Header)), quota: quotaOf(resp.Header, time.Now())}
	h.mediaType, _, _ = mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode/100 != 2 {
		h.err = c.httpError(ctx, resp, h.requestID)
		resp.Body.Close()
		return nil, h
	}
	return resp.Body, h
}

// pass sends the answer to the consumer, piece by piece.
func (x *exchange) pass(ctx context.Context, answer io.ReadCloser) {
	defer x.finish()
	defer answer.Close()
	x.buffers = buffers.Get().(*[2][pieceSize]byte)
	for i := 0; ; i ^= 1 {
		n, err := answer.Read(x.buffers[i][:])
		if n > 0 {
			select {
			case x.pieces <- x.buffers[i][:n]:
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			if err != io.EOF {
				x.err = err
			}
			return
		}
	}
}

func (c *Client) send(ctx context.Context, q question) (*http.Response, error) {
	return c.keyed(ctx, func(key llm.Secret) (*http.Response, error) { return c.try(ctx, q, key) })
}

// try sends the request once. If key is not empty, the request contains the key.
func (c *Client) try(ctx context.Context, q question, key llm.Secret) (*http.Response, error) {
	ctx = context.WithValue(ctx, connectLimit{}, c.timeouts.Connect)
	req, err := http.NewRequestWithContext(ctx, q.method, q.url.String(), bytes.NewReader(q.body))
	if err != nil {
		return nil, err
	}
	req.Header = c.header.Clone()
	if key != "" {
		req.Header.Set(c.carry[0], c.carry[1]+string(key))
	}
	if c.edit != nil {
		if err := c.edit(req); err != nil {
			return nil, fmt.Errorf("llm: Edit: %w", err)
		}
	}
	resp, err := transport.Client(ctx, c.http).Do(req)
	if err == nil {
		return resp, nil
	}
	// The error of http.Client quotes the URL, including any secrets in it.
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	if errors.Is(err, kind.Waiting) { // the transport of a run is holding the request back
		return nil, err
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "dial" && e.Timeout() {
		err = &llm.TimeoutError{Phase: "connect", Limit: c.timeouts.Connect}
	}
	return nil, &llm.ConnectError{URL: c.Endpoint(), Err: err}
}

func (c *Client) httpError(ctx context.Context, resp *http.Response, id string) error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody)) // a partial body suffices
	// The body may have been cut within a secret.
	text := redact.From(ctx).CleanCut(c.keys.secrets().CleanCut(c.own.CleanCut(string(body))))
	return &llm.HTTPError{
		Status:     resp.StatusCode,
		Body:       strings.ToValidUTF8(text, "\uFFFD"),
		RequestID:  id,
		RetryAfter: cmp.Or(retryafter.Read(resp.Header, time.Now()), retryafter.ReadBody(body)),
		Final:      resp.Header.Get("X-Should-Retry") == "false" || exhausted(body),
	}
}

// exhausted reports whether an error in OpenAI's format says that the account has no credit left, in which case waiting does not
// help.
func exhausted(body []byte) bool {
	var e struct {
		Error struct{ Code, Type string }
	}
	return json.Unmarshal(body, &e) == nil && slices.Contains([]string{e.Error.Code, e.Error.Type}, "insufficient_quota")
}

// requestID returns the provider's ID of the request, from one of the headers that providers use for it, or "" if there is none.
func requestID(h http.Header) string {
	for _, name := range []string{"X-Request-Id", "Request-Id", "Apim-Request-Id", "X-Amzn-Requestid", "X-Trace-Id", "Cf-Ray"} {
		if id := h.Get(name); id != "" {
			return id
		}
	}
	return ""
}
