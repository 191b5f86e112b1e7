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
	// Model is the name of the model for requests that do not name one.
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
	// KeyFunc, if not nil, returns the key in place of Key. It is called again before the key expires, and when the server rejects
	// the key. For Azure, it can return Microsoft Entra tokens.
	KeyFunc llm.KeyFunc
	// Edit changes or signs each request, including repeated ones, before it is sent: headers, address and, with GetBody, the
	// body. If Edit is set, no key from the environment is sent. Secrets that Edit adds are not removed from errors.
	Edit func(*http.Request) error
	// Header is added to every request. It replaces headers that the package sets itself.
	Header map[string]llm.Secret
	// Extra is merged into the body of every request, at the top level; nil removes a field (stream_options, for servers that
	// reject it). The fields that this package sets from Config and Request are rejected: with Chat Completions, model, messages,
	// max_tokens, tools, response_format and stream; with Responses, model, input, instructions, max_output_tokens,
	// previous_response_id, tools and stream.
	Extra map[string]any
	// MaxTokens is the maximum number of tokens per answer if the request does not set a limit. 0 means that the server chooses
	// the limit.
	MaxTokens int

	// The following two fields apply only to Chat Completions.

	// MaxTokensField is the name of the field that contains the limit in a request: "max_tokens" or "max_completion_tokens". The
	// default is "max_completion_tokens" for OpenAI's and Azure's own hosts, and "max_tokens" for all others.
	MaxTokensField string
	// ThinkTags determines how thinking between <think> and </think> in the text is handled. By default, thinking before the text
	// becomes reasoning, whereas tags within the text stay, since the text may be about them. Use "open" for servers whose
	// template contains the opening tag, so that answers start within the thinking. With "keep", all tags stay in the text.
	ThinkTags string

	// Stateful applies only to Responses. If it is set, the server stores each response, and a request names the previous response
	// and contains only the messages after it. Later changes to older messages have no effect. By default, nothing is stored, and
	// each request contains the whole conversation.
	Stateful bool

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

// Protocol is one of the protocols that OpenAI has defined.
type Protocol string

// The protocols.
const (
	ChatCompletions Protocol = "chat-completions"
	Responses       Protocol = "responses"
)

// dialect describes the differences between the two protocols.
type dialect struct {
	protocol string // name of the protocol in package rules
	endpoint string
	reserved []string // fields of the body that Extra must not set
	params   wire.ParamRules
	media    wire.MediaRule
	body     func(m *Model, req *llm.Request, model string, way wire.Way) (object, error)
	decoder  func(m *Model, requestID string) wire.Decoder
}

var dialects = map[Protocol]*dialect{ChatCompletions: &chatDialect, Responses: &responsesDialect}

type object = map[string]any

// Model is a client for one of the protocols. It is safe for concurrent use. It is an llm.Model, an llm.Checker and an
// llm.Informer.
type Model struct {
	common
	config  Config
	dialect *dialect
	echo    echo
	renamed atomic.Bool   // the server expects the other name for the answer limit
	dropped atomic.Uint32 // has one bit for each optional field that the server has rejected
}

type common = wire.Model

// New returns a Model with the given configuration. It does not use the network. If the configuration is invalid, Check and the
// first use return an error.
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

// setup returns the settings shared by the clients of all endpoints.
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

// choose returns the dialect, or an error if the configuration has a field that does not apply to it.
func (c *Config) choose(s *wire.Setup) (*dialect, error) {
	var named Protocol // protocol that the URL indicates
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

// learn reports whether the server has rejected a field that can be renamed or omitted. If so, it remembers this for later
// requests.
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

// optional contains the names of fields that a request can omit if the caller has not set them.
var optional = []string{"stream_options", "prompt_cache_key"}

// maxField returns the name of the field that contains the answer limit in a request.
func (m *Model) maxField() string {
	switch name := m.config.MaxTokensField; {
	case !m.renamed.Load():
		return name
	case name == "max_tokens":
		return "max_completion_tokens"
	}
	return "max_tokens"
}

// caller is a Model without the guard against repetition.
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
