package config

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/internal/limit"
	"github.com/stonelayer/stone/internal/reasons"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/anthropic"
	"github.com/stonelayer/stone/llm/gemini"
	"github.com/stonelayer/stone/llm/openai"
)

// A provider is the configuration of a model server.
type provider struct {
	name       string
	configured bool
	protocol   string
	url        string       // "" means the URL of the protocol's owner
	key        kinds.Secret // zero for a server without a key
	extra      map[string]any
	watch      func() *llm.Watcher // returns the watcher of calls; nil means none
	limiter    *limit.Limiter      // limiter shared by all models of the provider
	retry      llm.Retry
	timeouts   llm.Timeouts
}

// owners maps names to the providers that can be used without configuration.
var owners = map[string]*provider{
	"openai":    {name: "openai", protocol: "openai", key: kinds.Secret{Env: "OPENAI_API_KEY"}},
	"anthropic": {name: "anthropic", protocol: "anthropic", key: kinds.Secret{Env: "ANTHROPIC_API_KEY"}},
	"gemini":    {name: "gemini", protocol: "gemini", key: kinds.Secret{Env: "GEMINI_API_KEY"}},
}

func (r *reader) readProviders(m *form.Map) {
	for name, p := range owners {
		own := *p
		own.limiter = new(limit.Limiter)
		r.providers[name] = &own
	}
	m.At("providers").Entries(func(name string, v form.Value) {
		p := &provider{name: name, configured: true}
		read := func(m *form.Map) {
			own := owners[name]
			if own != nil {
				p.protocol = own.protocol
			} else {
				m.Need("protocol", "url")
			}
			m.At("protocol").OneOf(&p.protocol, Protocols...)
			r.Address(m, "url", &p.url)
			p.key = r.Secret(m, "key")
			if p.key == (kinds.Secret{}) && p.url == "" && own != nil {
				p.key = own.key
			}
			var extra json.RawMessage
			if m.At("extra").JSON(&extra) && (json.Unmarshal(extra, &p.extra) != nil || p.extra == nil) {
				m.FaultAt("extra", form.Invalid, "expected a map")
			}
			watched := false
			if m.At("repetition").Bool(&watched); watched {
				p.watch = llm.NewWatcher
			}
			p.limiter = limit.New(readLimits(m.At("limits")))
			m.At("retry").Map(func(m *form.Map) {
				if m.At("max").Int(&p.retry.Max, 0, 100) && p.retry.Max == 0 { // in a configuration, 0 means no retries
					p.retry.Max = -1
				}
				positive(m, "wait-ms", &p.retry.Wait)
				positive(m, "max-wait-ms", &p.retry.MaxWait)
			})
			m.At("timeouts").Map(func(m *form.Map) {
				positive(m, "first-byte-ms", &p.timeouts.FirstByte)
				positive(m, "silence-ms", &p.timeouts.Silence)
				positive(m, "total-ms", &p.timeouts.Total)
			})
		}
		r.Reader.Of("provider "+name, func() { v.Map(read) })
		if p.protocol == "" { // a missing protocol is a fault; assume one, to check where the provider is used
			p.protocol = Protocols[0]
		}
		r.providers[name] = p
	})
}

// readLimits reads the limits of a provider. If several processes share the limits, this process gets an equal share.
func readLimits(v form.Value) (l limit.Limits) {
	v.Map(func(m *form.Map) {
		processes, most := 1, math.MaxInt32
		all := map[string]*int{"requests-per-minute": &l.RequestsPerMinute, "tokens-per-minute": &l.TokensPerMinute, "concurrency": &l.Concurrency}
		for key, to := range all {
			if m.At(key).Int(to, 1, math.MaxInt32) {
				most = min(most, *to)
			}
		}
		if m.At("processes").Int(&processes, 1, math.MaxInt32) && processes > most {
			m.FaultAt("processes", form.OutOfRange, "expected at most %d, so that each process has a part of every limit, found %d", most, processes)
		}
		for _, to := range all {
			*to /= processes
		}
	})
	return l
}

// positive reads a duration of at least 1 ms, because in Go zero would mean the default.
func positive(m *form.Map, key string, to *time.Duration) {
	if m.At(key).Duration(to) && *to == 0 {
		m.FaultAt(key, form.OutOfRange, "expected at least 1, found 0")
	}
}

func (r *reader) providerNames() []string { return slices.Sorted(maps.Keys(r.providers)) }

// client returns a client for a model.
func (p *provider) client(model string) llm.Model { return p.connect(Connection{Model: model}) }

// connect returns a client for c.Model. The key is read when it is used, and again if the server rejects it, so a key can be
// replaced without restarting the program.
func (p *provider) connect(c Connection) llm.Model {
	extra := maps.Clone(p.extra)
	if extra == nil {
		extra = c.Extra
	}
	maps.Copy(extra, c.Extra)
	c.URL, c.Extra, c.Repetition, c.Limiter, c.Retry, c.Timeouts = p.url, extra, p.watch, p.limiter, p.retry, p.timeouts
	c.Key, c.KeyFunc = p.credentials()
	return Connect(p.protocol, c)
}

// Client returns a client for to.Model, which names a model or a capability that calls a model. The client calls the model at
// the named provider or, if provider is "", at the provider configured for the model. If there is no such provider, Client
// returns nil.
func (c *Config) Client(provider string, to Connection) llm.Model {
	p := c.providers[provider]
	if provider == "" {
		provider, to.Model = c.asked(to.Model)
		p = c.providers[provider]
	} else if p != nil && !p.configured {
		p = nil
	}
	if p == nil {
		return nil
	}
	return p.connect(to)
}

// asked returns the provider and the name of a model. If name is the name of a capability, the model is the one that the
// capability calls.
func (c *Config) asked(name string) (provider, model string) {
	all := slices.Concat(c.Capabilities, c.Tools)
	for _, row := range c.Models {
		all = append(all, kinds.Reached{Provider: row.Provider, Model: row.Model})
	}
	i := slices.IndexFunc(all, func(r kinds.Reached) bool { return r.Provider != "" && r.ID == name })
	if i < 0 {
		i = slices.IndexFunc(all, func(r kinds.Reached) bool { return r.Provider != "" && r.Model == name })
	}
	if name == "" || i < 0 {
		return "", name
	}
	return all[i].Provider, all[i].Model
}

// Providers returns the names of the configured providers.
func (c *Config) Providers() (names []string) {
	for name, p := range c.providers {
		if p.configured {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// credentials returns the function that reads the key of a client, or [llm.NoKey] if the server needs no key.
func (p *provider) credentials() (llm.Secret, llm.KeyFunc) {
	if p.key == (kinds.Secret{}) {
		return llm.NoKey, nil
	}
	return "", func(context.Context) (llm.Secret, time.Time, error) {
		key, err := p.key.Read()
		if err != nil {
			err = fmt.Errorf("provider %s: %w", p.name, err)
			return "", time.Time{}, &call.Error{Type: reasons.Unavailable, Message: err.Error(), Cause: err}
		}
		return key, time.Time{}, nil
	}
}

// host returns the address to which the provider's clients send requests.
func (p *provider) host() string {
	return p.client("any").(llm.Informer).Info().Endpoint
}

// protocols maps the names of model protocols, as users write them, to their clients.
var protocols = map[string]struct {
	env     string // environment variable that contains the provider's key
	connect func(Connection) llm.Model
}{
	"anthropic":        {"ANTHROPIC_API_KEY", connectAnthropic},
	"gemini":           {"GEMINI_API_KEY", connectGemini},
	"openai":           {"OPENAI_API_KEY", connectOpenAI("")},
	"openai-chat":      {"OPENAI_API_KEY", connectOpenAI(openai.ChatCompletions)},
	"openai-responses": {"OPENAI_API_KEY", connectOpenAI(openai.Responses)},
}

// Protocols lists the names of the model protocols. The name "openai" means Responses for OpenAI's own servers and Chat
// Completions for all others; two further names select one of them explicitly.
var Protocols = slices.Sorted(maps.Keys(protocols))

// KeyEnv returns the environment variable that holds the key of a protocol's provider.
func KeyEnv(protocol string) string { return protocols[protocol].env }

// KeyEnvs returns the environment variables that hold the keys of all providers.
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
	KeyFunc    llm.KeyFunc // used instead of Key; may be nil
	Extra      map[string]any
	Repetition func() *llm.Watcher
	Limiter    *limit.Limiter
	HTTPClient *http.Client
	Retry      llm.Retry
	Timeouts   llm.Timeouts
	Once       bool // each call is a single request, without retries
}

// Connect returns a client for a model that uses the named protocol, one of Protocols.
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
