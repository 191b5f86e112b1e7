// Package wire contains the common parts of the protocol clients: it sends a POST request and reads the answer as a stream, with
// retries, timeouts, limits and redaction of secrets.
package wire

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/stonelayer/stone/internal/limit"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/llm"
)

// Options configures a Client. It is the common part of the providers' Configs.
type Options struct {
	URL              string
	Header           http.Header
	HTTP             *http.Client
	KeyFunc          llm.KeyFunc // returns the key for KeyHeader of each request; nil if there is none
	KeyHeader        string      // header that contains the key
	KeyPrefix        string      // the text before the key
	Edit             func(*http.Request) error
	Timeouts         llm.Timeouts
	Retry            llm.Retry
	ProgressInterval time.Duration
	Limiter          *limit.Limiter // nil means no limits
	FreeCache        bool           // tokens read from a cache do not count towards limits
}

// Client sends requests to one endpoint. It is safe for concurrent use.
type Client struct {
	url       *url.URL
	header    http.Header
	http      *http.Client
	timeouts  llm.Timeouts
	retry     llm.Retry
	progress  time.Duration // time between two Progress deltas
	own       *redact.Set   // the client's secrets
	keys      *keys         // nil if the key never changes
	carry     [2]string     // header that contains the key, and the text before the key
	edit      func(*http.Request) error
	limiter   *limit.Limiter
	freeCache bool
	ownLimits bool // whether limiter was configured
}

// New returns a Client, or an error if the options are invalid.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("URL %q is not an absolute http or https URL", redactedURL(o.URL))
	}
	c := &Client{
		url:       u,
		header:    o.Header,
		timeouts:  o.Timeouts.WithDefaults(),
		retry:     o.Retry.WithDefaults(),
		progress:  llm.ProgressInterval,
		own:       secretsIn(o.Header, u),
		keys:      newKeys(o.KeyFunc),
		carry:     [2]string{o.KeyHeader, o.KeyPrefix},
		freeCache: o.FreeCache,
		edit:      o.Edit,
	}
	if o.ProgressInterval > 0 {
		c.progress = o.ProgressInterval
	}
	c.http = httpClient(o.HTTP)
	if c.limiter, c.ownLimits = o.Limiter, o.Limiter != nil; !c.ownLimits {
		c.limiter = new(limit.Limiter)
	}
	return c, nil
}

// Endpoint returns the URL of the endpoint, without parts that may be secret.
func (c *Client) Endpoint() string {
	return (&url.URL{Scheme: c.url.Scheme, Host: c.url.Host, Path: c.url.Path}).String()
}

// Mode returns where answers come from: the Mode of the transport if it has one, and otherwise llm.Live.
func (c *Client) Mode() string {
	if t, ok := c.http.Transport.(interface{ Mode() string }); ok {
		return t.Mode()
	}
	return llm.Live
}

// Below returns a client for an address below the endpoint, with parameters added to the query. The client shares the limits of
// c.
func (c *Client) Below(element string, query url.Values) *Client {
	below := *c
	below.url = c.url.JoinPath(element)
	values := below.url.Query()
	maps.Copy(values, query)
	below.url.RawQuery = values.Encode()
	return &below
}

// shared is the transport of all clients for which none is configured, so that they share connections. Its buffers are small,
// because thousands of streams may be open at once.
var shared = sharedTransport(&net.Dialer{KeepAlive: 30 * time.Second})

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
	t.DisableCompression = true // a compressed stream would arrive in bursts
	return t
}

// connectLimit is the context key of Timeouts.Connect.
type connectLimit struct{}

// httpClient returns a client that does not follow redirects, because a redirect would send the key to another host.
func httpClient(own *http.Client) *http.Client {
	var c http.Client
	if own != nil {
		c = *own
	}
	if c.Transport == nil {
		c.Transport = shared
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &c
}

// harmless contains the names of headers that never contain secrets.
var harmless = []string{"Content-Type", "Accept", "Anthropic-Version", "Anthropic-Beta", "User-Agent"}

// secretsIn returns the secrets in the headers and the URL of a request.
func secretsIn(header http.Header, u *url.URL) *redact.Set {
	s := new(redact.Set)
	for name, values := range header {
		if !slices.Contains(harmless, name) {
			s.NoteHeader(values...)
		}
	}
	s.NoteURL(u.String())
	return s
}

func redactedURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "…"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	return u.String()
}

// clean returns text with the client's and the run's secrets redacted.
func (c *Client) clean(ctx context.Context, text string) string {
	return redact.From(ctx).Clean(c.keys.secrets().Clean(c.own.Clean(text)))
}

// redact returns err with secrets redacted.
func (c *Client) redact(ctx context.Context, err error) error {
	if e, ok := errors.AsType[*llm.ProviderError](err); ok {
		e.Message, e.Type, e.Code = c.clean(ctx, e.Message), c.clean(ctx, e.Type), c.clean(ctx, e.Code)
	}
	if e, ok := errors.AsType[*llm.ProtocolError](err); ok {
		e.Reason = c.clean(ctx, e.Reason)
	}
	return err
}

// Unfinished is implemented by a Decoder if the server can end its answer before the model has finished.
type Unfinished interface {
	Decoder
	// Rest returns the path, below the endpoint, from which the whole answer can be read as one document, or "" if all of it has
	// been received. It is called after End. The Decoder then handles that document, and End is called again.
	Rest() string
}

// restEvery is the time between two requests for the missing part of an answer.
const restEvery = 2 * time.Second

// path returns the path to the answer's missing part, or "" if the server has sent the whole answer.
func (s *session) path(err error) string {
	d, ok := s.decoded.(Unfinished)
	_, cut := errors.AsType[*llm.TruncatedError](err)
	if !ok || err != nil && !cut {
		return ""
	}
	return d.Rest()
}
