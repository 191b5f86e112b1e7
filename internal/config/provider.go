package config

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
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

// connect makes the client of a model. It reads the key.
func (p *provider) connect(model string) (llm.Model, error) {
	key := llm.NoKey
	if p.key != (kinds.Secret{}) {
		var err error
		if key, err = p.key.Read(); err != nil {
			return nil, fmt.Errorf("the key of the provider %s: %w", p.name, err)
		}
	}
	return p.client(model, key), nil
}

func (p *provider) client(model string, key llm.Secret) llm.Model {
	return Connect(p.protocol, Connection{Model: model, URL: p.url, Key: key, Extra: p.extra, Repetition: p.watch})
}

// host returns the address of the server.
func (p *provider) host() string {
	return p.client("any", llm.NoKey).(llm.Informer).Info().Endpoint
}

// lateModel is a model whose key is read when it is used.
type lateModel struct {
	*provider
	name string

	mu    sync.Mutex
	model llm.Model // nil until the key has been read
}

func (m *lateModel) get() (llm.Model, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.model != nil {
		return m.model, nil
	}
	model, err := m.connect(m.name)
	if err != nil {
		return nil, &call.Error{Type: call.Unavailable, Message: err.Error(), Cause: err}
	}
	m.model = model
	return model, nil
}

// Check implements llm.Checker, without the key.
func (m *lateModel) Check() error { return m.client(m.name, llm.NoKey).(llm.Checker).Check() }

// Info implements llm.Informer.
func (m *lateModel) Info() llm.Info { return m.client(m.name, llm.NoKey).(llm.Informer).Info() }

// Stream implements llm.Model.
func (m *lateModel) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Delta, error] {
	model, err := m.get()
	if err != nil {
		return func(yield func(llm.Delta, error) bool) { yield(llm.Delta{Reply: &llm.Reply{}}, err) }
	}
	return model.Stream(ctx, req)
}

// A price is what the tokens of a model cost.
type price struct {
	model, provider string
	cost            budget.Price
	date            string // of when it was looked up
}

func (r *reader) readPrices(m *form.Map) {
	m.Each("prices", func(_ int, v form.Value) {
		var p price
		good := v.Map(func(m *form.Map) {
			m.Need("model", "usd-per-mtok-in", "usd-per-mtok-out", "date")
			kinds.SomeText(m, "model", &p.model)
			if v, ok := m.Field("provider"); ok && v.Name(&p.provider) {
				kinds.CheckEach(v, "provider", r.providerNames())
			}
			call.ReadPrice(m, &p.cost)
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
