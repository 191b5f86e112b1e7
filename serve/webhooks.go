package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/webhook"
	"github.com/stonelayer/stone/journal"
)

// Webhook receives an [api.Notice] when a run ends, waits for an answer or is refused, signed as in
// Standard Webhooks. Each notice is a run of its own, which the journal keeps: any server
// retries it for three days, and it may arrive more than once with the same id.
type Webhook struct {
	Name string // up to 64 of a-z, A-Z, 0-9, ".", "-" and "_"
	URL  string // of the receiver; with https, unless it is Private
	// Secrets begin with "whsec_". With two of them every notice has two signatures, so
	// that a receiver can change from one to the other.
	Secrets   []string
	Pipelines []string // only notices about runs of these; nil means all
	Tenant    string   // only notices about runs of this tenant; empty means all
	Private   bool     // the receiver may be outside the public Internet
}

// A hook is a Webhook in use.
type hook struct {
	Webhook
	pipeline *Pipeline // sends a notice
	keys     [][]byte
	sender   *webhook.Sender
	of       *Receivers // of runs; nil for a Webhook of the configuration

	mu        sync.Mutex
	receivers map[string]*receiver // by their names, as in receiver
}

// unsent is a notice that was not accepted.
type unsent struct {
	hook     *hook
	receiver string    // its name
	ended    time.Time // its last attempt; zero if another one counts for nothing
	at       time.Time // when it is tried again
}

// notice is the input of the run that sends it.
type notice struct {
	ID   string `json:"id"`
	Body string `json:"body"` // JSON, byte for byte as it is signed
	// To is the receiver of a run, of a tenant; nil for a Webhook.
	To     *Receiver `json:"to,omitempty"`
	Tenant string    `json:"tenant,omitempty"`
}

// receiver names the notice's receiver at its hook. A tenant whose receiver does not
// answer, or that names the receiver of another one, delays only itself.
func (n *notice) receiver() string {
	if n.To == nil {
		return ""
	}
	about, _ := json.Marshal([]string{n.Tenant, n.To.URL}) // texts have JSON
	return noticeID(about)
}

type receipt struct {
	ID string `json:"id"`
}

var (
	noticeType  = dag.NewType[notice]("webhook/notice")
	receiptType = dag.NewType[receipt]("webhook/receipt")
)

// hookName is the pipeline name of a webhook. No published pipeline has a name with a
// slash, so nobody can start one.
func hookName(name string) string { return webhook.Runs + name }

const (
	hookAtOnce = 16 // notices that are sent concurrently
	hooksOfOne = 8  // of those for the receivers of runs, for one tenant
)

func (s *Server) addWebhooks(all []Webhook) error {
	for _, w := range all {
		h := &hook{Webhook: w, receivers: map[string]*receiver{}, sender: webhook.NewSender(w.Private)}
		wrong := func(err error) error { return fmt.Errorf("serve: webhook %q: %w", w.Name, err) }
		switch {
		case !pipelineName.MatchString(w.Name):
			return wrong(errors.New("want a name of up to 64 of a-z, A-Z, 0-9, \".\", \"-\" and \"_\", a letter or digit first"))
		case s.hooks[hookName(w.Name)] != nil:
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
		s.addHook(h, s.sending)
	}
	return nil
}

// addHook adds the pipeline that sends the notices of a hook. They share places.
func (s *Server) addHook(h *hook, places *places) {
	h.pipeline = &Pipeline{Name: hookName(h.Name), Grant: []string{}, Ashlar: stone.Func("send", noticeType, receiptType,
		func(ctx context.Context, n notice) (receipt, error) {
			leave, err := places.enter(ctx, nil, n.Tenant)
			if err != nil {
				return receipt{}, err
			}
			defer leave()
			return receipt{n.ID}, s.send(ctx, h, n)
		})}
	s.hooks[h.pipeline.Name] = h
}

// send sends a notice once.
func (s *Server) send(ctx context.Context, h *hook, n notice) error {
	run, receiver := stone.In(ctx).RunID(), n.receiver()
	if !h.receiver(receiver).admits(run) { // while it waited for its place
		return errors.New("the receiver does not answer: this notice waits until it does")
	}
	url, header, keys := h.URL, map[string]string(nil), h.keys
	if n.To != nil {
		url, header, keys = n.To.URL, n.To.Header, n.To.keys()
	}
	err := h.sender.Send(ctx, url, n.ID, []byte(n.Body), header, keys...)
	result := "ok"
	if err != nil {
		result = "failed"
	}
	s.meters.webhooks.Add(1, result)
	if ctx.Err() == nil && h.receiver(receiver).tried(run, err, s.cfg.Scan) {
		s.hurry(h, receiver)
	}
	if status := webhook.StatusError(0); errors.As(err, &status) && status == 410 {
		return stone.Fail(goneKind, "%v", err)
	}
	return err
}

// receiverLabel is the label of a notice with the name of its receiver.
const receiverLabel = "receiver"

// goneKind is the failure of a notice whose receiver answers status 410: it is not retried.
const goneKind = "gone"

// owed returns the names of the webhooks for runs of a pipeline that the caller starts.
func (s *Server) owed(pipeline string, who Principal) (names []string) {
	for _, h := range s.hooks {
		if h.of == nil && (h.Pipelines == nil || slices.Contains(h.Pipelines, pipeline)) && (h.Tenant == "" || h.Tenant == who.Tenant) {
			names = append(names, h.Name)
		}
	}
	slices.Sort(names)
	return names
}

// retryFor is how long a notice is retried.
const retryFor = 72 * time.Hour

// again plans the next attempt at a notice that was not accepted: after as much time as has
// passed since the first attempt, so that every server computes the same time from the journal.
// It returns false if there is no next attempt.
func (s *Server) again(h *hook, info journal.RunInfo) bool {
	age := info.Ended.Sub(info.Started)
	if age > retryFor || info.Failure != nil && info.Failure.Kind == goneKind {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	pause := min(max(age, s.cfg.Scan), time.Hour)
	at := info.Ended.Add(pause)
	if time.Until(at) > pause { // the clock was set back
		at = time.Now().Add(pause)
	}
	s.unsent[info.ID] = unsent{h, info.Labels[receiverLabel], info.Ended, at}
	return true
}

// hurry makes the notices due of a receiver that answers again.
func (s *Server) hurry(h *hook, receiver string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, n := range s.unsent {
		if n.hook == h && n.receiver == receiver {
			s.unsent[id] = unsent{hook: h, receiver: receiver}
		}
	}
}

// sendAgain retries the notices that are due, and makes the missing ones.
func (s *Server) sendAgain(ctx context.Context) {
	s.mu.Lock()
	due := map[string]unsent{}
	for id, n := range s.unsent {
		if len(due) < resumeAtOnce && time.Now().After(n.at) && n.hook.receiver(n.receiver).admits(id) {
			due[id] = n
			delete(s.unsent, id)
		}
	}
	s.mu.Unlock()
	for id, n := range due {
		info, err := s.exactly(ctx, id)
		switch {
		case err != nil || info.State != journal.Failed:
		case !n.ended.IsZero() && !info.Ended.Equal(n.ended): // another server has tried it meanwhile
			s.again(n.hook, info)
		default:
			_, _ = s.resume(ctx, info, task{quiet: true}) // if that fails, the next search finds it
		}
	}
	for _, h := range s.hooks {
		since, up := h.missed()
		if len(up) == 0 {
			continue
		}
		if err := s.notifyAll(ctx, since); err != nil {
			for _, r := range up {
				r.misses(since)
			}
		}
	}
}

// findUnsent finds notices that a dead server left unsent: notices that were not accepted, and notices of
// runs that ended or started to wait since a time and that have no run of their own yet.
func (s *Server) findUnsent(ctx context.Context, since time.Time) error {
	for _, h := range s.hooks {
		failed := journal.Query{Pipeline: h.pipeline.Name, States: []journal.State{journal.Failed}, Since: time.Now().Add(-retryFor)}
		for info, err := range s.each(ctx, failed) {
			if err != nil {
				return err
			}
			s.again(h, info) // one that was given up is counted already
		}
	}
	return s.notifyAll(ctx, since)
}

// runWebhooks sends notices that were not sent, until the server ends.
func (s *Server) runWebhooks(ctx context.Context) {
	const search, overlap = 10 * time.Minute, time.Hour
	ticks := time.NewTicker(s.cfg.Scan)
	defer ticks.Stop()
	since := time.Now().Add(-retryFor)
	for next := since; ; {
		if now := time.Now(); now.After(next) {
			if err := s.findUnsent(ctx, since); err == nil {
				since = now.Add(-overlap)
			} else if ctx.Err() == nil && !s.closing() {
				s.cfg.Log.Error("search the journal for webhooks to send", "error", err)
			}
			next = now.Add(search)
		}
		s.sendAgain(ctx)
		select {
		case <-ticks.C:
		case <-s.drain:
			return
		case <-ctx.Done():
			return
		}
	}
}
