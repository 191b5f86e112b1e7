package openai

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/rules"
	"github.com/stonelayer/stone/llm/internal/wire"
)

// Config configures a Model. The zero value sends requests to api.openai.com with the key
// from the environment; the model must be named here or in each request.
type Config struct {
	// Model is the default model of requests.
	Model string
	// URL is the server's base, with or without the version ("http://localhost:8000",
	// "https://api.groq.com/openai/v1"), or the full address that ends in
	// /chat/completions or /responses. Default: OPENAI_BASE_URL from the environment, or else
	// https://api.openai.com.
	URL string
	// Protocol is the server's protocol. Default: the protocol in whose path URL ends, or else Responses for OpenAI's own servers
	// and ChatCompletions for all other servers.
	Protocol Protocol
	// Key is sent as a bearer token. Default: OPENAI_API_KEY from the environment, if URL is empty or on api.openai.com; other
	// servers receive only a key that is set here. With llm.NoKey, no key is ever sent.
	Key llm.Secret
	// KeyFunc replaces Key for keys that change. It is called again before the key expires, and when the server rejects it. For
	// Azure, it can return Microsoft Entra tokens.
	KeyFunc llm.KeyFunc
	// Edit changes or signs each request, including repeated ones, before it is sent: headers, address and, with GetBody, the
	// body. If Edit is set, no key from the environment is sent. Secrets that Edit adds are not removed from errors.
	Edit func(*http.Request) error
	// Header is added to every request and replaces the package's own headers.
	Header map[string]llm.Secret
	// Extra is merged into the body of every request, at the top level; nil removes a field (stream_options, for servers that
	// reject it). The fields that this package sets from Config and Request are rejected: with Chat Completions, model, messages,
	// max_tokens, tools, response_format and stream; with Responses, model, input, instructions, max_output_tokens,
	// previous_response_id, tools and stream.
	Extra map[string]any
	// MaxTokens limits the length of answers for which the request does not set a limit. 0 leaves the limit to the server.
	MaxTokens int

	// The following two fields are for Chat Completions only.

	// MaxTokensField is the name of the field in which the limit is sent: "max_tokens", or "max_completion_tokens", which is the
	// default for OpenAI's and Azure's own hosts.
	MaxTokensField string
	// ThinkTags determines how thinking between <think> and </think> in the text is handled. By default, thinking before the text
	// becomes reasoning, whereas tags within the text stay, since the text may be about them. Use "open" for servers whose
	// template contains the opening tag, so that answers start within the thinking. With "keep", all tags stay in the text.
	ThinkTags string

	// Stateful is for Responses only. The server then stores each response, and a request names the previous response and
	// contains only the messages after it. Later changes to older messages have no effect. By default, nothing is stored, and
	// each request contains the whole conversation.
	Stateful bool

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

// Protocol is a protocol that OpenAI defined.
type Protocol string

// The protocols.
const (
	ChatCompletions Protocol = "chat-completions"
	Responses       Protocol = "responses"
)

// dialect describes how a protocol differs from the other.
type dialect struct {
	protocol string // the protocol's name in package rules
	endpoint string
	reserved []string // the fields of the body that Extra must not set
	params   wire.ParamRules
	media    wire.MediaRule
	body     func(m *Model, req *llm.Request, model string, way wire.Way) (object, error)
	decoder  func(m *Model, requestID string) wire.Decoder
}

var dialects = map[Protocol]*dialect{ChatCompletions: &chatDialect, Responses: &responsesDialect}

type object = map[string]any

// Model is a client of one of the protocols. It is safe for concurrent use. It is an
// llm.Model, an llm.Checker and an llm.Informer.
type Model struct {
	common
	config  Config
	dialect *dialect
	echo    echo
	renamed atomic.Bool   // whether the server expects the other name for the answer limit
	dropped atomic.Uint32 // one bit for each optional field that the server rejects
}

type common = wire.Model

// New returns a Model. It does not use the network and does not fail: Check, and the first
// use, report an invalid configuration.
func New(c Config) *Model {
	s := c.setup()
	d, err := c.choose(&s)
	s.Endpoint, s.Reserved, s.Params, s.Media, s.Fault = d.endpoint, d.reserved, d.params, d.media, err
	s.Protocol, s.MostField, s.Kept, s.MaxTokens = d.protocol, []string{"max_output_tokens"}, kept, c.MaxTokens
	s.Defaults()
	if d == &chatDialect {
		c.MaxTokensField = cmp.Or(c.MaxTokensField, maxTokensField(s.URL))
		s.Reserved = append(slices.Clip(s.Reserved), c.MaxTokensField)
		s.MostField = []string{c.MaxTokensField}
	}
	m := &Model{config: c, dialect: d}
	m.Init(s, nil, []string{"Authorization"}, caller{m})
	return m
}

// setup returns the settings that the clients of all endpoints share.
func (c *Config) setup() wire.Setup {
	return wire.Setup{
		Provider: "openai", Env: "OPENAI", DefaultURL: "https://api.openai.com", JSONMode: true,
		Model: c.Model, Key: c.Key, Header: c.Header, Extra: c.Extra, Repetition: c.Repetition, MaxRetries: c.MaxRetries,
		Options: wire.Options{
			KeyFunc: c.KeyFunc, Edit: c.Edit, KeyHeader: "Authorization", KeyPrefix: "Bearer ",
			URL: c.URL, HTTP: c.HTTPClient, Timeouts: c.Timeouts, Retry: c.Retry, ProgressInterval: c.ProgressInterval,
			Limiter: c.Limiter,
		},
	}
}

// choose returns the dialect, and reports configuration fields that do not apply to it.
func (c *Config) choose(s *wire.Setup) (*dialect, error) {
	var named Protocol // the protocol that the URL indicates
	for p, d := range dialects {
		if s.Names(d.endpoint) {
			named = p
		}
	}
	protocol := cmp.Or(c.Protocol, named)
	switch {
	case protocol == "" && s.Own():
		protocol = Responses
	case protocol == "":
		protocol = ChatCompletions
	}
	d := dialects[protocol]
	switch {
	case d == nil:
		return &chatDialect, fmt.Errorf("unknown Protocol %q: use ChatCompletions or Responses", protocol)
	case named != "" && named != protocol:
		return dialects[named], fmt.Errorf("Protocol is %q, but URL ends in %s", protocol, dialects[named].endpoint)
	case !slices.Contains([]string{"", "open", "keep"}, c.ThinkTags):
		return d, fmt.Errorf("unknown ThinkTags %q: use \"open\", \"keep\", or leave it out", c.ThinkTags)
	case d == &chatDialect && c.Stateful:
		return d, errors.New("Stateful is for Responses, but Protocol is ChatCompletions")
	case d == &responsesDialect && (c.MaxTokensField != "" || c.ThinkTags != ""):
		return d, errors.New("MaxTokensField and ThinkTags are for ChatCompletions, but Protocol is Responses")
	}
	return d, nil
}

// learn reports whether a server rejected a field that can be sent in another way, and remembers the rejection.
func (m *Model) learn(err error) bool {
	if m.echo.learn(err) {
		return true
	}
	refused, ok := errors.AsType[*llm.HTTPError](err)
	if !ok || m.dialect != &chatDialect || refused.Status != http.StatusBadRequest && refused.Status != http.StatusUnprocessableEntity {
		return false
	}
	for i, field := range optional {
		if bit := uint32(1) << i; strings.Contains(refused.Body, field) && m.dropped.Or(bit)&bit == 0 {
			return true
		}
	}
	return rules.OtherField(refused.Body) && m.renamed.CompareAndSwap(false, true)
}

// optional lists the fields that a request can omit if the caller has not set them.
var optional = []string{"stream_options", "prompt_cache_key"}

// maxField returns the name of the field for the answer limit.
func (m *Model) maxField() string {
	switch name := m.config.MaxTokensField; {
	case !m.renamed.Load():
		return name
	case name == "max_tokens":
		return "max_completion_tokens"
	}
	return "max_tokens"
}

// caller is the Model without its guard.
type caller struct{ *Model }

func (c caller) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		reply := c.Ask(ctx, req, wire.Question{
			Fields: func(req *llm.Request, model string, way wire.Way) (object, error) {
				return c.dialect.body(c.Model, req, model, way)
			},
			Relax:   c.learn,
			Decoder: func(id string) wire.Decoder { return c.dialect.decoder(c.Model, id) },
		}, yield)
		if reply != nil {
			yield(llm.Delta{Kind: llm.Done, Reply: reply}, nil)
		}
	}
}
