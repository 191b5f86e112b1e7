package config

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/repetition"
)

// A provider is a server of models and its protocol.
type provider struct {
	name     string
	protocol string
	url      string       // "" is that of the protocol's owner
	key      kinds.Secret // zero for a server that wants no key
	extra    map[string]any
	watch    func() *repetition.Watcher // nil watches nothing
}

// owners are the providers that need not be configured.
var owners = map[string]*provider{
	"openai":    {name: "openai", protocol: "openai", key: kinds.Secret{Env: "OPENAI_API_KEY"}},
	"anthropic": {name: "anthropic", protocol: "anthropic", key: kinds.Secret{Env: "ANTHROPIC_API_KEY"}},
	"gemini":    {name: "gemini", protocol: "gemini", key: kinds.Secret{Env: "GEMINI_API_KEY"}},
}

func (r *reader) readProviders(m *form.Map) {
	for name, p := range owners {
		r.providers[name] = p
	}
	m.Entries("providers", func(name string, v form.Value) {
		p := &provider{name: name}
		v.Map(func(m *form.Map) {
			own := owners[name]
			if own != nil {
				p.protocol = own.protocol
			} else {
				m.Need("protocol", "url")
			}
			m.OneOf("protocol", &p.protocol, Protocols...)
			kinds.Address(m, "url", &p.url)
			p.key = r.Secret(m, "key")
			if p.key == (kinds.Secret{}) && p.url == "" && own != nil {
				p.key = own.key
			}
			r.object(m, "extra", &p.extra)
			watched := false
			if m.Bool("repetition", &watched); watched {
				p.watch = repetition.New
			}
		})
		r.providers[name] = p
	})
}

func (r *reader) providerNames() []string { return slices.Sorted(maps.Keys(r.providers)) }

// object reads a field as an object of JSON.
func (r *reader) object(m *form.Map, key string, to *map[string]any) {
	var data json.RawMessage
	if !m.JSON(key, &data) {
		return
	}
	if err := json.Unmarshal(data, to); err != nil || *to == nil {
		m.FaultAt(key, form.Invalid, "expected a map")
	}
}

// client makes the client of a model. The key is read when it is used, and again when the
// server refuses it, so that a key can be replaced without a restart.
func (p *provider) client(model string) llm.Model {
	none, key := llm.NoKey, llm.KeyFunc(nil)
	if p.key != (kinds.Secret{}) {
		none, key = "", p.read
	}
	return Connect(p.protocol, Connection{Model: model, URL: p.url, Key: none, KeyFunc: key, Extra: p.extra, Repetition: p.watch})
}

// read is the llm.KeyFunc of the provider.
func (p *provider) read(context.Context) (llm.Secret, time.Time, error) {
	key, err := p.key.Read()
	if err != nil {
		err = fmt.Errorf("the key of the provider %s: %w", p.name, err)
		return "", time.Time{}, &call.Error{Type: call.Unavailable, Message: err.Error(), Cause: err}
	}
	return key, time.Time{}, nil
}

// host returns the address of the server.
func (p *provider) host() string {
	return p.client("any").(llm.Informer).Info().Endpoint
}

// A price is what the tokens of a model cost.
type price struct {
	model, provider string
	cost            budget.Price
	date            string // of when it was looked up
}

// A Model is a row of the model table: what its owner found out about a model, and when.
type Model struct {
	Model    string   `json:"model"`
	Provider string   `json:"provider,omitempty"` // "" is any
	Window   int      `json:"window,omitempty"`   // tokens of prompt and answer; 0 is unknown
	Can      []string `json:"can,omitempty"`
	budget.Price
	Date string   `json:"date"`
	Caps []string `json:"capabilities,omitempty"` // that ask it at this price
}

func (r *reader) readPrices(m *form.Map) {
	m.Each("prices", func(_ int, v form.Value) {
		var p price
		var row Model
		good := v.Map(func(m *form.Map) {
			m.Need("model", "usd-per-mtok-in", "usd-per-mtok-out", "date")
			kinds.SomeText(m, "model", &p.model)
			if v, ok := m.Field("provider"); ok && v.Name(&p.provider) {
				kinds.CheckEach(v, "provider", r.providerNames())
			}
			call.ReadPrice(m, &p.cost)
			m.Int("window", &row.Window, 1, math.MaxInt32)
			m.NameSet("can", &row.Can)
			if m.Text("date", &p.date) {
				if _, err := time.Parse(time.DateOnly, p.date); err != nil {
					m.FaultAt("date", form.Invalid, "expected the day when the price was looked up, as \"2026-11-21\"")
				}
			}
		})
		twice := func(q price) bool { return q.model == p.model && q.provider == p.provider }
		if good && slices.ContainsFunc(r.prices, twice) {
			v.Fault(form.Duplicate, "there is another price of %q", p.model)
		}
		r.prices = append(r.prices, p)
		row.Model, row.Provider, row.Price, row.Date = p.model, p.provider, p.cost, p.date
		r.Models = append(r.Models, row)
	})
}

// price finds the price of a model. A price with its provider takes precedence.
func (r *reader) price(provider, model string) (found price, ok bool) {
	for _, p := range r.prices {
		if p.model == model && (p.provider == provider || p.provider == "" && !ok) {
			found, ok = p, true
		}
	}
	return found, ok
}

// priced sets the cost of a model from the price list, unless the capability has its
// own.
func (r *reader) priced(a *kinds.Reached, m *call.Metadata) {
	p, ok := r.price(a.Provider, a.Model)
	if a.Model == "" || !ok || m.Cost.USD != 0 || m.Cost.Price != (budget.Price{}) {
		return
	}
	m.Cost.Price, a.Priced = p.cost, p.date
}
