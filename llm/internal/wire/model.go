package wire

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/url"
	"os"
	"strings"

	"github.com/stonelayer/stone/llm"
)

// Setup is the common part of the providers' Configs, together with names that are specific to a provider.
type Setup struct {
	Provider   string // the package, such as "openai"
	Env        string // the prefix of the environment variables …_API_KEY and …_BASE_URL
	DefaultURL string
	Version    string   // the version of the API, added to base URLs without a version; default "v1"
	Endpoint   string   // the path after the base URL
	Reserved   []string // fields of the body that Extra must not set
	Params     ParamRules
	ParamsOf   func(model string) ParamRules // used in place of Params if the rules depend on the model
	Media      MediaRule
	Protocol   string   // the protocol's name in package rules
	Kept       []string // the keys of metadata that only the server which sent it understands
	MostField  []string // the path of the answer limit in the body
	JSONMode   bool     // whether the protocol can request JSON without a schema

	Model      string
	Key        llm.Secret
	Header     map[string]llm.Secret
	Extra      map[string]any
	Repetition func() *llm.Watcher
	MaxRetries int
	MaxTokens  int   // the configured answer limit; 0 means none
	DefaultMax int   // the answer limit if nothing else is known; 0 means none
	Fault      error // a fault in the provider's own fields
	keyless    bool  // whether the Key is llm.NoKey
	Options          // URL is the base; Header is set by Init
}

// Defaults sets the URL and the key from the environment. That key is sent only to the provider's own servers and to the server
// named in the environment.
func (s *Setup) Defaults() {
	environment := s.URL == ""
	s.Version = cmp.Or(s.Version, "v1")
	s.URL = CompleteURL(s.base(), s.Version, s.Endpoint)
	if s.Key == "" && s.KeyFunc == nil && s.Edit == nil && (environment || ownHost(s.URL, s.DefaultURL)) {
		s.Key = llm.Secret(os.Getenv(s.Env + "_API_KEY"))
	}
	if s.keyless = s.Key == llm.NoKey; s.keyless {
		s.Key = ""
	}
	if s.MaxRetries == 0 {
		s.MaxRetries = 3
	}
}

// base returns the URL from the configuration, the environment or the provider, in this order.
func (s *Setup) base() string {
	return cmp.Or(s.URL, os.Getenv(s.Env+"_BASE_URL"), s.DefaultURL)
}

// Own reports whether the requests go to the provider's own servers.
func (s *Setup) Own() bool { return ownHost(s.base(), s.DefaultURL) }

// Names reports whether the configured URL is the full address of this endpoint.
func (s *Setup) Names(endpoint string) bool {
	u, err := url.Parse(s.base())
	return err == nil && strings.HasSuffix(strings.TrimRight(u.Path, "/"), endpoint)
}

// ownHost reports whether an address has the scheme of a provider's own URL, and the same host or a subdomain of it.
func ownHost(address, own string) bool {
	a, err := url.Parse(address)
	b, errOwn := url.Parse(own)
	return err == nil && errOwn == nil && a.Scheme == b.Scheme && (a.Host == b.Host || strings.HasSuffix(a.Host, "."+b.Host))
}

// Own reports whether the requests go to the provider's own server.
func (m *Model) Own() bool { return ownHost(m.setup.URL, m.setup.DefaultURL) }

// Model is the part that all providers' models share.
type Model struct {
	Client *Client // nil if the configuration is invalid
	setup  Setup
	err    error     // the fault in the configuration
	asked  llm.Model // the model with its guard, if one is configured
	ways   ways
	limits limits
}

// Init initializes the model from a Setup whose Defaults have been set. The argument provider contains the provider's own
// headers, keyed lists the headers that may carry a key, and caller streams a request without a guard.
func (m *Model) Init(s Setup, provider map[string]string, keyed []string, caller llm.Model) {
	header := Header(s.Header, provider)
	if s.Key != "" && header.Get(s.KeyHeader) == "" {
		header.Set(s.KeyHeader, s.KeyPrefix+string(s.Key))
	}
	hasKey := s.KeyFunc != nil || s.Edit != nil
	for _, name := range keyed {
		hasKey = hasKey || header.Get(name) != ""
	}
	var errs []error
	if s.URL == CompleteURL(s.DefaultURL, s.Version, s.Endpoint) && !hasKey && !s.keyless {
		errs = append(errs, fmt.Errorf("no key for %s: set %s_API_KEY or, in Go, Config.Key", s.DefaultURL, s.Env))
	}
	if s.KeyFunc != nil && (s.Key != "" || s.keyless) {
		errs = append(errs, errors.New("Key and KeyFunc are set: set one"))
	}
	errs = append(errs, s.Fault, CheckExtra(s.Extra, s.Reserved))
	s.Options.Header = header
	client, err := New(s.Options)
	if err := errors.Join(append(errs, err)...); err != nil {
		m.err = fmt.Errorf("%s: bad Config: %w", s.Provider, OneLine(err))
	}
	m.Client, m.setup, m.asked = client, s, caller
	if s.Repetition != nil {
		m.asked = llm.Guard(caller, s.Repetition, s.MaxRetries)
	}
}

// Body is the body of a request, and its estimated tokens.
type Body struct {
	json   []byte
	tokens int
	fields map[string]any // the fields that json encodes
	answer bool           // whether the request calls a model
}

// Body returns the body of a request; build adds the provider's own fields.
func (m *Model) Body(req *llm.Request, build func(model string) (map[string]any, error)) (Body, error) {
	var none Body
	if m.err != nil {
		return none, m.err
	}
	model := cmp.Or(req.Model, m.setup.Model)
	switch {
	case model == "":
		return none, fmt.Errorf("%s: no model: name one in Config.Model or Request.Model", m.setup.Provider)
	case len(req.Messages) == 0:
		return none, fmt.Errorf("%s: a request without messages: Request.Messages needs at least one", m.setup.Provider)
	}
	body, err := map[string]any(nil), m.checkMessages(req.Messages)
	if err == nil {
		body, err = build(model)
	}
	if err == nil {
		err = m.SetParams(body, model, req)
	}
	if err != nil {
		return none, fmt.Errorf("%s: %w", m.setup.Provider, err)
	}
	data, err := json.Marshal(body)
	if err != nil {
		return none, fmt.Errorf("%s: the request is not JSON: %w", m.setup.Provider, err)
	}
	in, out := req.Tokens()
	return Body{data, in + out, body, true}, nil
}

// Check returns all faults of the configuration on one line, or nil.
func (m *Model) Check() error { return m.err }

// Info returns the facts about the model that the configuration states.
func (m *Model) Info() llm.Info {
	info := llm.Info{Provider: m.setup.Provider, Model: m.setup.Model}
	if m.Client != nil {
		info.Endpoint, info.Mode = m.Client.Endpoint(), m.Client.Mode()
	}
	return info
}

// Longest returns the configured answer limit, or 0 if there is none.
func (m *Model) Longest() int { return m.setup.MaxTokens }

// Asks returns the maximum number of requests that are made if answers repeat themselves.
func (m *Model) Asks() int {
	if m.setup.Repetition == nil {
		return 1
	}
	return max(m.setup.MaxRetries, 0) + 1
}

// Stream sends the request if it can fit the model; see llm.Model.
func (m *Model) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	spec := llm.SpecOf(ctx, m, req)
	if err := spec.Fits(llm.Name(m, req), req); err != nil {
		return func(yield func(llm.Delta, error) bool) { yield(llm.Delta{Reply: &llm.Reply{}}, err) }
	}
	if spec.Limiter != nil {
		ctx = context.WithValue(ctx, limiterKey{}, spec.Limiter)
	}
	if req.ResponseFormat != nil && !spec.Enforces() {
		ctx = context.WithValue(ctx, formatKey{}, JSONMode)
	}
	return m.asked.Stream(ctx, spec.Within(m.bounded(req, spec)))
}

// bounded returns the request with the smallest of three answer limits: the request's, the configuration's and the model's.
func (m *Model) bounded(req *llm.Request, spec llm.Spec) *llm.Request {
	most := least(least(req.MaxTokens, m.setup.MaxTokens), spec.Output)
	if most == 0 && spec.Window > 0 {
		most = m.setup.DefaultMax
	}
	if most == req.MaxTokens {
		return req
	}
	bounded := *req
	bounded.MaxTokens = most
	return &bounded
}

// String returns the model and its address, for every verb of package fmt.
func (m *Model) String() string {
	info := m.Info()
	return fmt.Sprintf("%s.Model(%s at %s)", info.Provider, info.Model, info.Endpoint)
}

// Format keeps %+v and %#v from printing the configuration.
func (m *Model) Format(f fmt.State, _ rune) { fmt.Fprint(f, m.String()) }

// LogValue returns the same as String, for log/slog.
func (m *Model) LogValue() slog.Value { return slog.StringValue(m.String()) }
