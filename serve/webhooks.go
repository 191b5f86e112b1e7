package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/stonelayer/stone/internal/webhook"
)

// A Webhook is a URL that receives an [api.Notice] when a run ends, waits for an answer or is refused. Notices are signed as
// described in Standard Webhooks. The journal records each notice together with the end of the run, whichever process writes it.
// Any server may send a notice and retry it for three days, so it can arrive more than once with the same id. Removing a run
// removes its notices.
type Webhook struct {
	Name string // at most 64 characters from a-z, A-Z, 0-9, ".", "-" and "_"
	URL  string // receiver's URL; https unless Private is set
	// Secrets begin with "whsec_". With two secrets, each notice has two signatures, so that a receiver can switch from one
	// secret to the other.
	Secrets   []string
	Pipelines []string // pipelines whose runs cause notices; nil means all
	Tenant    string   // tenant whose runs cause notices; empty means all
	Private   bool     // permits a receiver outside the public Internet
}

// A hook is a configured Webhook.
type hook struct {
	Webhook
	keys   [][]byte
	sender *webhook.Sender
}

func (s *Server) addWebhooks(all []Webhook) error {
	for _, w := range all {
		h := &hook{Webhook: w, sender: webhook.NewSender(w.Private)}
		wrong := func(err error) error { return fmt.Errorf("serve: webhook %q: %w", w.Name, err) }
		switch {
		case s.outbox.store == nil:
			return wrong(errNoOutbox)
		case !pipelineName.MatchString(w.Name):
			return wrong(errors.New("want a name of up to 64 of a-z, A-Z, 0-9, \".\", \"-\" and \"_\", a letter or digit first"))
		case s.outbox.hooks[w.Name] != nil:
			return wrong(errors.New("another webhook has this name: choose a different one"))
		case len(w.Secrets) == 0 || len(w.Secrets) > 2:
			return wrong(errors.New("want one secret, or two while you change it"))
		}
		if err := webhook.CheckURL(w.URL, w.Private); err != nil {
			return wrong(err)
		}
		for _, secret := range w.Secrets {
			key, err := webhook.Key(secret)
			if err != nil {
				return wrong(err)
			}
			h.keys = append(h.keys, key)
		}
		for _, name := range w.Pipelines {
			if s.pipelines[name] == nil {
				s.cfg.Log.Warn("a webhook names a pipeline that this server does not publish: check the name", "webhook", w.Name, "pipeline", name)
			}
		}
		s.outbox.hooks[w.Name] = h
	}
	return nil
}

// owes adds to a task's options the names of the webhooks to notify about the run.
func (s *Server) owes(_ context.Context, t *task) error {
	for _, h := range s.outbox.hooks {
		if (h.Pipelines == nil || slices.Contains(h.Pipelines, t.Name)) && (h.Tenant == "" || h.Tenant == t.who.Tenant) {
			t.keep.Notify = append(t.keep.Notify, h.Name)
		}
	}
	slices.Sort(t.keep.Notify)
	return nil
}
