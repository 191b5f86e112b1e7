package config

import (
	"cmp"
	"path/filepath"
	"slices"

	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/llm"
	"github.com/stonelayer/stone/llm/gemini"
	"github.com/stonelayer/stone/llm/openai"
)

// readSearch reads the section search: where the index of the project is, how documents are split, who makes
// vectors, and who orders passages.
func (r *reader) readSearch(m *form.Map) {
	s := &r.Reader.Search
	s.Index = filepath.Join(r.Reader.Dir, Name, "index.db")
	m.At("search").Map(func(m *form.Map) {
		r.Index(m, &s.Index)
		r.Reranker(m, &s.Rerank)
		m.At("size").Int(&s.Size, 64, 1<<16)
		if most := cmp.Or(s.Size, 1600) / 2; m.At("overlap").Int(&s.Overlap, 0, most) && s.Overlap == 0 {
			s.Overlap = -1 // none; 0 is the default
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
}

// embedder makes the client of an embedder; nil if the protocol has none.
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
