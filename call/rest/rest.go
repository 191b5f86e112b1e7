package rest

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/internal/retryafter"
	"github.com/stonelayer/stone/internal/transport"
)

const (
	// accepted is the Accept header. It prefers complete answers, for servers that can choose.
	accepted     = "application/json, application/edn, application/x-ndjson;q=0.9, text/event-stream;q=0.9"
	defaultBody  = 8 << 20
	maxRedirects = 5
	maxErrorText = 500
)

// New returns a capability of kind http, which sends requests to the server of the configured URL. Its id defaults to the host.
// It needs the effect net.
func New(m call.Metadata, c Config) call.Capability {
	m = m.Needing(effect.Net)
	m.Kind = cmp.Or(m.Kind, "http")
	if m.ID == "" {
		m.ID = "http"
		if u, err := url.Parse(c.URL); err == nil && u.Hostname() != "" {
			m.ID = u.Hostname()
		}
	}
	invalid := c.Check()
	return call.Capability{Metadata: m, Invoke: func(ctx context.Context, req *call.Request) (*call.Reply, error) {
		if invalid != nil {
			return nil, unavailable(invalid)
		}
		return c.invoke(ctx, req)
	}}
}

func unavailable(err error) *call.Error {
	return &call.Error{Type: reasons.Unavailable, Message: err.Error(), Cause: err}
}

func (c Config) invoke(ctx context.Context, req *call.Request) (*call.Reply, error) {
	envelope, err := json.Marshal(*req)
	if err != nil {
		return nil, &call.Error{Type: reasons.InvalidRequest, Message: "the request has no JSON: " + err.Error(), Cause: err}
	}
	asked, err := json.Marshal(call.Request{Intent: req.Intent, Requires: req.Requires, Input: req.Input, Context: req.Context, Constraints: req.Constraints, Done: req.Done})
	if err != nil {
		return nil, unavailable(err) // the error becomes part of the envelope
	}
	r, err := http.NewRequestWithContext(transport.Matched(ctx, asked), http.MethodPost, c.URL, bytes.NewReader(envelope))
	if err != nil {
		return nil, unavailable(errors.New("the request cannot be created")) // the cause would show the URL
	}
	header, own := http.Header{}, new(redact.Set)
	clean := func(text string) string { return redact.From(ctx).Text(own.Text(text)) }
	for name, value := range c.Header {
		v, err := value.read()
		if err != nil {
			return nil, unavailable(fmt.Errorf("header %s: %w", name, err))
		}
		header.Set(name, string(v))
		if value.Text == "" {
			own.NoteHeader(string(v))
		}
	}
	redact.From(ctx).Join(own)
	r.Header = header.Clone()
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", accepted)
	if req.Key != "" {
		r.Header.Set("Idempotency-Key", req.Key)
	}
	resp, err := transport.Client(ctx, c.client(header)).Do(r)
	if err != nil {
		return nil, c.failure(ctx, err)
	}
	defer resp.Body.Close()
	limit := cmp.Or(c.MaxBody, defaultBody)
	body, tooLong, err := read(resp, int64(limit), req.Voice)
	body = []byte(clean(string(body))) // errors may quote parts of the body
	switch {
	case err != nil:
		return nil, c.failure(ctx, err)
	case tooLong:
		return nil, &call.Error{Type: reasons.SchemaInvalid, Message: fmt.Sprintf("the response of the server %s has more than %d bytes", r.URL.Host, limit)}
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return nil, refused(resp, body)
	}
	return call.ReadOutput(body)
}

// client returns a copy of the configured client that follows redirects only to servers in scope or, if the scope lists none, to
// the server of the URL.
func (c Config) client(secret http.Header) *http.Client {
	client := &http.Client{}
	if c.Client != nil {
		*client = *c.Client
	}
	client.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return fmt.Errorf("more than %d redirects", maxRedirects)
		}
		if r.Method != http.MethodPost {
			return errors.New("the redirect changes the request method")
		}
		if err := c.Scope.Net.Follow(via[0].URL, r.URL); err != nil {
			return err
		}
		r.Header.Del("Referer") // the header contains the URL, which may contain secrets
		if first := via[0].URL; r.URL.Host != first.Host || r.URL.Scheme != first.Scheme {
			for name := range secret {
				r.Header.Del(name)
			}
		}
		return nil
	}
	return client
}

// failure returns the failure for a server that did not answer. The error from package http would show the whole URL, which may
// contain secrets.
func (c Config) failure(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	if failed := call.AsError(err); failed.Type == reasons.NotRecorded {
		return failed
	}
	u, _ := url.Parse(c.URL) // Check has parsed the URL successfully
	return unavailable(fmt.Errorf("the server %s does not answer: %w", u.Host, err))
}

// refused returns the failure for an answer whose status is not 2xx: the error in its envelope or, if there is none, a failure
// that contains the status.
func refused(resp *http.Response, body []byte) *call.Error {
	failed := &call.Error{Type: reasons.InvokeFailed}
	if _, err := call.ReadOutput(body); err != nil {
		if said := (*call.Error)(nil); errors.As(err, &said) && said.Type != reasons.SchemaInvalid {
			failed = said
		}
	}
	if failed.Message == "" {
		failed.Message = "the server answers with status " + strconv.Itoa(resp.StatusCode) + excerpt(body)
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout:
		failed.Type, failed.Retryable = reasons.Unavailable, true
		failed.RetryAfter = retryafter.Read(resp.Header, time.Now())
	default:
		if resp.StatusCode >= 500 && failed.Type == reasons.InvokeFailed {
			failed.Type = reasons.Unavailable
		}
	}
	return failed
}

func excerpt(body []byte) string {
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(body[:min(len(body), maxErrorText)]), "")), " ")
	if text == "" {
		return ""
	}
	return ": " + text
}
