package mcp

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/llm"
)

// A provider is a server of logins, and of tools for those who have logged in. It checks PKCE and
// the address of the answer, and accepts each code and each token of a renewal once.
type provider struct {
	*httptest.Server
	ttl    time.Duration // of access tokens
	issuer string        // in its answers, if not its own
	lies   func(query url.Values)

	silent  bool // about when tokens expire
	useless bool // its tokens are refused

	mu       sync.Mutex
	clients  map[string]string // the address of the answer, by the id
	codes    map[string]url.Values
	access   map[string]time.Time
	renewals map[string]bool
	issued   []string
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	p := &provider{ttl: time.Hour, clients: map[string]string{}, codes: map[string]url.Values{}, access: map[string]time.Time{}, renewals: map[string]bool{}}
	mux := http.NewServeMux()
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	reply := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]any{"resource": p.URL + "/mcp", "authorization_servers": []string{p.URL}, "scopes_supported": []string{"files"}})
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]any{"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "registration_endpoint": p.URL + "/register",
			"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"}, "authorization_response_iss_parameter_supported": true,
			"token_endpoint_auth_methods_supported": []string{"none"}})
	})
	mux.HandleFunc("/register", func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Redirects []string `json:"redirect_uris"`
		}
		json.NewDecoder(r.Body).Decode(&in)
		p.mu.Lock()
		defer p.mu.Unlock()
		id := rand.Text()
		p.clients[id] = in.Redirects[0]
		w.WriteHeader(http.StatusCreated)
		reply(w, map[string]any{"client_id": id, "redirect_uris": in.Redirects, "token_endpoint_auth_method": "none"})
	})
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		q := r.URL.Query()
		if to := p.clients[q.Get("client_id")]; to == "" || to != q.Get("redirect_uri") || q.Get("resource") != p.URL+"/mcp" || q.Get("code_challenge_method") != "S256" {
			http.Error(w, "refused", http.StatusBadRequest)
			return
		}
		code, iss := rand.Text(), p.URL
		if p.issuer != "" {
			iss = p.issuer
		}
		p.codes[code] = q
		answer := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {iss}}
		if p.lies != nil {
			p.lies(answer)
		}
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+answer.Encode(), http.StatusFound)
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		asked, isCode := p.codes[r.FormValue("code")]
		good := isCode && asked.Get("code_challenge") == base64.RawURLEncoding.EncodeToString(sum[:]) && asked.Get("redirect_uri") == r.FormValue("redirect_uri")
		if renewal := r.FormValue("refresh_token"); p.renewals[renewal] {
			good = true
			delete(p.renewals, renewal)
		}
		delete(p.codes, r.FormValue("code"))
		if !good {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":"invalid_grant"}`)
			return
		}
		access, renewal := "access-"+rand.Text(), "renewal-"+rand.Text()
		if p.renewals[renewal] = true; !p.useless {
			p.access[access] = time.Now().Add(p.ttl)
		}
		p.issued = append(p.issued, access, renewal)
		answer := map[string]any{"access_token": access, "refresh_token": renewal, "token_type": "Bearer", "expires_in": int(p.ttl.Seconds())}
		if p.silent {
			delete(answer, "expires_in")
		}
		reply(w, answer)
	})
	tools := handler(t, nil)
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		p.mu.Lock()
		until := p.access[token]
		p.mu.Unlock()
		if time.Now().After(until) {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+p.URL+`/.well-known/oauth-protected-resource/mcp"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		tools.ServeHTTP(w, r)
	})
	return p
}

// vault keeps the tokens of a user.
type vault struct {
	mu  sync.Mutex
	raw []byte
}

func (v *vault) config(p *provider) Config {
	return Config{Name: "files", URL: llm.Secret(p.URL + "/mcp"), OAuth: &OAuth{
		Load: func() ([]byte, error) {
			v.mu.Lock()
			defer v.mu.Unlock()
			return v.raw, nil
		},
		Save: func(raw []byte) error {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.raw = raw
			return nil
		},
		Hint: "run: stone login files",
	}}
}

// browser is a user who opens the address and does what the page says.
func browser(address string) error {
	go func() {
		resp, err := http.Get(address)
		if err != nil { // Login returns what is wrong
			return
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}()
	return nil
}

// within is the context of a login that is not answered.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestLogin(t *testing.T) {
	p, v := newProvider(t), &vault{}
	cfg := v.config(p)
	_, err := Connect(t.Context(), cfg)
	if !errors.Is(err, ErrLogin) || !strings.HasSuffix(err.Error(), "a login is needed: nobody has logged in; run: stone login files") {
		t.Fatalf("before the login: %v", err)
	}
	if err := Login(within(t, time.Minute), cfg, browser); err != nil {
		t.Fatal(err)
	}
	want(t, connect(t, cfg), "echo", "hello", "hello")
	// Another process renews the token, and this one uses it.
	p.ttl = time.Second // less than the time before its end at which it is renewed
	if err := Login(within(t, time.Minute), cfg, browser); err != nil {
		t.Fatal(err)
	}
	first, second := connect(t, cfg), connect(t, cfg)
	for range 2 {
		want(t, first, "echo", "a", "a")
		want(t, second, "echo", "b", "b")
	}
	if !strings.Contains(string(v.raw), p.issued[len(p.issued)-1]) {
		t.Error("the renewed token is not kept")
	}
	p.mu.Lock()
	clear(p.renewals)
	p.mu.Unlock()
	if _, err = Connect(t.Context(), cfg); !errors.Is(err, ErrLogin) || !strings.Contains(err.Error(), `the token cannot be renewed ("invalid_grant"); run: stone login files`) {
		t.Errorf("revoked: %v", err)
	}
	cfg.URL = llm.Secret(strings.Replace(p.URL, "127.0.0.1", "localhost", 1) + "/mcp")
	if _, err := Connect(t.Context(), cfg); !errors.Is(err, ErrLogin) || !strings.Contains(err.Error(), "the login was for another address") {
		t.Errorf("another address: %v", err)
	}
}

// TestRefusedToken has the server refuse a token that has not expired, or does not say when: it was
// started again, or the token was revoked. The token is renewed once, by one of two processes.
func TestRefusedToken(t *testing.T) {
	for _, ttl := range []time.Duration{time.Hour, 0} {
		p, v := newProvider(t), &vault{}
		p.silent = ttl == 0
		cfg := v.config(p)
		if err := Login(within(t, time.Minute), cfg, browser); err != nil {
			t.Fatal(err)
		}
		first, second := connect(t, cfg), connect(t, cfg)
		want(t, first, "echo", "a", "a")
		forget := func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			clear(p.access)
		}
		forget()
		before := len(p.issued)
		want(t, first, "echo", "b", "b")
		want(t, second, "echo", "c", "c") // with the token of the other
		if n := len(p.issued) - before; n != 2 {
			t.Errorf("%d tokens were issued, want one and its renewal", n)
		}
		third := connect(t, cfg) // as after another start
		forget()
		want(t, third, "echo", "d", "d")
		// A server that refuses new tokens too is asked once.
		forget()
		before = len(p.issued)
		p.useless = true
		if _, err := Connect(t.Context(), cfg); !errors.Is(err, ErrLogin) || !strings.Contains(err.Error(), "the server refuses the token; run: stone login files") {
			t.Errorf("got %v", err)
		}
		if n := len(p.issued) - before; n != 2 {
			t.Errorf("%d tokens were issued, want one and its renewal", n)
		}
	}
}

// TestLoginRegistered checks a program that the server of logins knows.
func TestLoginRegistered(t *testing.T) {
	p, v := newProvider(t), &vault{}
	cfg := v.config(p)
	cfg.OAuth.Client = "stone-1"
	show := func(address string) error {
		u, err := url.Parse(address)
		if err != nil {
			return err
		}
		p.mu.Lock()
		p.clients["stone-1"] = u.Query().Get("redirect_uri")
		p.mu.Unlock()
		return browser(address)
	}
	if err := Login(within(t, time.Minute), cfg, show); err != nil {
		t.Fatal(err)
	}
	if len(p.clients) != 1 {
		t.Errorf("the clients are %v", p.clients)
	}
}

// TestLoginAttacks checks answers that do not come from the login server.
func TestLoginAttacks(t *testing.T) {
	need.Time(t)
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { t.Errorf("%s got %v", r.URL, r.Header) }))
	defer other.Close()
	for name, tt := range map[string]struct {
		attack func(p *provider)
		want   string
	}{
		"another state":  {func(p *provider) { p.lies = func(q url.Values) { q.Set("state", "x") } }, "no login at the server"},
		"no state":       {func(p *provider) { p.lies = func(q url.Values) { q.Del("state") } }, "no login at the server"},
		"another issuer": {func(p *provider) { p.issuer = "https://evil.example" }, "does not match expected issuer"},
		"no issuer":      {func(p *provider) { p.lies = func(q url.Values) { q.Del("iss") } }, "none was received"},
		"another code":   {func(p *provider) { p.lies = func(q url.Values) { q.Set("code", "x") } }, "invalid_grant"},
		"a refusal":      {func(p *provider) { p.lies = func(q url.Values) { q.Set("error", "access_denied") } }, `refused: "access_denied"`},
		"a redirect to another host": {func(p *provider) {
			inner := p.Config.Handler
			p.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/token" {
					http.Redirect(w, r, other.URL+"/token", http.StatusTemporaryRedirect)
					return
				}
				inner.ServeHTTP(w, r)
			})
		}, "redirect to another server"},
		"a server of logins without https": {func(p *provider) {
			inner := p.Config.Handler
			p.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/.well-known/oauth-authorization-server" {
					inner.ServeHTTP(w, r)
					return
				}
				answer := httptest.NewRecorder()
				inner.ServeHTTP(answer, r)
				w.Header().Set("Content-Type", "application/json")
				io.WriteString(w, strings.ReplaceAll(answer.Body.String(), p.URL+"/token", "http://login.example/token"))
			})
		}, "does not use HTTPS"},
	} {
		t.Run(name, func(t *testing.T) {
			p, v := newProvider(t), &vault{}
			tt.attack(p)
			err := Login(within(t, 3*time.Second), v.config(p), browser)
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") || v.raw != nil {
				t.Errorf("got %v, kept %d bytes; want %s", err, len(v.raw), tt.want)
			}
		})
	}
}

// TestLoginSecrets checks that tokens are secrets of the run and in no error.
func TestLoginSecrets(t *testing.T) {
	p, v := newProvider(t), &vault{}
	cfg := v.config(p)
	if err := Login(within(t, time.Minute), cfg, browser); err != nil {
		t.Fatal(err)
	}
	s := connect(t, cfg)
	secrets := new(redact.Set)
	tool := toolOf(t, s, "fail")
	_, err := tool.Run(redact.With(t.Context(), secrets), json.RawMessage(`{"text":"`+p.issued[0]+`"}`))
	if err == nil || strings.Contains(err.Error(), p.issued[0]) {
		t.Errorf("the tool says %v", err)
	}
	for _, token := range p.issued {
		if !secrets.Holds(token) {
			t.Errorf("%s is no secret of the run", token)
		}
		if printed := fmt.Sprintf("%+v %#v", cfg, s); strings.Contains(printed, token) {
			t.Errorf("printed: %s", printed)
		}
	}
}

// TestLoginConfig checks configurations, and a server that does not require a login.
func TestLoginConfig(t *testing.T) {
	open, cfg := serve(t, handler(t, nil))
	if err := Login(t.Context(), cfg, browser); err == nil || !strings.Contains(err.Error(), "no OAuth") {
		t.Error(err)
	}
	v := &vault{}
	cfg.OAuth = v.config(&provider{Server: open}).OAuth
	if err := Login(within(t, time.Minute), cfg, browser); err == nil || !strings.Contains(err.Error(), "does not require a login") {
		t.Error(err)
	}
	cfg.OAuth = &OAuth{}
	if _, err := Connect(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "Load and Save") {
		t.Error(err)
	}
}
