package config

import (
	"maps"
	"net/http"
	"slices"

	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
	"github.com/stonelayer/stone/llm/gemini"
	"github.com/stonelayer/stone/llm/limit"
	"github.com/stonelayer/stone/llm/openai"
	"github.com/stonelayer/stone/llm/repetition"
)

// protocols are the protocols of models, by the names that users write.
var protocols = map[string]struct {
	env     string // the variable with the key of the provider
	connect func(Connection) llm.Model
}{
	"anthropic":        {"ANTHROPIC_API_KEY", connectAnthropic},
	"gemini":           {"GEMINI_API_KEY", connectGemini},
	"openai":           {"OPENAI_API_KEY", connectOpenAI("")},
	"openai-chat":      {"OPENAI_API_KEY", connectOpenAI(openai.ChatCompletions)},
	"openai-responses": {"OPENAI_API_KEY", connectOpenAI(openai.Responses)},
}

// Protocols are the names of the protocols. "openai" is Responses for OpenAI's own servers and Chat
// Completions for all others; two more names choose one of them.
var Protocols = slices.Sorted(maps.Keys(protocols))

// KeyEnv returns the variable with the key of a protocol's provider.
func KeyEnv(protocol string) string { return protocols[protocol].env }

// KeyEnvs returns the variables with the keys of all providers.
func KeyEnvs() []string {
	var names []string
	for _, p := range protocols {
		names = append(names, p.env)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Connection is the client configuration shared by all protocols.
type Connection struct {
	Model      string
	URL        string // "" means the URL of the protocol's provider
	Key        llm.Secret
	KeyFunc    llm.KeyFunc // in place of Key; nil if there is none
	Extra      map[string]any
	Repetition func() *repetition.Watcher
	Limiter    *limit.Limiter
	HTTPClient *http.Client
	Retry      llm.Retry
	Timeouts   llm.Timeouts
	Once       bool // a call is a single request, without retries
}

// Connect returns a model of one of the Protocols.
func Connect(protocol string, c Connection) llm.Model { return protocols[protocol].connect(c) }

func (c *Connection) retry() llm.Retry {
	if c.Once {
		return llm.Retry{Max: -1}
	}
	return c.Retry
}

func connectAnthropic(c Connection) llm.Model {
	a := anthropic.Config{Model: c.Model, URL: c.URL, Key: c.Key, KeyFunc: c.KeyFunc, Extra: c.Extra, Repetition: c.Repetition, HTTPClient: c.HTTPClient, Limiter: c.Limiter, Retry: c.retry(), Timeouts: c.Timeouts}
	if c.Once {
		a.MaxContinuations = -1
	}
	return anthropic.New(a)
}

func connectGemini(c Connection) llm.Model {
	return gemini.New(gemini.Config{Model: c.Model, URL: c.URL, Key: c.Key, KeyFunc: c.KeyFunc, Extra: c.Extra,
		Repetition: c.Repetition, HTTPClient: c.HTTPClient, Limiter: c.Limiter, Retry: c.retry(), Timeouts: c.Timeouts})
}

func connectOpenAI(p openai.Protocol) func(Connection) llm.Model {
	return func(c Connection) llm.Model {
		return openai.New(openai.Config{Protocol: p, Model: c.Model, URL: c.URL, Key: c.Key, KeyFunc: c.KeyFunc, Extra: c.Extra,
			Repetition: c.Repetition, HTTPClient: c.HTTPClient, Limiter: c.Limiter, Retry: c.retry(), Timeouts: c.Timeouts})
	}
}
