package config

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"slices"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/internal/webhook"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/gemini"
	"github.com/stonelayer/stone/llm/openai"
)

// A Webhook is a URL that a server calls when runs end or wait for answers.
type Webhook struct {
	Name, URL, Tenant string
	Pipelines         []string // nil means all pipelines
	Private           bool
	secrets           []kinds.Secret
}

// Secrets returns the webhook's secret, followed by its old secret if it has one.
func (w Webhook) Secrets() (all []string, err error) {
	for _, s := range w.secrets {
		secret, err := s.Read()
		if err != nil {
			return nil, fmt.Errorf("the secret of the webhook %s: %w", w.Name, err)
		}
		all = append(all, string(secret))
	}
	return all, nil
}

// readWebhooks reads the webhooks of a server.
func (r *reader) readWebhooks(m *form.Map) {
	m.At("webhooks").Entries(func(name string, v form.Value) {
		w := Webhook{Name: name}
		read := func(m *form.Map) {
			m.Need("url", "secret")
			m.At("tenant").Text(&w.Tenant)
			m.At("pipelines").Texts(&w.Pipelines)
			m.At("private").Bool(&w.Private)
			if m.At("url").Text(&w.URL) {
				if err := webhook.CheckURL(w.URL, w.Private); err != nil {
					m.FaultAt("url", form.Invalid, "%v", err)
				}
				r.Reach(m.At("url"), "sends requests to", kinds.Host(w.URL))
			}
			for _, key := range []string{"secret", "old-secret"} {
				r.Reader.Secret(m, key)
			}
		}
		w.secrets = r.Reader.Of("webhook "+name, func() { v.Map(read) })
		r.Contact("webhook "+name, "the webhook "+name+" sends the questions and results of runs to", w.URL, w.secrets)
		r.Webhooks = append(r.Webhooks, w)
	})
}

// mostName is the maximum length of a budget's name, which is limited because it is part of a key.
const mostName = 64

// readBudgets reads the shared budgets.
func (r *reader) readBudgets(m *form.Map) {
	m.At("budgets").Entries(func(name string, v form.Value) {
		b := budget.Rule{Shared: budget.Shared{Name: name}}
		if len(name) > mostName {
			v.Fault(form.Invalid, "expected a name of at most %d bytes", mostName)
		}
		v.Map(func(m *form.Map) {
			usd, bounded := m.Field("max-usd")
			form.Ptr(&b.Limits.USD, func(to *float64) bool { return usd.Float(to, 0, math.MaxFloat64) })
			for key, to := range map[string]**int{"max-tokens": &b.Limits.Tokens, "max-roundtrips": &b.Limits.Roundtrips} {
				n, given := m.Field(key)
				bounded = bounded || given
				form.Ptr(to, func(to *int) bool { return n.Int(to, 0, math.MaxInt) })
			}
			m.At("per").OneOf((*string)(&b.Per), string(budget.Day), string(budget.Month))
			m.At("pipeline").Text(&b.Pipeline)
			m.At("labels").Entries(func(name string, v form.Value) {
				value := ""
				v.Text(&value)
				if b.Labels == nil {
					b.Labels = map[string]string{}
				}
				b.Labels[name] = value
			})
			if !bounded {
				v.Fault(form.Invalid, "expected max-usd, max-tokens or max-roundtrips: a budget without them limits nothing")
			}
		})
		r.Budgets = append(r.Budgets, b)
	})
}

// ReadSection reads only one section of a configuration: of the given file or, if that is "", of the configuration in the nearest
// .stone directory. It also returns the name of the file. Without a configuration, r is nil.
func ReadSection(file, section string, linked *kinds.Set) (r *kinds.Reader, from string, err error) {
	if file == "" {
		dir, err := Find(".")
		if err != nil || dir == "" {
			return nil, "", err
		}
		if file, err = fileIn(dir); err != nil || file == "" {
			return nil, "", err
		}
	}
	v, err := parse(file)
	if err != nil {
		return nil, file, err
	}
	dir, err := projectOf(file)
	if err != nil {
		return nil, file, err
	}
	r = &kinds.Reader{Dir: dir, Parts: map[string]any{}}
	faults := form.Read(v, func(m *form.Map) {
		m.AllowRest()
		(&reader{Reader: r, linked: linked}).readSections(m, section)
	})
	return r, file, invalid(file, faults)
}

// readSearch reads the search section: the project's index, how documents are split into passages, the embedder and the reranker.
func (r *reader) readSearch(m *form.Map) {
	s := &r.Reader.Search
	s.Index = filepath.Join(r.Reader.Dir, Name, "index.db")
	m.At("search").Map(func(m *form.Map) {
		r.Index(m, &s.Index)
		r.Reranker(m, &s.Rerank)
		m.At("size").Int(&s.Size, 64, 1<<16)
		if most := cmp.Or(s.Size, 1600) / 2; m.At("overlap").Int(&s.Overlap, 0, most) && s.Overlap == 0 {
			s.Overlap = -1 // no overlap; 0 means the default
		}
		m.At("embedder").Map(func(m *form.Map) { r.readEmbedder(m, s) })
	})
}

func (r *reader) readEmbedder(m *form.Map, s *kinds.Search) {
	dimensions := 0
	m.Need("provider", "model")
	kinds.SomeText(m, "model", &s.Model)
	m.At("dimensions").Int(&dimensions, 1, 1<<16)
	v := m.At("provider")
	if !v.Name(&s.Provider) {
		return
	}
	kinds.CheckEach(v, "provider", r.providerNames())
	p := r.providers[s.Provider]
	if p == nil || s.Model == "" {
		return
	}
	if s.Embedder = p.embedder(s.Model, dimensions); s.Embedder == nil {
		v.Fault(form.Invalid, "the protocol %s has no embeddings: name a provider of the protocol openai or gemini", p.protocol)
		return
	}
	if err := s.Embedder.(llm.Checker).Check(); err != nil {
		v.Fault(form.Invalid, "%v", err)
	}
	if p.key != (kinds.Secret{}) {
		s.Secrets = []kinds.Secret{p.key}
		if !slices.Contains(r.Config.Secrets, p.key) {
			r.Config.Secrets = append(r.Config.Secrets, p.key)
		}
	}
	r.Contact("provider "+s.Provider, "search sends documents and questions to", s.Embedder.Info().Endpoint, s.Secrets)
}

// embedder returns a client for an embedder. It returns nil if the protocol does not support embeddings.
func (p *provider) embedder(model string, dimensions int) llm.Embedder {
	key, keys := p.credentials()
	extra := func(name string) map[string]any {
		if dimensions == 0 {
			return nil
		}
		return map[string]any{name: dimensions}
	}
	switch p.protocol {
	case "gemini":
		return gemini.NewEmbedder(gemini.Config{Model: model, URL: p.url, Key: key, KeyFunc: keys, Extra: extra("outputDimensionality"),
			Limiter: p.limiter, Retry: p.retry, Timeouts: p.timeouts})
	case "anthropic":
		return nil
	}
	return openai.NewEmbedder(openai.Config{Model: model, URL: p.url, Key: key, KeyFunc: keys, Extra: extra("dimensions"),
		Limiter: p.limiter, Retry: p.retry, Timeouts: p.timeouts})
}
