package anthropic

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/wire"
	"github.com/stonelayer/stone/llm/repetition"
)

// Config says how a model is reached and asked. The zero value asks
// api.anthropic.com with the key from the environment; the model must be named here
// or in each request.
type Config struct {
	// Model is asked when a request names none.
	Model string
	// URL is the server's base, with or without the version, or the full address that
	// ends in /messages. Default: ANTHROPIC_BASE_URL from the environment, or else
	// https://api.anthropic.com.
	URL string
	// Key is sent as x-api-key. Default: ANTHROPIC_API_KEY from the environment,
	// whatever the URL; set it when URL names somebody else's server.
	Key llm.Secret
	// Header is added to every request and replaces what the package would send
	// (anthropic-version, for one).
	Header map[string]llm.Secret
	// Extra is merged into the body of every request, at the top level; nil removes a
	// field. The fields model, system, messages, max_tokens, tools, response_format and
	// stream are refused.
	Extra map[string]any
	// MaxTokens bounds answers for which the request sets no limit. Default 4096: the
	// protocol demands a limit.
	MaxTokens int
	// MaxContinuations is how often a paused turn is sent again. 0 means 8, negative
	// leaves it to the caller, who gets the reply with stop reason pause_turn.
	MaxContinuations int

	// Repetition makes the watchers of one attempt; nil watches nothing. See
	// repetition.Guard.
	Repetition func() *repetition.Watcher
	// MaxRetries is how often a model that got stuck is asked again. 0 means 3,
	// negative not at all.
	MaxRetries int

	Timeouts          llm.Timeouts
	Retry             llm.Retry
	RequestsPerMinute int          // 0 is no limit; shared by all that use the Model
	Concurrency       int          // requests at the same time; likewise
	HTTPClient        *http.Client // default: one with a transport shared by all models
}

const (
	defaultURL = "https://api.anthropic.com"
	apiVersion = "2023-06-01"
)

// reserved are the fields that Extra must not set.
var reserved = []string{"model", "system", "messages", "max_tokens", "tools", "response_format", "stream"}

// Model asks a model over Messages. It may be used by many goroutines.
type Model struct {
	config Config
	client *wire.Client
	err    error     // what is wrong with the configuration
	asked  llm.Model // the same model, with a guard if there is one
}

// New returns a Model. It does not use the network and does not fail: what is wrong
// with the configuration is reported by Check, and by the first use.
func New(c Config) *Model {
	m := &Model{}
	if c.URL == "" {
		c.URL = os.Getenv("ANTHROPIC_BASE_URL")
	}
	defaultedURL := c.URL == ""
	if defaultedURL {
		c.URL = defaultURL
	}
	if c.Key == "" {
		c.Key = llm.Secret(os.Getenv("ANTHROPIC_API_KEY"))
	}
	if c.MaxTokens <= 0 {
		c.MaxTokens = 4096
	}
	if c.MaxContinuations == 0 {
		c.MaxContinuations = 8
	}
	if c.MaxRetries == 0 {
		c.MaxRetries = 3
	}
	c.URL = wire.CompleteURL(c.URL, "/messages")
	own := map[string]string{"anthropic-version": apiVersion}
	if c.Key != "" {
		own["x-api-key"] = string(c.Key)
	}
	header := wire.Header(c.Header, own)
	var errs []error
	if defaultedURL && header.Get("x-api-key") == "" && header.Get("Authorization") == "" {
		errs = append(errs, errors.New("no key for "+defaultURL+": set Config.Key or ANTHROPIC_API_KEY"))
	}
	errs = append(errs, wire.CheckExtra(c.Extra, reserved))
	client, err := wire.New(wire.Options{
		URL: c.URL, Key: c.Key, Header: header, HTTP: c.HTTPClient, Timeouts: c.Timeouts, Retry: c.Retry,
		RequestsPerMinute: c.RequestsPerMinute, Concurrency: c.Concurrency,
	})
	if err := errors.Join(append(errs, err)...); err != nil {
		m.err = fmt.Errorf("anthropic: bad Config: %w", wire.OneLine(err))
	}
	m.config, m.client, m.asked = c, client, caller{m}
	if c.Repetition != nil {
		m.asked = repetition.Guard(m.asked, c.Repetition, c.MaxRetries)
	}
	return m
}

// Check reports what is wrong with the configuration, all of it in one line.
func (m *Model) Check() error { return m.err }

// Info names the model.
func (m *Model) Info() llm.Info {
	info := llm.Info{Provider: "anthropic", Model: m.config.Model}
	if m.client != nil {
		info.Endpoint = m.client.Endpoint()
	}
	return info
}

// String names the model and where it is, for every verb of package fmt.
func (m *Model) String() string {
	info := m.Info()
	return fmt.Sprintf("anthropic.Model(%s at %s)", info.Model, info.Endpoint)
}

// Format keeps %+v and %#v from printing the configuration.
func (m *Model) Format(f fmt.State, _ rune) { fmt.Fprint(f, m.String()) }

// LogValue is what log/slog shows.
func (m *Model) LogValue() slog.Value { return slog.StringValue(m.String()) }
