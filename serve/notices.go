package serve

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/webhook"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// notify starts the notices that the webhooks of a run that has ended or waits have not
// got yet.
func (s *Server) notify(ctx context.Context, info journal.RunInfo) (started []*active, err error) {
	note := func(run *active, err error) error {
		if run != nil {
			started = append(started, run)
		}
		return err
	}
	src, _ := sourceOf(info)
	who := Principal{Tenant: info.Labels[tenantLabel]}
	for _, name := range src.Webhooks {
		h := s.hooks[hookName(name)]
		if h == nil {
			continue // the configuration no longer has it
		}
		if r := h.receiver(""); r.waits() {
			r.misses(info.Ended)
			continue
		}
		switch info.State {
		case journal.Done, journal.Failed, journal.Canceled, journal.Refused:
			described := run(who, info)
			n := api.Notice{Type: "run." + string(info.State), Timestamp: info.Ended, Run: &described}
			if err := note(s.tell(ctx, h, who, n, info)); err != nil {
				return started, err
			}
		case journal.Waiting:
			all, err := s.cfg.Journal.Questions(ctx, info.ID)
			if err != nil {
				return started, err
			}
			for _, q := range all {
				if !q.Open() || asksForBatch(src, q) {
					continue
				}
				asked := question(who, q)
				n := api.Notice{Type: "question.asked", Timestamp: q.Asked, Question: &asked}
				if err := note(s.tell(ctx, h, who, n, info, q.Path, q.Problem)); err != nil {
					return started, err
				}
			}
		}
	}
	for _, h := range s.hooks {
		if h.of == nil {
			continue
		}
		all, err := h.of.notices(ctx, who, info)
		for _, n := range all {
			err = errors.Join(err, note(s.deliver(ctx, h, who, n, info)))
		}
		if err != nil {
			return started, err
		}
	}
	return started, nil
}

// tell starts the run that sends a notice about a run that has stopped, unless that run exists or
// the receiver is down. The parts in about identify the subject of the notice in the run.
func (s *Server) tell(ctx context.Context, h *hook, who Principal, n api.Notice, info journal.RunInfo, about ...string) (*active, error) {
	text, err := json.Marshal(append(append([]string{info.ID}, about...), h.Name, n.Type, n.Timestamp.Format(time.RFC3339Nano)))
	if err != nil {
		return nil, err
	}
	id := noticeID(text)
	if text, err = json.Marshal(n); err != nil {
		return nil, err
	}
	return s.deliver(ctx, h, who, notice{ID: id, Body: string(text)}, info)
}

// noticeID identifies a notice by what it is about.
func noticeID(about []byte) string {
	sum := sha256.Sum256(about)
	return "msg_" + hex.EncodeToString(sum[:16])
}

// deliver starts the run that sends a notice about a run that has stopped, as tell does.
func (s *Server) deliver(ctx context.Context, h *hook, who Principal, n notice, info journal.RunInfo) (*active, error) {
	key := keyOf(who, "webhook-"+n.ID)
	if _, err := s.exactly(ctx, key); !errors.Is(err, journal.ErrNoRun) {
		return nil, err
	}
	r := h.receiver(n.receiver())
	if !r.admits(key) {
		r.misses(info.Ended)
		return nil, nil
	}
	labels := who.labels()
	if n.To != nil {
		labels[webhook.Receives], labels[receiverLabel] = info.ID, n.receiver()
	}
	run, _, err := s.launch(task{
		Pipeline: h.pipeline, source: source{Published: h.pipeline.Name, Grant: []string{}},
		run:  stone.Config{RunID: key, Grant: []string{}, Input: dag.Of(noticeType.With(n))},
		keep: journal.Options{Labels: labels},
	})
	return run, err
}

// notifyAll makes the notices of the runs that ended or started to wait since a time. A few are on
// their way at once: it may soon be known that a receiver is down.
func (s *Server) notifyAll(ctx context.Context, since time.Time) error {
	stopped := journal.Query{States: []journal.State{journal.Done, journal.Failed, journal.Canceled, journal.Waiting, journal.Refused}, Ended: since}
	sending := make(chan struct{}, hookAtOnce)
	for info, err := range s.each(ctx, stopped) {
		if err != nil {
			return err
		}
		started, err := s.notify(ctx, info)
		switch {
		case err == nil:
		case ctx.Err() != nil || s.closing() || errors.Is(err, journal.ErrUnavailable):
			return err
		default: // it says something about this run, as that it is damaged: the others get their notices
			s.cfg.Log.Error("a webhook was not sent", "run", info.ID, "error", err)
		}
		for _, run := range started {
			select {
			case sending <- struct{}{}:
				go func() { <-run.ended; <-sending }() // a server that closes ends its runs
			case <-s.drain:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}
