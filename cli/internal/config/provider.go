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

// A provider is a model server and its protocol.
type provider struct {
	name       string
	configured bool
	protocol   string
	url        string       // "" means the URL of the protocol's owner
	key        kinds.Secret // zero for a server without a key
	extra      map[string]any
	watch      func() *llm.Watcher // nil watches nothing
	limiter    *limit.Limiter      // of all its models
	retry      llm.Retry
	timeouts   llm.Timeouts
}

// owners are the providers that need no configuration.
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
				if m.At("max").Int(&p.retry.Max, 0, 100) && p.retry.Max == 0 { // in data, 0 means no retries
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
		if p.protocol == "" { // a fault; uses of the provider are checked as if it had another protocol
			p.protocol = Protocols[0]
		}
		r.providers[name] = p
	})
}

// readLimits reads the limits of a provider. If several processes share them, this process gets an equal share.
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

// positive reads a duration for which zero in Go means the default.
func positive(m *form.Map, key string, to *time.Duration) {
	if m.At(key).Duration(to) && *to == 0 {
		m.FaultAt(key, form.OutOfRange, "expected at least 1, found 0")
	}
}

func (r *reader) providerNames() []string { return slices.Sorted(maps.Keys(r.providers)) }

// client returns a client for a model.
func (p *provider) client(model string) llm.Model { return p.connect(Connection{Model: model}) }

// connect returns a client for c.Model. The key is read when it is used, and again when the server refuses it, so a key can be
// replaced without a restart.
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

// Client returns a client for to.Model, which names a model or a capability that calls one, at the named provider or, for "", the
// configured one. It returns nil if the configuration has none.
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

// asked returns the provider and name of a model, or of a capability's model.
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

// Providers are the names of the configured providers.
func (c *Config) Providers() (names []string) {
	for name, p := range c.providers {
		if p.configured {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// credentials returns the function that reads the key of a client, or [llm.NoKey] without a key.
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

// host returns the address of the server.
func (p *provider) host() string {
	return p.client("any").(llm.Informer).Info().Endpoint
}

// protocols are the model protocols, by the names that users write.
var protocols = map[string]struct {
	env     string // the variable with the provider's key
	connect func(Connection) llm.Model
}{
	"anthropic":        {"ANTHROPIC_API_KEY", connectAnthropic},
	"gemini":           {"GEMINI_API_KEY", connectGemini},
	"openai":           {"OPENAI_API_KEY", connectOpenAI("")},
	"openai-chat":      {"OPENAI_API_KEY", connectOpenAI(openai.ChatCompletions)},
	"openai-responses": {"OPENAI_API_KEY", connectOpenAI(openai.Responses)},
}

// Protocols lists the names of the protocols. "openai" means Responses for OpenAI's own servers and Chat Completions for all
// others; two more names select one of them explicitly.
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
	KeyFunc    llm.KeyFunc // replaces Key; may be nil
	Extra      map[string]any
	Repetition func() *llm.Watcher
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
