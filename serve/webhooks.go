package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/webhook"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// Webhook is told when runs end or wait for answers, with an [api.Notice] that is signed as
// Standard Webhooks says. What it is told is a run of its own, which the journal keeps: it is
// tried again for three days, by any server, and may arrive more than once with the same id.
type Webhook struct {
	Name string // up to 64 of a-z, A-Z, 0-9, ".", "-" and "_"
	URL  string // of the receiver; with https, unless it is Private
	// Secrets begin with "whsec_". With two of them every notice has two signatures, so
	// that a receiver can change from one to the other.
	Secrets   []string
	Pipelines []string // whose runs it is told of; nil means all
	Tenant    string   // whose runs it is told of; empty means all
	Private   bool     // the receiver may have an address that is not of the public Internet
}

// A hook is a Webhook in use.
type hook struct {
	Webhook
	pipeline *Pipeline // sends a notice
	keys     [][]byte
	sender   *webhook.Sender
}

// notice is the input of a run that sends it.
type notice struct {
	ID   string `json:"id"`
	Body string `json:"body"` // JSON, byte for byte as it is signed
}

type receipt struct {
	ID string `json:"id"`
}

var (
	noticeType  = dag.NewType[notice]("webhook/notice")
	receiptType = dag.NewType[receipt]("webhook/receipt")
)

// hookName is the name of the pipeline of a webhook. No published pipeline has a name with a
// slash, so nobody can start one.
func hookName(name string) string { return "webhook/" + name }

// hookAtOnce bounds the notices that are sent at the same time.
const hookAtOnce = 16

func (s *Server) addWebhooks(all []Webhook) error {
	for _, w := range all {
		h := &hook{Webhook: w, sender: webhook.NewSender(w.Private)}
		wrong := func(err error) error { return fmt.Errorf("serve: webhook %q: %w", w.Name, err) }
		switch {
		case !pipelineName.MatchString(w.Name):
			return wrong(errors.New("want a name of up to 64 of a-z, A-Z, 0-9, \".\", \"-\" and \"_\", a letter or digit first"))
		case s.hooks[hookName(w.Name)] != nil:
			return wrong(errors.New("two have this name"))
		case len(w.Secrets) == 0 || len(w.Secrets) > 2:
			return wrong(errors.New("want one secret, or two while it is changed"))
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
				s.cfg.Log.Warn("a webhook is told of a pipeline that this server does not publish", "webhook", w.Name, "pipeline", name)
			}
		}
		h.pipeline = &Pipeline{Name: hookName(w.Name), Grant: []string{}, Ashlar: stone.Func("send", noticeType, receiptType,
			func(ctx context.Context, n notice) (receipt, error) { return receipt{n.ID}, s.send(ctx, h, n) })}
		s.hooks[h.pipeline.Name] = h
	}
	return nil
}

// send sends a notice once.
func (s *Server) send(ctx context.Context, h *hook, n notice) error {
	select {
	case s.sending <- struct{}{}:
		defer func() { <-s.sending }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	err := h.sender.Send(ctx, h.URL, n.ID, []byte(n.Body), h.keys...)
	result := "ok"
	if err != nil {
		result = "failed"
	}
	s.meters.webhooks.Add(1, result)
	if status := webhook.StatusError(0); errors.As(err, &status) && status == 410 {
		return stone.Fail(goneKind, "%v", err)
	}
	return err
}

// goneKind is the failure of a receiver that wants no more.
const goneKind = "gone"

// owed returns the webhooks that are told of the runs of a pipeline.
func (s *Server) owed(pipeline string, who Principal) (names []string) {
	for _, h := range s.hooks {
		if (h.Pipelines == nil || slices.Contains(h.Pipelines, pipeline)) && (h.Tenant == "" || h.Tenant == who.Tenant) {
			names = append(names, h.Name)
		}
	}
	slices.Sort(names)
	return names
}

// notify tells the webhooks of a run that it has ended or waits, once.
func (s *Server) notify(ctx context.Context, info journal.RunInfo) error {
	src, _ := sourceOf(info)
	who := Principal{Tenant: info.Labels[tenantLabel]}
	for _, name := range src.Webhooks {
		h := s.hooks[hookName(name)]
		if h == nil {
			continue // it was removed
		}
		switch info.State {
		case journal.Done, journal.Failed, journal.Canceled:
			described := run(who, info)
			n := api.Notice{Type: "run." + string(info.State), Timestamp: info.Ended, Run: &described}
			if err := s.tell(ctx, h, who, n, info.ID); err != nil {
				return err
			}
		case journal.Waiting:
			all, err := s.cfg.Journal.Questions(ctx, info.ID)
			if err != nil {
				return err
			}
			for _, q := range all {
				if !q.Open() {
					continue
				}
				asked := question(who, q)
				n := api.Notice{Type: "question.asked", Timestamp: q.Asked, Question: &asked}
				if err := s.tell(ctx, h, who, n, info.ID, q.Path, q.Problem); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// tell starts the run that sends a notice, unless it exists. The parts say what it is about.
func (s *Server) tell(ctx context.Context, h *hook, who Principal, n api.Notice, about ...string) error {
	text, err := json.Marshal(append(about, h.Name, n.Type, n.Timestamp.Format(time.RFC3339Nano)))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(text)
	id := "msg_" + hex.EncodeToString(sum[:16])
	key := keyOf(who, "webhook-"+id)
	if _, err := s.exactly(ctx, key); !errors.Is(err, journal.ErrNoRun) {
		return err
	}
	if text, err = json.Marshal(n); err != nil {
		return err
	}
	_, _, err = s.launch(task{
		Pipeline: h.pipeline, source: source{Published: h.pipeline.Name, Grant: []string{}},
		run:  stone.Config{RunID: key, Grant: []string{}, Input: dag.Of(noticeType.With(notice{ID: id, Body: string(text)}))},
		keep: journal.Options{Labels: who.labels()},
	})
	return err
}

// retryFor is how long a notice is tried again.
const retryFor = 72 * time.Hour

// again notes when to send a notice again that was not accepted: after as much time as has
// passed since the first try, so that any server finds the same time in the journal.
func (s *Server) again(info journal.RunInfo) {
	age := info.Ended.Sub(info.Started)
	if age > retryFor || info.Failure != nil && info.Failure.Kind == goneKind {
		s.meters.webhooks.Add(1, "dropped")
		s.cfg.Log.Warn("a webhook was given up", "run", info.ID)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.unsent[info.ID] = info.Ended.Add(min(max(age, s.cfg.Scan), time.Hour))
}

// sendAgain sends the notices whose time has come.
func (s *Server) sendAgain(ctx context.Context) {
	s.mu.Lock()
	var due []string
	for id, at := range s.unsent {
		if time.Now().After(at) && len(due) < resumeAtOnce {
			due = append(due, id)
			delete(s.unsent, id)
		}
	}
	s.mu.Unlock()
	for _, id := range due {
		if info, err := s.exactly(ctx, id); err == nil && info.State == journal.Failed {
			_, _ = s.resume(ctx, info, task{quiet: true}) // or the server is closing
		}
	}
}

// findUnsent finds what a server that died has not told: the runs since a time that have ended
// or wait, and notices that were not accepted.
func (s *Server) findUnsent(ctx context.Context, since time.Time) error {
	for _, h := range s.hooks {
		failed := journal.Query{Pipeline: h.pipeline.Name, States: []journal.State{journal.Failed}, Since: since}
		err := s.each(ctx, failed, func(info journal.RunInfo) error {
			s.again(info)
			return nil
		})
		if err != nil {
			return err
		}
	}
	stopped := journal.Query{States: []journal.State{journal.Done, journal.Failed, journal.Canceled, journal.Waiting}, Since: since}
	return s.each(ctx, stopped, func(info journal.RunInfo) error { return s.notify(ctx, info) })
}

// each calls do with each run that a query selects.
func (s *Server) each(ctx context.Context, q journal.Query, do func(journal.RunInfo) error) error {
	for q.Limit = maxPage; ; {
		runs, err := s.cfg.Journal.Runs(ctx, q)
		if err != nil {
			return err
		}
		for _, info := range runs {
			if err := do(info); err != nil {
				return err
			}
		}
		if len(runs) < q.Limit {
			return nil
		}
		q.Before = runs[len(runs)-1].ID
	}
}

// runWebhooks sends what is not sent yet, until the server ends.
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
