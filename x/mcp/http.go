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
	"golang.org/x/oauth2"

	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/llm"
)

// A fate is the outcome of a call's HTTP request. It is stored in the call's context, because the protocol library reports only
// the text of a status.
type fate struct {
	sent   atomic.Bool  // whether the server may have received the request
	status atomic.Int32 // the status of the answer; 0 if there is none
	forgot atomic.Bool  // whether the server does not know the session
}

type fateKey struct{}

// methodKey is the context key of a message's method.
type methodKey struct{}

const methodListen = "subscriptions/listen"

// A roundTripper adds the configured headers and records the fates of calls.
type roundTripper struct {
	base   http.RoundTripper
	origin *url.URL
	header map[string]llm.Secret
	tokens oauth2.TokenSource // nil if the protocol library adds them
	old    bool               // whether answers arrive in an event stream
}

// httpTransport returns the transport to the URL for a version of the protocol.
func (s *session) httpTransport(c Config, version string, secrets *redact.Set) (sdk.Transport, error) {
	origin, err := url.Parse(string(c.URL))
	if err != nil {
		return nil, err
	}
	client := &http.Client{}
	if c.Client != nil {
		*client = *c.Client
	}
	if client.CheckRedirect == nil {
		client.CheckRedirect = sameOrigin
	}
	if client.Transport == nil {
		client.Transport = http.DefaultTransport
		if t, ok := http.DefaultTransport.(*http.Transport); ok {
			own := t.Clone()
			client.Transport, s.done = own, own.CloseIdleConnections
		}
	}
	login := c.login
	if login == nil && c.OAuth != nil {
		login = newAccount(c, client.Transport, secrets)
	}
	trip := &roundTripper{base: client.Transport, origin: origin, header: c.Header, old: version == oldest}
	client.Transport = trip
	if trip.old {
		if login != nil {
			if trip.tokens, err = login.TokenSource(s.ctx); err != nil {
				return nil, err
			}
		}
		return &stream{sdk.SSEClientTransport{Endpoint: string(c.URL), HTTPClient: client, MaxEventSize: maxFrame}, s.ctx}, nil
	}
	return &sdk.StreamableClientTransport{
		Endpoint:             string(c.URL),
		HTTPClient:           client,
		OAuthHandler:         login,
		DisableStandaloneSSE: true, // messages that do not answer a request are not used
		MaxEventSize:         maxFrame,
	}, nil
}

// A stream is the transport of the oldest protocol version. Its connection is a single response that lasts until the session
// ends.
type stream struct {
	sdk.SSEClientTransport
	life context.Context
}

// Connect implements [sdk.Transport].
func (s *stream) Connect(ctx context.Context) (sdk.Connection, error) {
	life, cancel := context.WithCancel(s.life)
	defer context.AfterFunc(ctx, cancel)()
	return s.SSEClientTransport.Connect(life)
}

// sameOrigin allows only redirects to the same server, because another server must see neither the arguments of calls nor the id
// of the session.
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
		f = nil // this request resumes a stream, so the server has already received the call
	}
	if f != nil {
		req = req.WithContext(httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
			GotConn: func(httptrace.GotConnInfo) { f.sent.Store(true) },
		}))
	}
	method, _ := req.Context().Value(methodKey{}).(string)
	// A redirect to another server must not carry the secrets.
	if req.URL.Host == t.origin.Host && req.URL.Scheme == t.origin.Scheme {
		req = req.Clone(req.Context())
		for name, value := range t.header {
			req.Header.Set(name, string(value))
		}
		if t.tokens != nil {
			token, err := t.tokens.Token()
			if err != nil {
				return nil, err
			}
			token.SetAuthHeader(req)
		}
	} else if t.old {
		return nil, errors.New("the server names another server for messages")
	}
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if f != nil {
		f.status.Store(int32(resp.StatusCode))
		inSession := req.Header.Get("Mcp-Session-Id") != ""
		// The protocol requires 404, but many restarted servers answer 400.
		f.forgot.Store((inSession || t.old) && (resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusBadRequest))
	}
	isStream := strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	switch {
	case method == methodListen && !isStream && resp.StatusCode < 400:
		// The protocol library would end the connection, although the connection works without this stream.
		resp.Body.Close()
		return nil, errors.New("no stream of notifications")
	case method == "notifications/initialized" && (resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusBadRequest):
		resp.StatusCode = http.StatusAccepted // some servers reject this message but serve later requests
	}
	if !isStream {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxFrame)
	}
	return resp, nil
}

func withFate(ctx context.Context) (context.Context, *fate) {
	f := &fate{}
	return context.WithValue(ctx, fateKey{}, f), f
}
