package config

import (
	"math"
	"net/url"
	"slices"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/llm"
)

// A Model is a row of the model table. It contains the known facts about a model and their date.
type Model struct {
	Model         string   `json:"model"`
	Provider      string   `json:"provider,omitempty"` // "" means any provider
	Window        int      `json:"window,omitempty"`   // maximum tokens of prompt and answer; 0 means unknown
	Output        int      `json:"output,omitempty"`   // maximum tokens of an answer; 0 means unknown
	Can           []string `json:"can,omitempty"`      // nil means unknown
	*budget.Price          // nil means unknown
	Date          string   `json:"date"`
	Caps          []string `json:"capabilities,omitempty"` // capabilities that call the model
}

func (r *reader) readModels(m *form.Map) {
	m.At("models").Each(func(_ int, v form.Value) {
		var row Model
		good := v.Map(func(m *form.Map) {
			m.Need("model", "date")
			kinds.SomeText(m, "model", &row.Model)
			if v := m.At("provider"); v.Name(&row.Provider) {
				kinds.CheckEach(v, "provider", r.providerNames())
			}
			readPrice(m, &row)
			m.At("window").Int(&row.Window, 1, math.MaxInt32)
			m.At("output").Int(&row.Output, 1, math.MaxInt32)
			if v := m.At("can"); v.NameSet(&row.Can) {
				kinds.CheckEach(v, "ability", []string{"audio", "files", "images", "schema", "thinking", "tools", "video"})
				row.Can = append([]string{}, row.Can...)
			}
			if m.At("date").Text(&row.Date) {
				if _, err := time.Parse(time.DateOnly, row.Date); err != nil {
					m.FaultAt("date", form.Invalid, "expected the day when this was looked up, such as \"2026-11-21\"")
				}
			}
		})
		twice := func(q Model) bool { return q.Model == row.Model && q.Provider == row.Provider }
		if good && slices.ContainsFunc(r.Models, twice) {
			v.Fault(form.Duplicate, "duplicate row of %q", row.Model)
		}
		r.Models = append(r.Models, row)
	})
	r.Table = r.table()
}

// readPrice reads the price, which may be missing.
func readPrice(m *form.Map, row *Model) {
	const in, out = "usd-per-mtok-in", "usd-per-mtok-out"
	var price budget.Price
	form.Into(m, &price)
	for _, key := range []string{in, out, "usd-per-mtok-cache-read", "usd-per-mtok-cache-write", "usd-per-mtok-cache-write-1h", "usd-per-1000-searches"} {
		if _, ok := m.Field(key); ok {
			row.Price = &price
		}
	}
	if row.Price != nil {
		m.Need(in, out)
	}
}

// Row returns the row for a provider's model, or nil if the table has none. A row that names the provider takes precedence over a
// row without a provider.
func (c *Config) Row(provider, model string) (found *Model) {
	for i := range c.Models {
		if row := &c.Models[i]; row.Model == model && (row.Provider == provider || row.Provider == "" && found == nil) {
			found = row
		}
	}
	return found
}

// spec returns the facts of the row as an llm.Spec.
func (m *Model) spec() llm.Spec {
	if m == nil {
		return llm.Spec{}
	}
	return llm.Spec{Price: m.Price, Window: m.Window, Output: m.Output, Can: m.Can}
}

// table returns the table of models that pipelines call directly. The provider of a model with an endpoint is the provider
// configured for that server; any other model names its provider.
func (r *reader) table() llm.Table {
	servers := map[string]*provider{}
	for _, name := range slices.Backward(r.providerNames()) {
		p := r.providers[name]
		if server := serverOf(p.host()); servers[server] == nil || p.configured {
			servers[server] = p
		}
	}
	return func(info llm.Info) llm.Spec {
		p := servers[serverOf(info.Endpoint)]
		if info.Endpoint == "" {
			p = r.providers[info.Provider]
		}
		if p == nil {
			return r.Row("", info.Model).spec()
		}
		s := r.Row(p.name, info.Model).spec()
		s.Limiter = p.limiter
		return s
	}
}

// serverOf returns the scheme and host of an address.
func serverOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
