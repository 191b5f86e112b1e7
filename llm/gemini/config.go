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
	// Model is the name of the model for requests that do not name one.
	Model string
	// URL is the server's base, with or without the version, or the path of a publisher at
	// Vertex AI. Default: GEMINI_BASE_URL from the environment, or else
	// https://generativelanguage.googleapis.com.
	URL string
	// Key is sent as x-goog-api-key. Default: GEMINI_API_KEY from the environment, if URL is empty or on
	// generativelanguage.googleapis.com; other servers receive only a key that is set here. With llm.NoKey, no key is ever sent.
	Key llm.Secret
	// KeyFunc, if not nil, returns the key in place of Key. It is called again before the key expires, and when the server rejects
	// the key. At Vertex AI, the key is sent as a bearer token.
	KeyFunc llm.KeyFunc
	// Edit changes or signs each request, including repeated ones, before it is sent: headers, address and, with GetBody, the
	// body. If Edit is set, no key from the environment is sent. Secrets that Edit adds are not removed from errors.
	Edit func(*http.Request) error
	// Header is added to every request. It replaces headers that the package sets itself.
	Header map[string]llm.Secret
	// Extra is merged into the body of every request, at the top level; nil removes a field. The fields of generationConfig are
	// added to the package's own, which take precedence. The fields contents, systemInstruction and tools are rejected.
	Extra map[string]any
	// MaxTokens is the maximum number of tokens per answer, including thinking, if the request does not set a limit. 0 means that
	// the server chooses the limit.
	MaxTokens int
	// NoStream means that each answer is requested in one piece. It is meant for servers that cannot stream.
	NoStream bool

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

// reserved contains the names of the fields that Extra must not set.
var reserved = []string{"contents", "systemInstruction", "tools"}

// Model is a client of the Gemini API. It is safe for concurrent use. It is an llm.Model, an
// llm.Checker and an llm.Informer.
type Model struct {
	common
	config Config
}

type common = wire.Model

// New returns a Model with the given configuration. It does not use the network. If the configuration is invalid, Check and the
// first use return an error.
func New(c Config) *Model {
	s := c.setup()
	s.JSONMode, s.Reserved, s.ParamsOf, s.Media = true, reserved, paramsOf, media
	s.Protocol, s.MostField, s.Kept, s.MaxTokens = rules.Gemini, []string{"generationConfig", "maxOutputTokens"}, []string{contentKey}, c.MaxTokens
	m := &Model{config: c}
	m.Init(s, nil, []string{"x-goog-api-key", "Authorization"}, caller{m})
	return m
}

// setup returns the settings shared by the clients of all methods.
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

// caller is a Model without the guard against repetition.
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

// at returns the client for one method of a model. In this protocol, the address contains the name of the model.
func (c caller) at(model string) *wire.Client {
	model = url.PathEscape(strings.TrimPrefix(model, "models/"))
	if c.config.NoStream {
		return c.Client.Below(model+":generateContent", nil)
	}
	return c.Client.Below(model+":streamGenerateContent", url.Values{"alt": {"sse"}})
}
