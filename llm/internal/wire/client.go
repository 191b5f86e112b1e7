// Package wire is what the callers of all protocols have in common: one POST whose
// answer is a stream, with retries, timeouts, limits and the keeping of secrets.
package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/stonelayer/stone/llm"
	"golang.org/x/time/rate"
)

// Options configure a Client. They are the common part of the providers' Config.
type Options struct {
	URL               string
	Key               llm.Secret // only to be kept out of errors; the header has it
	Header            http.Header
	HTTP              *http.Client
	Timeouts          llm.Timeouts
	Retry             llm.Retry
	RequestsPerMinute int
	Concurrency       int
}

// Client sends requests to one endpoint. It may be used by many goroutines.
type Client struct {
	url      *url.URL
	header   http.Header
	http     *http.Client
	timeouts llm.Timeouts
	retry    llm.Retry
	secrets  *strings.Replacer
	limiter  *rate.Limiter // nil without a limit
	slots    chan struct{} // nil without a limit
}

// New returns a Client, or an error that says what is wrong with the options.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("URL %q is not an absolute http or https URL", redactedURL(o.URL))
	}
	c := &Client{
		url:      u,
		header:   o.Header,
		timeouts: o.Timeouts.WithDefaults(),
		retry:    o.Retry.WithDefaults(),
		secrets:  replacer(o.Key, o.Header, u),
	}
	c.http = httpClient(o.HTTP)
	if o.RequestsPerMinute > 0 {
		c.limiter = rate.NewLimiter(rate.Every(time.Minute/time.Duration(o.RequestsPerMinute)), 1)
	}
	if o.Concurrency > 0 {
		c.slots = make(chan struct{}, o.Concurrency)
	}
	return c, nil
}

// Endpoint returns the URL without what may be secret in it.
func (c *Client) Endpoint() string {
	return (&url.URL{Scheme: c.url.Scheme, Host: c.url.Host, Path: c.url.Path}).String()
}

// transport is shared by all clients that have none of their own, so that
// connections are. Small buffers: thousands of streams may be open at once.
var transport = sharedTransport(&net.Dialer{KeepAlive: 30 * time.Second})

func sharedTransport(dialer *net.Dialer) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if limit, ok := ctx.Value(connectLimit{}).(time.Duration); ok && limit > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, limit)
			defer cancel()
		}
		return dialer.DialContext(ctx, network, addr)
	}
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 1024, 256
	t.ReadBufferSize, t.WriteBufferSize = 1<<10, 1<<10
	t.DisableCompression = true // a compressed stream arrives in lumps
	return t
}

// connectLimit is the context key of Timeouts.Connect.
type connectLimit struct{}

// httpClient returns a client that follows no redirect: one would carry the key to
// another host.
func httpClient(own *http.Client) *http.Client {
	var c http.Client
	if own != nil {
		c = *own
	}
	if c.Transport == nil {
		c.Transport = transport
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

// acquire waits for a place among the concurrent requests and in the rate.
func (c *Client) acquire(ctx context.Context) (release func(), err error) {
	release = func() {}
	if c.slots != nil {
		select {
		case c.slots <- struct{}{}:
			release = func() { <-c.slots }
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if c.limiter != nil {
		if err := c.limiter.Wait(ctx); err != nil {
			release()
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, fmt.Errorf("llm: RequestsPerMinute leaves no place before the deadline: %w", err)
		}
	}
	return release, nil
}

// minSecret is the length from which a value is taken out of errors. Shorter ones
// are no keys, and would tear words apart.
const minSecret = 6

func replacer(key llm.Secret, header http.Header, u *url.URL) *strings.Replacer {
	values := []string{string(key)}
	for _, v := range header {
		values = append(values, v...)
	}
	for _, v := range u.Query() {
		values = append(values, v...)
	}
	if password, ok := u.User.Password(); ok {
		values = append(values, password)
	}
	// The longest first: a key may be part of a header's value.
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, v := range values {
		if len(v) >= minSecret && !harmless[v] {
			pairs = append(pairs, v, "[redacted]")
		}
	}
	return strings.NewReplacer(pairs...)
}

// harmless are header values that every request has.
var harmless = map[string]bool{
	"application/json": true, "text/event-stream": true, "2023-06-01": true,
}

func redactedURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "…"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// redact takes the client's secrets out of an error.
func (c *Client) redact(err error) error {
	if e, ok := errors.AsType[*llm.HTTPError](err); ok {
		e.Body = c.secrets.Replace(e.Body)
	}
	if e, ok := errors.AsType[*llm.ProviderError](err); ok {
		e.Message = c.secrets.Replace(e.Message)
	}
	if e, ok := errors.AsType[*llm.ProtocolError](err); ok {
		e.Reason = c.secrets.Replace(e.Reason)
	}
	return err
}
