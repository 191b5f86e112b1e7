package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/llm"
)

// A fate is the outcome of the HTTP request of a call. It is in the context of the
// call, since the protocol library reports only the text of a status.
type fate struct {
	sent   atomic.Bool  // the server may have seen it
	status atomic.Int32 // of the answer, 0 without one
	forgot atomic.Bool  // the server does not know the session
}

type fateKey struct{}

// A roundTripper adds the configured headers and notes the fates of calls.
type roundTripper struct {
	base   http.RoundTripper
	origin *url.URL
	header map[string]llm.Secret
}

// httpTransport returns the transport to the URL, and a function that closes its connections.
func httpTransport(c Config, secrets *redact.Set) (sdk.Transport, func(), error) {
	origin, err := url.Parse(string(c.URL))
	if err != nil {
		return nil, nil, err
	}
	client := &http.Client{}
	if c.Client != nil {
		*client = *c.Client
	}
	if client.CheckRedirect == nil {
		client.CheckRedirect = sameOrigin
	}
	done := func() {}
	if client.Transport == nil {
		client.Transport = http.DefaultTransport
		if t, ok := http.DefaultTransport.(*http.Transport); ok {
			own := t.Clone()
			client.Transport, done = own, own.CloseIdleConnections
		}
	}
	login := c.login
	if login == nil && c.OAuth != nil {
		login = newAccount(c, client.Transport, secrets)
	}
	client.Transport = &roundTripper{client.Transport, origin, c.Header}
	return &sdk.StreamableClientTransport{
		Endpoint:             string(c.URL),
		HTTPClient:           client,
		OAuthHandler:         login,
		DisableStandaloneSSE: true, // unsolicited messages are not used
		MaxEventSize:         maxFrame,
	}, done, nil
}

// sameOrigin follows redirects within the same server: another one must see neither the
// arguments of calls nor the id of the session.
func sameOrigin(r *http.Request, via []*http.Request) error {
	asked := via[0].URL
	switch {
	case r.URL.Scheme != asked.Scheme || r.URL.Host != asked.Host:
		return errors.New("a redirect to another server: set Config.Client with a CheckRedirect to allow it")
	case len(via) >= maxRedirects:
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	return nil
}

const maxRedirects = 10

func (t *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	f, _ := req.Context().Value(fateKey{}).(*fate)
	if req.Method != http.MethodPost {
		f = nil // a resumed stream, long after the call was received
	}
	if f != nil {
		req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
			GotConn: func(httptrace.GotConnInfo) { f.sent.Store(true) },
		}))
	}
	// A redirect to another server must not carry the secrets.
	if req.URL.Host == t.origin.Host && req.URL.Scheme == t.origin.Scheme {
		req = req.Clone(req.Context())
		for name, value := range t.header {
			req.Header.Set(name, string(value))
		}
	}
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if f != nil {
		f.status.Store(int32(resp.StatusCode))
		inSession := req.Header.Get("Mcp-Session-Id") != ""
		// The protocol wants 404; many restarted servers answer 400.
		f.forgot.Store(inSession && (resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusBadRequest))
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxFrame)
	}
	return resp, nil
}

func withFate(ctx context.Context) (context.Context, *fate) {
	f := &fate{}
	return context.WithValue(ctx, fateKey{}, f), f
}
