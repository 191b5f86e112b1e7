package config

import (
	"maps"
	"math"
	"slices"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/answers"
	"github.com/stonelayer/stone/call/command"
	"github.com/stonelayer/stone/call/model"
	"github.com/stonelayer/stone/call/rest"
	"github.com/stonelayer/stone/internal/edn"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/plan"
)

func (r *reader) llm(m *form.Map, at *kinds.Reached) kinds.Builder {
	c := model.Config{Schema: r.App.Schema}
	m.Need("provider", "model")
	kinds.SomeText(m, "model", &at.Model)
	prompts := map[string]form.Value{}
	var p *provider
	if v := m.At("provider"); v.Name(&at.Provider) {
		kinds.CheckEach(v, "provider", r.providerNames())
		if p = r.providers[at.Provider]; p != nil {
			at.At = p.host()
		}
		if p != nil && p.key != (kinds.Secret{}) {
			r.Reader.Secrets = append(r.Reader.Secrets, p.key)
		}
	}
	_, declared := m.Field("cap/cost")
	m.At("max-tokens").Int(&c.MaxTokens, 1, 1<<30)
	m.At("params").Map(func(m *form.Map) { readParams(m, &c.Params) })
	m.At("prompts").Map(func(m *form.Map) {
		r.Text(m, "default", &c.Prompt)
		r.Text(m, "role", &c.Role)
		c.Intents = map[string]string{}
		m.At("intents").Entries(func(intent string, v form.Value) {
			prompts[intent], c.Intents[intent] = v, r.TextOf(v)
		})
	})
	return func(meta call.Metadata) (call.Capability, error) {
		for _, intent := range slices.Sorted(maps.Keys(prompts)) {
			if meta.Intents != nil && !slices.Contains(meta.Intents, intent) {
				prompts[intent].Unknown("intent of this capability", intent, meta.Intents...)
			}
		}
		c.Model = p.client(at.Model)
		if declared || at.Priced != "" { // even if the price is zero
			c.Model = llm.Priced(c.Model, meta.Cost.Price)
		}
		if err := c.Fits(at.Model, r.Row(at.Provider, at.Model).spec(), meta); err != nil {
			return call.Capability{}, err
		}
		return model.New(meta, c), c.Check()
	}
}

func (r *reader) answers(m *form.Map, at *kinds.Reached) kinds.Builder {
	c := answers.Config{Schema: r.App.Schema}
	m.Need("file")
	r.Path(m, "file", &c.File)
	at.At = c.File
	kinds.SomeText(m, "model", &c.Model)
	at.Model = c.Model // the table may have a price for the model
	m.At("key").Entries(func(field string, v form.Value) {
		if c.Key == nil {
			c.Key = answers.Key{}
		}
		c.Key[field] = path(v)
	})
	for name, to := range map[string]*answers.Path{"text": &c.Text, "usage": &c.Usage, "latency": &c.Latency} {
		if v, ok := m.Field(name); ok {
			*to = path(v)
		}
	}
	return func(meta call.Metadata) (call.Capability, error) { return answers.New(meta, c), c.Check() }
}

// path reads the path of a value in a row: the name of a column, or the names of nested fields.
func path(v form.Value) (p answers.Path) {
	if v.EDN().Kind() == edn.KindString {
		return answers.Path{v.EDN().Text()}
	}
	if v.Texts((*[]string)(&p)) && len(p) == 0 {
		v.Fault(form.Invalid, "expected a column, or a vector of nested field names")
	}
	return p
}

// program reads the fields that describe a program: command, dir, env and limits.
func (r *reader) program(m *form.Map) (c command.Config) {
	m.Need("command")
	r.Path(m, "dir", &c.Dir)
	c.Command = r.Argv(m, c.Dir)
	c.Env = r.Env(m)
	m.At("max-output").Int(&c.MaxOutput, 1, 1<<30)
	m.At("loopback").Bool(&c.Loopback)
	c.Scope = r.Scope(m)
	return c
}

func (r *reader) http(m *form.Map, at *kinds.Reached) kinds.Builder {
	c := rest.Config{Header: map[string]rest.Value{}}
	m.Need("url")
	r.Address(m, "url", &c.URL)
	at.At = c.URL
	for name, v := range r.Values(m, "headers") {
		c.Header[name] = rest.Value{Text: v.Text, Env: v.Secret.Env, File: v.Secret.File}
	}
	m.At("max-body").Int(&c.MaxBody, 1, 1<<30)
	c.Scope = r.Scope(m)
	return func(meta call.Metadata) (call.Capability, error) { return rest.New(meta, c), c.Check() }
}

func (r *reader) plan(m *form.Map, at *kinds.Reached) kinds.Builder {
	m.Need("file")
	r.Path(m, "file", &at.At)
	var p *plan.Plan
	if v, ok := m.Field("file"); ok && at.At != "" {
		if data, ok := r.ReadFile(v, at.At); ok {
			var err error
			if p, err = plan.Read(data); err != nil {
				v.Fault(form.Invalid, "%s: %v", kinds.Shown(at.At), err)
			}
		}
	}
	return func(meta call.Metadata) (call.Capability, error) { return plan.Capability(meta, p) }
}

// readParams reads the parameters of requests to a model.
func readParams(m *form.Map, to *llm.Params) {
	number := func(key string, to **float64, high float64) {
		var v float64
		if m.At(key).Float(&v, 0, high) {
			*to = &v
		}
	}
	number("temperature", &to.Temperature, 2)
	number("top-p", &to.TopP, 1)
	m.At("stop").Texts(&to.Stop)
	var seed int
	if m.At("seed").Int(&seed, math.MinInt32, math.MaxInt32) {
		to.Seed = new(int64(seed))
	}
	kinds.SomeText(m, "tool-choice", &to.ToolChoice)
	var parallel bool
	if m.At("parallel-tools").Bool(&parallel) {
		to.ParallelTools = &parallel
	}
	kinds.SomeText(m, "effort", &to.Effort)
	kinds.SomeText(m, "service-tier", &to.ServiceTier)
	kinds.SomeText(m, "cache-ttl", &to.CacheTTL)
	m.At("metadata").Entries(func(name string, v form.Value) {
		var text string
		if v.Text(&text) {
			if to.Metadata == nil {
				to.Metadata = map[string]string{}
			}
			to.Metadata[name] = text
		}
	})
}
