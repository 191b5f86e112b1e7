package gemini

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/rules"
	"github.com/stonelayer/stone/llm/internal/wire"
)

// Config configures a Model. The zero value sends requests to
// generativelanguage.googleapis.com with the key from the environment; the model must be named
// here or in each request.
type Config struct {
	// Model is the default model of requests.
	Model string
	// URL is the server's base, with or without the version, or the path of a publisher at
	// Vertex AI. Default: GEMINI_BASE_URL from the environment, or else
	// https://generativelanguage.googleapis.com.
	URL string
	// Key is sent as x-goog-api-key. Default: GEMINI_API_KEY from the environment, if URL is empty or on
	// generativelanguage.googleapis.com; other servers receive only a key that is set here. With llm.NoKey, no key is ever sent.
	Key llm.Secret
	// KeyFunc replaces Key for keys that change. It is called again before the key expires, and when the server rejects it. At
	// Vertex AI, the key is sent as a bearer token.
	KeyFunc llm.KeyFunc
	// Edit changes or signs each request, including repeated ones, before it is sent: headers, address and, with GetBody, the
	// body. If Edit is set, no key from the environment is sent. Secrets that Edit adds are not removed from errors.
	Edit func(*http.Request) error
	// Header is added to every request and replaces the package's own headers.
	Header map[string]llm.Secret
	// Extra is merged into the body of every request, at the top level; nil removes a field. The fields of generationConfig are
	// added to the package's own, which take precedence. The fields contents, systemInstruction and tools are rejected.
	Extra map[string]any
	// MaxTokens limits the length of answers for which the request does not set a limit. 0 leaves the limit to the server.
	// Thinking counts too.
	MaxTokens int
	// NoStream requests each answer in one piece, for servers that cannot stream.
	NoStream bool

	// Repetition creates the watcher for each channel of an attempt; nil disables watching. See llm.Guard.
	Repetition func() *llm.Watcher
	// MaxRetries limits the retries after a model gets stuck in a loop. 0 means 3, and a negative value means none.
	MaxRetries int

	Timeouts         llm.Timeouts
	Retry            llm.Retry
	ProgressInterval time.Duration // the time between two Progress deltas; default llm.ProgressInterval
	// Limiter restricts the requests, tokens and concurrency of all models that share it. Nil means a Limiter for this Model
	// alone, with only the server's limits.
	Limiter    *llm.Limiter
	HTTPClient *http.Client // default: a client with a transport that all models share
}

// reserved are the fields that Extra must not set.
var reserved = []string{"contents", "systemInstruction", "tools"}

// Model is a client of the Gemini API. It is safe for concurrent use. It is an llm.Model, an
// llm.Checker and an llm.Informer.
type Model struct {
	common
	config Config
}

type common = wire.Model

// New returns a Model. It does not use the network and does not fail: Check, and the first
// use, report an invalid configuration.
func New(c Config) *Model {
	s := c.setup()
	s.JSONMode, s.Reserved, s.ParamsOf, s.Media = true, reserved, paramsOf, media
	s.Protocol, s.MostField, s.Kept, s.MaxTokens = rules.Gemini, []string{"generationConfig", "maxOutputTokens"}, []string{contentKey}, c.MaxTokens
	m := &Model{config: c}
	m.Init(s, nil, []string{"x-goog-api-key", "Authorization"}, caller{m})
	return m
}

// setup returns the settings that the clients of all methods share.
func (c *Config) setup() wire.Setup {
	s := wire.Setup{
		Provider: "gemini", Env: "GEMINI", DefaultURL: "https://generativelanguage.googleapis.com", Version: "v1beta", Endpoint: "/models",
		Model: c.Model, Key: c.Key, Header: c.Header, Extra: c.Extra, Repetition: c.Repetition, MaxRetries: c.MaxRetries,
		Options: wire.Options{
			KeyFunc: c.KeyFunc, Edit: c.Edit, KeyHeader: "x-goog-api-key",
			URL: c.URL, HTTP: c.HTTPClient, Timeouts: c.Timeouts, Retry: c.Retry, ProgressInterval: c.ProgressInterval,
			Limiter: c.Limiter,
		},
	}
	s.Defaults()
	if u, err := url.Parse(s.URL); err == nil && c.KeyFunc != nil && strings.HasSuffix(u.Host, "aiplatform.googleapis.com") {
		s.KeyHeader, s.KeyPrefix = "Authorization", "Bearer "
	}
	return s
}

// caller is the Model without its guard.
type caller struct{ *Model }

func (c caller) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		reply := c.Ask(ctx, req, wire.Question{
			Fields:  func(req *llm.Request, model string, way wire.Way) (object, error) { return c.fields(req, model, way) },
			Decoder: func(id string) wire.Decoder { return newDecoder(id) },
			Client:  c.at,
		}, yield)
		if reply != nil {
			yield(llm.Delta{Kind: llm.Done, Reply: reply}, nil)
		}
	}
}

// at returns a client for one method of a model. In this protocol, the model is part of the address.
func (c caller) at(model string) *wire.Client {
	model = url.PathEscape(strings.TrimPrefix(model, "models/"))
	if c.config.NoStream {
		return c.Client.Below(model+":generateContent", nil)
	}
	return c.Client.Below(model+":streamGenerateContent", url.Values{"alt": {"sse"}})
}
