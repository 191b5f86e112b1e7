package config

import (
	"fmt"

	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/internal/webhook"
)

// A Webhook is a URL that a server calls when runs end or wait for answers.
type Webhook struct {
	Name, URL, Tenant string
	Pipelines         []string // nil for all
	Private           bool
	secrets           []kinds.Secret
}

// Secrets returns the secret of the webhook, followed by its old one if there is one.
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
		r.Webhooks = append(r.Webhooks, w)
	})
}
