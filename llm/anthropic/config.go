package anthropic

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/rules"
	"github.com/stonelayer/stone/llm/internal/wire"
)

// Config configures a Model. The zero value sends requests to api.anthropic.com with the
// key from the environment; the model must be named here or in each request.
type Config struct {
	// Model is the name of the model for requests that do not name one.
	Model string
	// URL is the server's base, with or without the version, or the full address that
	// ends in /messages. Default: ANTHROPIC_BASE_URL from the environment, or else
	// https://api.anthropic.com.
	URL string
	// Key is sent as x-api-key. Default: ANTHROPIC_API_KEY from the environment, if URL is empty or on api.anthropic.com; other
	// servers receive only a key that is set here. With llm.NoKey, no key is ever sent.
	Key llm.Secret
	// KeyFunc, if not nil, returns the key in place of Key. It is called again before the key expires, and when the server rejects
	// the key.
	KeyFunc llm.KeyFunc
	// Edit changes or signs each request, including repeated ones, before it is sent: headers, address and, with GetBody, the
	// body. If Edit is set, no key from the environment is sent. Secrets that Edit adds are not removed from errors.
	Edit func(*http.Request) error
	// Header is added to every request. It replaces headers that the package sets itself, such as anthropic-version.
	Header map[string]llm.Secret
	// Extra is merged into the body of every request, at the top level; nil removes a field. The fields model, system, messages,
	// max_tokens, tools, response_format and stream are rejected.
	Extra map[string]any
	// MaxTokens is the maximum number of tokens per answer. A request may set a lower limit. Because the protocol requires a
	// limit, 0 means the model's maximum in the table of models, or 16,384 if the model is not in the table.
	MaxTokens int
	// MaxContinuations is the maximum number of times that a paused turn is continued. 0 means 8. If it is negative, a paused turn
	// is not continued, and the caller receives the reply with the stop reason pause_turn.
	MaxContinuations int

	// Repetition creates the Watcher for each channel of an attempt. If it is nil, answers are not watched for repetition. See
	// llm.Guard.
	Repetition func() *llm.Watcher
	// MaxRetries is the maximum number of retries after the model has repeated itself. 0 means 3, and a negative value means none.
	MaxRetries int

	Timeouts         llm.Timeouts
	Retry            llm.Retry
	ProgressInterval time.Duration // time between two Progress deltas; default llm.ProgressInterval
	// Limiter limits the requests, tokens and concurrency of all models that share it. If it is nil, this Model has a Limiter of
	// its own, which obeys only the server's limits.
	Limiter    *llm.Limiter
	HTTPClient *http.Client // default: a client with a transport that all models share
}

const defaultMax = 16384

// reserved contains the names of the fields that Extra must not set.
var reserved = []string{"model", "system", "messages", "max_tokens", "tools", "response_format", "stream"}

// Model is a client of the Messages protocol. It is safe for concurrent use. It is an
// llm.Model, an llm.Checker and an llm.Informer.
type Model struct {
	common
	config Config
	loose  atomic.Bool // the provider has rejected strict tools
}

type common = wire.Model

// New returns a Model with the given configuration. It does not use the network. If the configuration is invalid, Check and the
// first use return an error.
func New(c Config) *Model {
	s := wire.Setup{
		Provider: "anthropic", Env: "ANTHROPIC", DefaultURL: "https://api.anthropic.com", Endpoint: "/messages", Reserved: reserved, Params: params, Media: media,
		Protocol: rules.Messages, MostField: []string{"max_tokens"}, Kept: []string{contentKey}, MaxTokens: max(c.MaxTokens, 0), DefaultMax: defaultMax,
		Model: c.Model, Key: c.Key, Header: c.Header, Extra: c.Extra, Repetition: c.Repetition, MaxRetries: c.MaxRetries,
		Options: wire.Options{
			KeyFunc: c.KeyFunc, Edit: c.Edit, KeyHeader: "x-api-key",
			URL: c.URL, HTTP: c.HTTPClient, Timeouts: c.Timeouts, Retry: c.Retry, ProgressInterval: c.ProgressInterval,
			// "cache_read_input_tokens do not count towards ITPM" (Anthropic's page "Rate limits").
			Limiter: c.Limiter, FreeCache: true,
		},
	}
	s.Defaults()
	if c.MaxContinuations == 0 {
		c.MaxContinuations = 8
	}
	own := map[string]string{"anthropic-version": "2023-06-01"}
	m := &Model{config: c}
	m.Init(s, own, []string{"x-api-key", "Authorization"}, caller{m})
	return m
}
