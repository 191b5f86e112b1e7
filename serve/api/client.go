package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stonelayer/stone/internal/retryafter"
)

// A Client sends requests to a server. Only its URL is required. A Client is safe for concurrent use.
type Client struct {
	URL   string       // URL of the server, such as "http://127.0.0.1:8080"
	Token string       // token as printed by "stone token create"; if empty, none is sent
	HTTP  *http.Client // HTTP client; nil means http.DefaultClient
	// Patience is how long the client retries a repeatable request while no server answers. Zero means one minute; a negative
	// value disables retries. If a server asks the client to wait longer than Patience or 5 minutes, the request fails at once.
	Patience time.Duration
}

// maxReply is the maximum size of a reply in bytes.
const maxReply = 256 << 20

// A request is a request to the API.
type request struct {
	method, path string
	query        url.Values
	body         any    // sent as JSON; nil for none
	accept       string // application/json if empty
	after        string // Last-Event-ID
	repeat       bool   // safe to repeat
}

// path returns the path below /v1/ that consists of the segments, escaped.
func path(parts ...string) string {
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return "/v1/" + strings.Join(parts, "/")
}

// call sends a request and decodes the reply into to, unless to is nil.
func (c *Client) call(ctx context.Context, r request, to any) error {
	resp, err := c.send(ctx, r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxReply+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s %s: read the reply: %w", r.method, r.path, err)
	case len(data) > maxReply:
		return fmt.Errorf("%s %s: the reply is longer than %d MB", r.method, r.path, maxReply>>20)
	case to == nil:
		return nil
	}
	if err := json.Unmarshal(data, to); err != nil {
		return fmt.Errorf("%s %s: the reply is not from a Stone server: %w", r.method, r.path, err)
	}
	return nil
}

// send sends a request and returns the reply if its status indicates success. A repeatable request is retried.
func (c *Client) send(ctx context.Context, r request) (*http.Response, error) {
	var body []byte
	if r.body != nil {
		var err error
		if body, err = json.Marshal(r.body); err != nil {
			return nil, err
		}
	}
	for w := (waiter{until: time.Now().Add(cmp.Or(c.Patience, time.Minute))}); ; {
		resp, err := c.once(ctx, r, body)
		if err == nil || !r.repeat || ctx.Err() != nil {
			return resp, given(err)
		}
		if err := w.wait(ctx, err); err != nil {
			return nil, err
		}
	}
}

// given returns err without the marker unavailable, in the form that the caller receives.
func given(err error) error {
	if u, ok := errors.AsType[unavailable](err); ok {
		return u.error
	}
	return err
}

// unavailable marks an error that a retry may resolve, such as a restarting server.
type unavailable struct {
	error
	after time.Duration // Retry-After; zero if the server sent none
}

// once sends a request without retries. If a retry may succeed, the error is of type unavailable.
func (c *Client) once(ctx context.Context, r request, body []byte) (*http.Response, error) {
	at := strings.TrimSuffix(c.URL, "/") + r.path
	if len(r.query) > 0 {
		at += "?" + r.query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, r.method, at, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", cmp.Or(r.accept, "application/json"))
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.after != "" {
		req.Header.Set("Last-Event-ID", r.after)
	}
	if c.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.Token)
	}
	resp, err := cmp.Or(c.HTTP, http.DefaultClient).Do(req)
	if err != nil {
		return nil, unavailable{error: err}
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, failure(resp)
}

// failure returns the error described by a reply with an error status.
func failure(resp *http.Response) error {
	const most = 1 << 20
	data, err := io.ReadAll(io.LimitReader(resp.Body, most))
	var reply Reply
	if err == nil && json.Unmarshal(data, &reply) == nil && reply.Error != nil {
		return reply.Error
	}
	p := &Problem{}
	if err != nil || json.Unmarshal(data, p) != nil || p.Status == 0 { // the reply came from a proxy
		p = &Problem{Type: "about:blank", Title: resp.Status, Status: resp.StatusCode}
	}
	wait := retryafter.Read(resp.Header, time.Now())
	switch {
	case resp.StatusCode == http.StatusTooManyRequests && wait > 0,
		resp.StatusCode == http.StatusBadGateway && p.Type == "about:blank",
		resp.StatusCode == http.StatusServiceUnavailable,
		resp.StatusCode == http.StatusGatewayTimeout:
		return unavailable{p, wait}
	}
	return p
}

// A waiter waits between attempts until its deadline. Each wait is longer than the previous wait.
type waiter struct {
	until time.Time
	tries int
}

// forever returns a waiter without a deadline.
func forever() waiter { return waiter{until: time.Now().Add(math.MaxInt64)} }

// longestWait is the longest wait that a server may request.
const longestWait = 5 * time.Minute

// wait waits until the next attempt may start and returns nil. It returns an error for the caller if err cannot be resolved by a
// retry, if the next attempt would start after the deadline of w or ctx, or if the server asks for too long a wait.
func (w *waiter) wait(ctx context.Context, err error) error {
	var u unavailable
	if !errors.As(err, &u) {
		return err
	}
	w.tries++
	pause := retryafter.Pause(w.tries, 50*time.Millisecond, 2*time.Second, u.after)
	until := w.until
	if end, ok := ctx.Deadline(); ok && end.Before(until) {
		until = end
	}
	switch late := time.Now().Add(pause).After(until); {
	case u.after > 0 && (late || u.after > longestWait):
		return fmt.Errorf("%w: the server asks to wait %v: try again later", u.error, u.after)
	case late && w.until == until:
		return u.error
	}
	select {
	case <-time.After(pause):
		return nil
	case <-ctx.Done():
		return cmp.Or(context.Cause(ctx), u.error)
	}
}
