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
	"github.com/stonelayer/stone/x/internal/spans"
)

const (
	firstWait   = time.Second
	maxWait     = 30 * time.Second // maximum pause between attempts, unless the collector specifies one
	requestTime = 30 * time.Second
	maxReply    = 64 << 10 // maximum number of bytes to read of a response
)

// A sender sends spans in batches.
type sender struct {
	url      *url.URL
	header   http.Header
	patience time.Duration
	skipped  func(error)
	client   *http.Client
	json     bool
	resource attributes
	messages bool
	waiting  func(context.Context, time.Duration) error // waits between attempts
	stubborn bool                                       // also retry before the collector has accepted anything

	batch []*span
	size  int // approximate size of the batch in bytes

	report    Report
	rejection string // the collector's reason for rejecting spans
}

func newSender(cfg Config) (*sender, error) {
	u, err := endpoint(cfg.URL, cfg.Exact)
	if err != nil {
		return nil, err
	}
	s := &sender{url: u, header: cfg.Header, patience: cmp.Or(cfg.Patience, time.Minute), skipped: cfg.Skipped, client: cfg.Client, json: cfg.JSON, messages: cfg.Messages, waiting: retryafter.Sleep}
	if s.skipped == nil {
		s.skipped = func(error) {}
	}
	if s.client == nil {
		s.client = &http.Client{
			Timeout:       requestTime,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	s.resource.set(spans.ServiceName, text(cmp.Or(cfg.Service, "stone")))
	return s, nil
}

// body returns the body of a request that contains the spans.
func (s *sender) body(all []*span) ([]byte, error) {
	var body bytes.Buffer
	z, err := gzip.NewWriterLevel(&body, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	data := request(s.resource, all)
	if s.json {
		if data, err = requestJSON(s.resource, all); err != nil {
			return nil, err
		}
	}
	if _, err := z.Write(data); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return body.Bytes(), nil
}

// send sends all spans, in several requests if necessary: it halves batches that are too large. It switches to JSON if the
// collector does not accept protobuf.
func (s *sender) send(ctx context.Context, all []*span) error {
	body, err := s.body(all)
	if err != nil {
		return err
	}
	reply, err := s.post(ctx, body)
	if err != nil {
		return err
	}
	rejected := 0
	switch half := len(all) / 2; {
	case reply.status == http.StatusUnsupportedMediaType && !s.json:
		s.json = true
		return s.send(ctx, all)
	case reply.status == http.StatusRequestEntityTooLarge && half > 0:
		if err := s.send(ctx, all[:half]); err != nil {
			return err
		}
		return s.send(ctx, all[half:])
	case reply.status == http.StatusRequestEntityTooLarge:
		rejected, s.rejection = 1, fmt.Sprintf("span %q is too large", all[0].Name)
	case reply.status/100 != 2:
		return s.refused(reply, "")
	default:
		if rejected, err = s.taken(reply); err != nil {
			return err
		}
	}
	rejected = min(max(rejected, 0), len(all))
	s.report.Sent += len(all) - rejected
	s.report.Rejected += rejected
	return nil
}

// post sends a body. It retries while the collector is busy and after a lost connection. If the connection fails before the first
// response of the collector, post returns an error at once, because the collector is probably not running.
func (s *sender) post(ctx context.Context, body []byte) (reply, error) {
	var waited time.Duration
	for try := 1; ; try++ {
		reply, err := s.once(ctx, body)
		switch {
		case err != nil && (ctx.Err() != nil || !s.stubborn):
			return reply, err
		case err == nil:
			s.stubborn = true
			if !reply.busy() {
				return reply, nil
			}
			err = s.refused(reply, fmt.Sprintf("; to retry would take longer than %s", max(s.patience, 0)))
		}
		pause := retryafter.Pause(try, firstWait, maxWait, reply.retryAfter)
		if waited += pause; waited > s.patience {
			return reply, err
		}
		if over := s.waiting(ctx, pause); over != nil {
			if ctx.Err() == nil {
				over = err
			}
			return reply, over
		}
	}
}

type reply struct {
	status     int
	retryAfter time.Duration // 0 if there is no Retry-After
	protobuf   bool
	body       []byte
}

// busy reports whether, according to the protocol, a request with this status may succeed later.
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
	req.Header.Set("Content-Type", "application/x-protobuf")
	if s.json {
		req.Header.Set("Content-Type", "application/json")
	}
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
	return reply{res.StatusCode, retryafter.Read(res.Header, time.Now()), strings.Contains(res.Header.Get("Content-Type"), "protobuf"), answer}, nil
}

func (s *sender) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var outer *url.Error
	if errors.As(err, &outer) {
		err = outer.Err // outer would show the whole URL, including its secret parts
	}
	return fmt.Errorf("the collector at %s cannot be reached: %w", plain(s.url), err)
}

// taken parses the response to a request whose spans were accepted completely or partly.
func (s *sender) taken(r reply) (rejected int, err error) {
	var answer struct {
		PartialSuccess struct {
			RejectedSpans json.RawMessage `json:"rejectedSpans"` // a number, possibly as a string
			ErrorMessage  string          `json:"errorMessage"`
		} `json:"partialSuccess"`
	}
	message := ""
	switch {
	case r.protobuf:
		if rejected, message, err = readResponse(r.body); err != nil {
			return 0, fmt.Errorf("the response of the collector at %s cannot be read: %w", plain(s.url), err)
		}
	case len(bytes.TrimSpace(r.body)) == 0:
		return 0, nil
	case json.Unmarshal(r.body, &answer) != nil:
		return 0, fmt.Errorf("%s answered with status %d, but not like a collector: is this the OTLP/HTTP port (4318)?", plain(s.url), r.status)
	default:
		message = answer.PartialSuccess.ErrorMessage
		if count := answer.PartialSuccess.RejectedSpans; len(count) > 0 && string(count) != "null" {
			rejected, err = strconv.Atoi(strings.Trim(string(count), `"`))
			if err != nil {
				return 0, fmt.Errorf("the collector's count of rejected spans cannot be read: %s", s.quiet(string(count)))
			}
		}
	}
	switch message := s.quiet(message); {
	case rejected > 0:
		s.rejection = cmp.Or(message, s.rejection)
	case message != "":
		s.skipped(fmt.Errorf("the collector warns: %s", message))
	}
	return rejected, nil
}

// refused returns the error that reports that the collector did not accept a batch.
func (s *sender) refused(r reply, more string) error {
	var answer struct {
		Message string `json:"message"`
	}
	message := string(r.body)
	if r.protobuf {
		message = statusMessage(r.body)
	} else if json.Unmarshal(r.body, &answer) == nil {
		message = answer.Message
	}
	if message = s.quiet(message); message != "" {
		message = ": " + message
	}
	return fmt.Errorf("the collector at %s answered with status %d %s%s%s", plain(s.url), r.status,
		http.StatusText(r.status), message, more)
}

// quiet makes a collector's message suitable for an error: it becomes one short line, without the secrets in the headers and the
// URL.
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
