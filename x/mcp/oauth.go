package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"

	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/llm"
)

// OAuth authorizes requests to an HTTP server with the account of a user who has logged in with [Login].
type OAuth struct {
	// Save stores the user's secret tokens. It is called by Login and whenever the tokens are renewed. Load returns the last
	// saved value, or nil if there is none. Both functions are required.
	Load func() ([]byte, error)
	Save func([]byte) error
	// Client and Secret identify the program to the authorization server if the program is registered there. Otherwise, Login
	// registers the program if the server permits this.
	Client string
	Secret llm.Secret
	// Scopes, if not empty, are requested instead of the scopes that the server asks for.
	Scopes []string
	// Hint tells the user how to log in, as in "run: stone login files". It is part of errors.
	Hint string
}

// ErrLogin is the error of calls to a server to which a user must first log in.
var ErrLogin = errors.New("a login is needed")

// needed returns an error that says that the user must log in.
func (o *OAuth) needed(why string) error {
	if o.Hint != "" {
		why += "; " + o.Hint
	}
	return fmt.Errorf("%w: %s", ErrLogin, why)
}

// A grant holds the tokens that a user has granted to the program, and what is needed to renew them.
type grant struct {
	URL      string           `json:"url"` // the URL of the tools, which is the only recipient of the tokens
	Client   string           `json:"client"`
	Secret   string           `json:"secret,omitempty"`
	TokenURL string           `json:"token-url"`
	Style    oauth2.AuthStyle `json:"style,omitempty"`
	Scopes   []string         `json:"scopes,omitempty"`
	Token    *oauth2.Token    `json:"token"`
}

// An account is the OAuthHandler of a server's sessions. It reads and renews tokens, but never opens a browser, because a run
// must not wait for a browser.
type account struct {
	*OAuth
	url     string
	client  *http.Client
	secrets *redact.Set

	mu     sync.Mutex
	grant  *grant // the grant whose tokens source returns and renews
	source oauth2.TokenSource
	forced time.Time // when a token was last renewed after being rejected
}

// patience is how long after a renewal a rejected token does not cause another renewal.
const patience = time.Minute

// loginTimeout is the time limit of a request for tokens.
const loginTimeout = 30 * time.Second

func newAccount(c Config, base http.RoundTripper, secrets *redact.Set) *account {
	secrets.Note(string(c.OAuth.Secret))
	return &account{OAuth: c.OAuth, url: string(c.URL), secrets: secrets, client: &http.Client{
		Transport: guarded{base, loopback(string(c.URL))}, CheckRedirect: sameOrigin, Timeout: loginTimeout,
	}}
}

// TokenSource returns the source of the tokens for requests.
func (a *account) TokenSource(context.Context) (oauth2.TokenSource, error) { return a, nil }

// Authorize is called if the server rejects the token because it was revoked, or expired at a time that was not stated. Authorize
// renews the token unless another process or call has already renewed it.
func (a *account) Authorize(_ context.Context, req *http.Request, resp *http.Response) error {
	resp.Body.Close()
	if resp.StatusCode == http.StatusForbidden {
		return a.needed("the account may not do this")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.load(); err != nil {
		return err
	}
	if "Bearer "+a.grant.Token.AccessToken != req.Header.Get("Authorization") {
		return nil
	}
	if a.grant.Token.RefreshToken == "" || time.Since(a.forced) < patience {
		return a.needed("the server refuses the token")
	}
	a.forced = time.Now()
	expired := *a.grant.Token
	expired.Expiry = time.Unix(1, 0)
	a.use(&expired)
	_, err := a.token()
	return err
}

// Token returns the token, renewed if necessary.
func (a *account) Token() (*oauth2.Token, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.token()
}

func (a *account) token() (*oauth2.Token, error) {
	if a.source == nil {
		if err := a.load(); err != nil {
			return nil, err
		}
	}
	token, err := a.source.Token()
	if err != nil {
		// Another process may have renewed the token, which invalidates the known refresh token.
		known := a.grant.Token.RefreshToken
		if err := a.load(); err != nil {
			return nil, err
		}
		if a.grant.Token.RefreshToken != known {
			token, err = a.source.Token()
		}
	}
	if err != nil {
		if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok || a.grant.Token.RefreshToken == "" {
			why := "the token has expired"
			if ok && refused.ErrorCode != "" {
				why = fmt.Sprintf("the token cannot be renewed (%q)", refused.ErrorCode)
			}
			return nil, a.needed(why)
		}
		return nil, fmt.Errorf("the token cannot be renewed: %w", hidden(a.secrets, err))
	}
	if token.AccessToken != a.grant.Token.AccessToken {
		a.grant.Token = token
		if err := a.save(a.grant); err != nil {
			return nil, err
		}
	}
	return token, nil
}

// load reads the user's stored grant into a. It returns an error if the grant cannot be read or the user must log in.
func (a *account) load() error {
	raw, err := a.Load()
	if err != nil {
		return fmt.Errorf("the tokens cannot be read: %w", err)
	}
	if len(raw) == 0 {
		return a.needed("nobody has logged in")
	}
	g := &grant{}
	if err := json.Unmarshal(raw, g); err != nil || g.Token == nil {
		return a.needed("the tokens cannot be read")
	}
	if g.URL != a.url {
		return a.needed("the login was for another address")
	}
	a.note(g)
	a.grant = g
	a.use(g.Token)
	return nil
}

// use sets a.source to a source of the grant's tokens that starts with the given token.
func (a *account) use(token *oauth2.Token) {
	g := a.grant
	cfg := &oauth2.Config{ClientID: g.Client, ClientSecret: g.Secret, Scopes: g.Scopes, Endpoint: oauth2.Endpoint{TokenURL: g.TokenURL, AuthStyle: g.Style}}
	a.source = cfg.TokenSource(context.WithValue(context.Background(), oauth2.HTTPClient, a.client), token)
}

func (a *account) save(g *grant) error {
	a.note(g)
	raw, err := json.Marshal(g)
	if err == nil {
		err = a.Save(raw)
	}
	if err != nil {
		return fmt.Errorf("the tokens cannot be kept: %w", err)
	}
	return nil
}

func (a *account) note(g *grant) {
	a.secrets.Note(g.Secret, g.Token.AccessToken, g.Token.RefreshToken)
}

// Login logs a user in to a server whose Config has a URL and OAuth. It calls show with the address that the user must open in a
// browser, waits until the browser is redirected to a local port, and stores the tokens with OAuth.Save. If ctx is done first,
// Login returns an error.
func Login(ctx context.Context, cfg Config, show func(address string) error) error {
	cfg, err := cfg.complete()
	if err != nil {
		return err
	}
	if cfg.OAuth == nil {
		return errors.New("mcp: the Config has no OAuth")
	}
	back, err := newCallback(show)
	if err != nil {
		return fmt.Errorf("mcp: cannot listen for the browser's answer: %w", err)
	}
	defer back.close()
	if deadline, ok := ctx.Deadline(); ok {
		cfg.StartTimeout = time.Until(deadline)
	} else {
		cfg.StartTimeout = time.Hour
	}
	secrets, kept, base := cfg.secrets(), false, http.DefaultTransport
	if cfg.Client != nil && cfg.Client.Transport != nil {
		base = cfg.Client.Transport
	}
	a := newAccount(cfg, base, secrets)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	handler, err := auth.NewAuthorizationCodeHandler(a.flow(back, func() {
		kept = true
		time.AfterFunc(loginTimeout, cancel) // what the server answers later is not part of the login
	}))
	if err != nil {
		return fmt.Errorf("mcp: %w", err)
	}
	cfg.login = handler
	session, err := opener(cfg, secrets)(ctx)
	if err != nil && kept {
		return nil
	}
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("mcp: no login at the server %q: %w", cfg.Name, ctx.Err())
	}
	if err != nil {
		return fmt.Errorf("mcp: the login at the server %q failed: %w", cfg.Name, hidden(secrets, err))
	}
	session.end()
	if !kept {
		return fmt.Errorf("mcp: the server %q does not require a login", cfg.Name)
	}
	return nil
}

// flow returns the configuration of the account's authorization code flow.
func (a *account) flow(back *callback, kept func()) *auth.AuthorizationCodeHandlerConfig {
	c := &auth.AuthorizationCodeHandlerConfig{
		RedirectURL: back.address, AuthorizationCodeFetcher: back.fetch, Client: a.client,
		RequestRefreshToken: true, AcceptUnadvertisedIss: true,
		NewTokenSource: func(_ context.Context, cfg *oauth2.Config, token *oauth2.Token) (oauth2.TokenSource, error) {
			g := &grant{URL: a.url, Client: cfg.ClientID, Secret: cfg.ClientSecret, TokenURL: cfg.Endpoint.TokenURL, Style: cfg.Endpoint.AuthStyle, Scopes: cfg.Scopes, Token: token}
			if err := a.save(g); err != nil {
				return nil, err
			}
			kept()
			return a, nil // the account also saves renewed tokens
		},
	}
	if a.Scopes != nil {
		c.ScopeFilter = func([]string) []string { return slices.Clone(a.Scopes) }
	}
	if a.Client != "" {
		c.PreregisteredClient = &oauthex.ClientCredentials{ClientID: a.Client}
		if a.OAuth.Secret != "" {
			c.PreregisteredClient.ClientSecretAuth = &oauthex.ClientSecretAuth{ClientSecret: string(a.OAuth.Secret)}
		}
		return c
	}
	c.DynamicClientRegistrationConfig = &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
		ClientName: "Stone", RedirectURIs: []string{back.address}, TokenEndpointAuthMethod: "none",
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
	}}
	return c
}

// guarded sends token requests only over https. It also allows http to this machine if the tool server runs on this machine too.
type guarded struct {
	base http.RoundTripper
	here bool
}

// maxLogin is the maximum size of an answer from the authorization server.
const maxLogin = 1 << 20

// RoundTrip implements [http.RoundTripper].
func (g guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != "https" && !(g.here && loopback(r.URL.String())) {
		return nil, fmt.Errorf("a login at %s://%s is not protected: want https", r.URL.Scheme, r.URL.Host)
	}
	resp, err := g.base.RoundTrip(r)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxLogin)
	}
	return resp, err
}

// loopback reports whether an address is on this machine.
func loopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}

// A callback waits for the browser on a local port.
type callback struct {
	address string
	show    func(string) error
	server  *http.Server
	results chan auth.AuthorizationResult
	failed  chan error

	mu    sync.Mutex
	state string // the state of the current flow
}

func newCallback(show func(string) error) (*callback, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &callback{address: "http://" + l.Addr().String() + "/callback", show: show, results: make(chan auth.AuthorizationResult, 1), failed: make(chan error, 1)}
	c.server = &http.Server{Handler: http.HandlerFunc(c.answer), ReadTimeout: loginTimeout, WriteTimeout: loginTimeout, MaxHeaderBytes: 64 << 10}
	go c.server.Serve(l) // ends when close is called
	return c, nil
}

// close stops the server when the browser has received its page.
func (c *callback) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if c.server.Shutdown(ctx) != nil {
		c.server.Close()
	}
}

// answer accepts the answer to the current flow and ignores all other requests, because any page in the browser can send
// requests.
func (c *callback) answer(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	c.mu.Lock()
	ours := c.state != "" && q.Get("state") == c.state && "http://"+r.Host+r.URL.Path == c.address && r.Method == http.MethodGet
	if ours {
		c.state = "" // an answer is accepted only once
	}
	c.mu.Unlock()
	if !ours {
		http.Error(w, "No login is waiting for this answer.", http.StatusBadRequest)
		return
	}
	if code := q.Get("error"); code != "" || q.Get("code") == "" {
		c.failed <- fmt.Errorf("the server of logins refused: %.200q", code)
		http.Error(w, "The login was refused.", http.StatusForbidden)
		return
	}
	c.results <- auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}
	io.WriteString(w, "The login is done. You can close this window.\n")
}

// fetch shows the address to the user and waits for the answer.
func (c *callback) fetch(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	u, err := url.Parse(args.URL)
	if err != nil || u.Scheme != "https" && !(u.Scheme == "http" && loopback(args.URL)) || u.Query().Get("state") == "" {
		return nil, errors.New("the server of logins has no https address")
	}
	c.mu.Lock()
	c.state = u.Query().Get("state")
	c.mu.Unlock()
	if err := c.show(args.URL); err != nil {
		return nil, err
	}
	select {
	case res := <-c.results:
		return &res, nil
	case err := <-c.failed:
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
