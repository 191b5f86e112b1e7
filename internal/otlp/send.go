package otlp

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/internal/retryafter"
	"github.com/stonelayer/stone/internal/spans"
)

const (
	firstWait   = time.Second
	maxWait     = 30 * time.Second // between two tries, unless the collector sets it
	requestTime = 30 * time.Second
	maxReply    = 64 << 10 // bytes read of a response
)

// A sender sends spans in batches.
type sender struct {
	url      *url.URL
	header   http.Header
	patience time.Duration
	skipped  func(error)
	client   *http.Client

	head, tail string // of a request, around its spans
	batch      []byte // spans, with commas between them
	spans      int    // in the batch

	report    Report
	rejection string // the collector's reason for rejecting spans
}

func newSender(cfg Config) (*sender, error) {
	u, err := endpoint(cfg.URL)
	if err != nil {
		return nil, err
	}
	s := &sender{url: u, header: cfg.Header, patience: cmp.Or(cfg.Patience, time.Minute), skipped: cfg.Skipped, client: cfg.Client}
	if s.skipped == nil {
		s.skipped = func(error) {}
	}
	if s.client == nil {
		s.client = &http.Client{
			Timeout:       requestTime,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	var resource attributes
	resource.set(spans.ServiceName, text(cmp.Or(cfg.Service, "stone")))
	b, err := json.Marshal(resource)
	if err != nil {
		return nil, err
	}
	s.head = `{"resourceSpans":[{"resource":{"attributes":` + string(b) + `},"schemaUrl":"` + spans.SchemaURL +
		`","scopeSpans":[{"scope":{"name":"github.com/stonelayer/stone/internal/otlp"},"schemaUrl":"` + spans.SchemaURL + `","spans":[`
	s.tail = `]}]}]}`
	return s, nil
}

// compress returns the body of a request with the batch.
func (s *sender) compress() ([]byte, error) {
	var body bytes.Buffer
	z, err := gzip.NewWriterLevel(&body, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	for _, part := range [][]byte{[]byte(s.head), s.batch, []byte(s.tail)} {
		if _, err := z.Write(part); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return body.Bytes(), nil
}

// post sends a body until the collector has accepted it, and returns how many of its
// spans it rejected.
func (s *sender) post(ctx context.Context, body []byte) (rejected int, err error) {
	var waited time.Duration
	for try := 1; ; try++ {
		reply, err := s.once(ctx, body)
		if err != nil {
			return 0, err
		}
		if reply.status/100 == 2 {
			return s.taken(reply)
		}
		pause := retryafter.Pause(try, firstWait, maxWait, reply.retryAfter)
		if !reply.busy() {
			return 0, s.refused(reply, "")
		}
		if waited += pause; waited > s.patience {
			return 0, s.refused(reply, fmt.Sprintf("; to retry would take longer than %s", max(s.patience, 0)))
		}
		if err := retryafter.Sleep(ctx, pause); err != nil {
			return 0, err
		}
	}
}

type reply struct {
	status     int
	retryAfter time.Duration // 0 without a Retry-After
	body       []byte
}

// busy reports whether the same request may succeed later, by the protocol's list.
func (r reply) busy() bool {
	switch r.status {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return false
}

func (s *sender) once(ctx context.Context, body []byte) (reply, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url.String(), bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	for key, values := range s.header {
		req.Header[http.CanonicalHeaderKey(key)] = values
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Content-Encoding", "gzip")
	req.Header.Set("User-Agent", "stone-trace-export")
	res, err := s.client.Do(req)
	if err != nil {
		return reply{}, s.unreachable(ctx, err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxReply))
	if err != nil {
		return reply{}, s.unreachable(ctx, err)
	}
	return reply{res.StatusCode, retryafter.Read(res.Header, time.Now()), answer}, nil
}

func (s *sender) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err // outer would show the whole URL, with its secret parts
	}
	return fmt.Errorf("the collector at %s cannot be reached: %w", plain(s.url), err)
}

// taken reads the response to a batch that was accepted, completely or in part.
func (s *sender) taken(r reply) (rejected int, err error) {
	var answer struct {
		PartialSuccess struct {
			RejectedSpans json.RawMessage `json:"rejectedSpans"` // a number, or a string of one
			ErrorMessage  string          `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	if len(bytes.TrimSpace(r.body)) == 0 {
		return 0, nil
	}
	if err := json.Unmarshal(r.body, &answer); err != nil {
		return 0, fmt.Errorf("%s answers with status %d, but not as a collector: is it the OTLP/HTTP port (4318)?", plain(s.url), r.status)
	}
	partial := answer.PartialSuccess
	if len(partial.RejectedSpans) > 0 {
		rejected, err = strconv.Atoi(strings.Trim(string(partial.RejectedSpans), `"`))
		if err != nil {
			return 0, fmt.Errorf("the collector's count of rejected spans cannot be read: %s", s.quiet(string(partial.RejectedSpans)))
		}
	}
	switch message := s.quiet(partial.ErrorMessage); {
	case rejected > 0:
		s.rejection = cmp.Or(message, s.rejection)
	case message != "":
		s.skipped(fmt.Errorf("the collector warns: %s", message))
	}
	return rejected, nil
}

// refused returns the error of a batch that the collector did not accept.
func (s *sender) refused(r reply, more string) error {
	var answer struct {
		Message string `json:"message"`
	}
	message := string(r.body)
	if json.Unmarshal(r.body, &answer) == nil {
		message = answer.Message
	}
	if message = s.quiet(message); message != "" {
		message = ": " + message
	}
	return fmt.Errorf("the collector at %s answers with status %d %s%s%s", plain(s.url), r.status,
		http.StatusText(r.status), message, more)
}

// quiet makes a message of the collector fit for an error: one short line, without the
// secrets in our headers and in its address.
func (s *sender) quiet(message string) string {
	secrets := new(redact.Set)
	for _, values := range s.header {
		secrets.NoteHeader(values...)
	}
	secrets.NoteURL(s.url.String())
	message = secrets.CleanCut(message)
	message = strings.Join(strings.Fields(message), " ")
	if runes := []rune(message); len(runes) > 200 {
		message = string(runes[:200]) + "…"
	}
	return message
}
