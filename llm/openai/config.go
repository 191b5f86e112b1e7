package openai

import (
	"context"
	"iter"
	"net/http"
	"strings"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/internal/wire"
	"github.com/stonelayer/stone/llm/repetition"
)

// Config configures a Model. The zero value sends requests to api.openai.com with the key
// from the environment; the model must be named here or in each request.
type Config struct {
	// Model is the default for requests that name none.
	Model string
	// URL is the server's base, with or without the version ("http://localhost:8000",
	// "https://api.groq.com/openai/v1"), or the full address that ends in
	// /chat/completions. Default: OPENAI_BASE_URL from the environment, or else
	// https://api.openai.com.
	URL string
	// Key is sent as a bearer token. Default: OPENAI_API_KEY from the environment, if URL is
	// empty or on api.openai.com; other servers get only a key that is set here.
	// llm.NoKey sends none in any case.
	Key llm.Secret
	// Header is added to every request and replaces the package's own headers.
	Header map[string]llm.Secret
	// Extra is merged into the body of every request, at the top level; nil removes a
	// field (stream_options, for servers that refuse it). The fields model, messages,
	// max_tokens, tools, response_format and stream are refused.
	Extra map[string]any
	// MaxTokens bounds answers for which the request sets no limit. 0 leaves it to the
	// server.
	MaxTokens int
	// MaxTokensField is the name under which the limit is sent: "max_tokens", or
	// "max_completion_tokens", which is the default for OpenAI's and Azure's own hosts.
	MaxTokensField string
	// ThinkTags determines how <think> in the text is read.
	ThinkTags ThinkTags
	// EchoReasoning returns the thinking of earlier turns as reasoning_content, which
	// DeepSeek requires while tools are in use.
	EchoReasoning bool

	// Repetition makes the watcher of each channel of an attempt; nil disables watching.
	// See repetition.Guard.
	Repetition func() *repetition.Watcher
	// MaxRetries bounds the retries after a model got stuck in a loop. 0 means 3,
	// negative none.
	MaxRetries int

	Timeouts          llm.Timeouts
	Retry             llm.Retry
	RequestsPerMinute int          // 0 means unlimited; shared by all users of the Model
	Concurrency       int          // requests at the same time; 0 means unlimited, shared likewise
	HTTPClient        *http.Client // default: one with a transport shared by all models
}

// ThinkTags determines how thinking between <think> and </think> in the text is found.
type ThinkTags int

const (
	// ThinkLeading reads thinking before the text as reasoning. Tags within the text stay,
	// since the text may be about them.
	ThinkLeading ThinkTags = iota
	// ThinkOpen is for servers whose template contains the opening tag, so that an answer
	// starts within the thinking.
	ThinkOpen
	// ThinkKeep leaves all tags in the text.
	ThinkKeep
)

// reserved are the fields that Extra must not set.
var reserved = []string{"model", "messages", "max_tokens", "tools", "response_format", "stream"}

// Model is a client of the Chat Completions protocol. It is safe for concurrent use. It is
// an llm.Model, an llm.Checker and an llm.Informer.
type Model struct {
	common
	config Config
}

type common = wire.Model

// New returns a Model. It does not use the network and does not fail: Check, and the first
// use, report an invalid configuration.
func New(c Config) *Model {
	s := wire.Setup{
		Provider: "openai", Env: "OPENAI", DefaultURL: "https://api.openai.com", Endpoint: "/chat/completions",
		Model: c.Model, Key: c.Key, Header: c.Header, Extra: c.Extra, Repetition: c.Repetition, MaxRetries: c.MaxRetries,
		Options: wire.Options{
			URL: c.URL, HTTP: c.HTTPClient, Timeouts: c.Timeouts, Retry: c.Retry,
			RequestsPerMinute: c.RequestsPerMinute, Concurrency: c.Concurrency,
		},
	}
	s.Defaults()
	if c.MaxTokensField == "" {
		c.MaxTokensField = maxTokensField(s.URL)
	}
	s.Reserved = append(reserved[:len(reserved):len(reserved)], c.MaxTokensField)
	var own map[string]string
	if s.Key != "" {
		own = map[string]string{"Authorization": "Bearer " + string(s.Key)}
	}
	m := &Model{config: c}
	m.Init(s, own, []string{"Authorization"}, caller{m})
	return m
}

// maxTokensField returns the field's name for the host. OpenAI's newer models refuse
// the old one; other servers may not know the new one.
func maxTokensField(url string) string {
	host, _, _ := strings.Cut(strings.TrimPrefix(url, "https://"), "/")
	if host == "api.openai.com" || strings.HasSuffix(host, ".openai.azure.com") {
		return "max_completion_tokens"
	}
	return "max_tokens"
}

// caller is the Model without its guard.
type caller struct{ *Model }

func (c caller) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		body, err := c.body(req)
		if err != nil {
			yield(llm.Delta{Reply: &llm.Reply{}}, err)
			return
		}
		reply := c.Client.Stream(ctx, body, func(id string) wire.Decoder { return newChatDecoder(&c.config, id) }, yield)
		if reply != nil {
			yield(llm.Delta{Kind: llm.Done, Reply: reply}, nil)
		}
	}
}
