package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/transport"
	"github.com/stonelayer/stone/internal/webhook"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/serve/api"
)

// A Receiver gets notices about one run, as a caller of a mounted protocol has asked for them.
type Receiver struct {
	ID     string            `json:"id"` // among the receivers of the run
	URL    string            `json:"url"`
	Header map[string]string `json:"header,omitempty"` // of the notices
	// Secret signs the notices as in Standard Webhooks if it is one: it begins with "whsec_".
	Secret string `json:"secret,omitempty"`
}

func (r *Receiver) keys() [][]byte {
	if key, err := webhook.Key(r.Secret); err == nil {
		return [][]byte{key}
	}
	return nil
}

// check returns what is wrong with a receiver.
func (r *Receiver) check(private bool) error {
	if !runName.MatchString(r.ID) {
		return badID(r.ID)
	}
	if err := webhook.CheckURL(r.URL, private); err != nil {
		return invalid("the receiver: %v", err)
	}
	if strings.HasPrefix(r.Secret, "whsec_") {
		if _, err := webhook.Key(r.Secret); err != nil {
			return invalid("the receiver: %v", err)
		}
	}
	for name, value := range r.Header {
		if !transport.IsHeader(name) {
			return invalid("the receiver: %.40q cannot be the name of a header: want letters, digits and -", name)
		}
		if strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c == 0x7f }) || len(name)+len(value) > 8<<10 {
			return invalid("the receiver: the header %.40q is not one line of at most 8 kB", name)
		}
	}
	return nil
}

// Receivers keep the receivers of runs in the journal, secrets included, which no request returns, and send them a notice
// when their run ends, waits for an answer or is refused. Like the notices of a [Webhook], each is
// a run of its own: any server retries it for three days, and it may arrive more than once with
// the same id. They may be used from several goroutines.
type Receivers struct {
	s        *Server
	private  bool
	body     func(ctx context.Context, who Principal, run api.Run) ([]byte, error)
	pipeline *Pipeline // whose runs keep them

	mu     sync.Mutex
	locked map[string]chan struct{} // the runs whose receivers somebody changes
}

// maxReceivers bounds the receivers of a run.
const maxReceivers = 8

var receiverType = dag.NewType[Receiver]("webhook/receiver")

// Receivers returns the receivers of a protocol, whose name other protocols must not have. Body
// makes the notice of a run for somebody with its tenant who may read. Unless private is true,
// receivers are in the public Internet. It is for a [Mount], before the server serves.
func (s *Server) Receivers(name string, private bool, body func(ctx context.Context, who Principal, run api.Run) ([]byte, error)) (*Receivers, error) {
	h := &hook{Webhook: Webhook{Name: name}, receivers: map[string]*receiver{}, sender: webhook.NewSender(private)}
	if !pipelineName.MatchString(name) || s.hooks[hookName(name)] != nil {
		return nil, fmt.Errorf("serve: receivers named %q: a webhook has this name, or it is none: choose another one", name)
	}
	h.of = &Receivers{s: s, private: private, body: body, locked: map[string]chan struct{}{}, pipeline: &Pipeline{
		Name: hookName(name) + webhook.Keep, Grant: []string{},
		Ashlar: stone.Func("keep", receiverType, receiptType, func(_ context.Context, r Receiver) (receipt, error) { return receipt{r.ID}, nil }, stone.Effects()),
	}}
	s.hidden[h.of.pipeline.Name] = h.of.pipeline
	s.addHook(h, newPlaces(hookAtOnce, hooksOfOne))
	return h.of, nil
}

// Check returns what is wrong with a receiver, an *api.Problem.
func (r *Receivers) Check(to Receiver) error { return to.check(r.private) }

// Save adds a receiver of a run, or replaces the one with its id. The caller needs the role Start.
func (r *Receivers) Save(ctx context.Context, who Principal, run string, to Receiver) error {
	if !who.may(Start) {
		return lacking(Start)
	}
	if err := r.Check(to); err != nil {
		return err
	}
	info, err := r.s.owned(ctx, who, run)
	if err != nil {
		return err
	}
	if err := r.replace(ctx, info, to); err != nil {
		return err
	}
	// The run may have stopped meanwhile, before it had a receiver.
	if info, err = r.s.owned(ctx, who, run); err == nil && !goesOn(info.State) {
		_, err = r.s.notify(context.WithoutCancel(ctx), info)
	}
	return err
}

// replace keeps a receiver of a run, and removes the one with its id once the new one is kept.
func (r *Receivers) replace(ctx context.Context, info journal.RunInfo, to Receiver) error {
	unlock, err := r.lock(ctx, info.ID)
	if err != nil {
		return err
	}
	defer unlock()
	all, err := r.of(ctx, info)
	if err != nil {
		return err
	}
	full := problem(api.TooMuch, http.StatusTooManyRequests, "the run has %d receivers: remove one", maxReceivers)
	if len(all) >= maxReceivers && !slices.ContainsFunc(all, func(one Receiver) bool { return one.ID == to.ID }) {
		return full
	}
	whose := Principal{Tenant: info.Labels[tenantLabel]} // the caller may have none
	labels := whose.labels()
	labels[webhook.Receives] = info.ID
	id := keyOf(whose, "webhook-"+freshID())
	started, _, err := r.s.launch(task{
		Pipeline: r.pipeline, source: source{Published: r.pipeline.Name, Grant: []string{}},
		run:  stone.Config{RunID: id, Grant: []string{}, Input: dag.Of(receiverType.With(to))},
		keep: journal.Options{Labels: labels},
	})
	if err != nil {
		return err
	}
	if err := waitFor(ctx, started.ended); err != nil {
		return err
	}
	if started.err != nil {
		return started.err
	}
	// Other processes may have added receivers since all was read. The oldest ones stay.
	var ids []string
	for one, err := range r.kept(ctx, info) {
		if err != nil {
			return err
		}
		ids = append(slices.DeleteFunc(ids, func(known string) bool { return known == one.ID }), one.ID)
	}
	if i := slices.Index(ids, to.ID); i >= 0 && len(ids)-i > maxReceivers {
		if err := r.remove(ctx, info, func(run string, _ Receiver) bool { return run == id }); err != nil {
			return err
		}
		return full
	}
	return r.remove(ctx, info, func(run string, one Receiver) bool { return one.ID == to.ID && run != id })
}

// lock waits until nobody else of this process changes the receivers of a run.
func (r *Receivers) lock(ctx context.Context, run string) (unlock func(), err error) {
	for {
		r.mu.Lock()
		other := r.locked[run]
		if other == nil {
			mine := make(chan struct{})
			r.locked[run] = mine
			r.mu.Unlock()
			return func() {
				r.mu.Lock()
				defer r.mu.Unlock()
				delete(r.locked, run)
				close(mine)
			}, nil
		}
		r.mu.Unlock()
		if err := waitFor(ctx, other); err != nil {
			return nil, err
		}
	}
}

// List returns the receivers of a run, the newest first. The caller needs the role Read.
func (r *Receivers) List(ctx context.Context, who Principal, run string) ([]Receiver, error) {
	if !who.may(Read) {
		return nil, lacking(Read)
	}
	info, err := r.s.owned(ctx, who, run)
	if err != nil {
		return nil, err
	}
	return r.of(ctx, info)
}

// of returns the receivers of a run, the newest first.
func (r *Receivers) of(ctx context.Context, info journal.RunInfo) (all []Receiver, err error) {
	known := map[string]bool{} // a server may have ended before it removed the older one
	for kept, err := range r.kept(ctx, info) {
		if err != nil {
			return nil, err
		}
		if !known[kept.ID] {
			known[kept.ID] = true
			all = append(all, kept.Receiver)
		}
	}
	return all, nil
}

// kept is a receiver and the run that keeps it.
type kept struct {
	Receiver
	run string
}

// kept yields what the journal has of the receivers of a run, the newest first. An error is the last thing
// that it yields.
func (r *Receivers) kept(ctx context.Context, info journal.RunInfo) iter.Seq2[kept, error] {
	return func(yield func(kept, error) bool) {
		q := journal.Query{Pipeline: r.pipeline.Name, Labels: map[string]string{webhook.Receives: info.ID}}
		for one, err := range r.s.each(ctx, q) {
			var to Receiver
			if err == nil {
				var input dag.DAG
				if input, err = journal.Input(ctx, r.s.cfg.Journal, one); err == nil {
					to, err = receiverType.From(input)
				}
			}
			if !yield(kept{to, one.ID}, err) || err != nil {
				return
			}
		}
	}
}

// Remove removes the receiver of a run with an id, if there is one. The caller needs the role Start.
func (r *Receivers) Remove(ctx context.Context, who Principal, run, id string) error {
	if !who.may(Start) {
		return lacking(Start)
	}
	info, err := r.s.owned(ctx, who, run)
	if err != nil {
		return err
	}
	unlock, err := r.lock(ctx, info.ID)
	if err != nil {
		return err
	}
	defer unlock()
	return r.remove(ctx, info, func(_ string, one Receiver) bool { return one.ID == id })
}

// remove removes the receivers of a run that are doomed, by the ids of the runs that keep them.
func (r *Receivers) remove(ctx context.Context, info journal.RunInfo, doomed func(run string, one Receiver) bool) error {
	var gone []string // removed at the end: a list of runs continues from the last one
	for one, err := range r.kept(ctx, info) {
		if err != nil {
			return err
		}
		if doomed(one.run, one.Receiver) {
			gone = append(gone, one.run)
		}
	}
	for _, run := range gone {
		if err := r.s.cfg.Journal.Remove(ctx, run); err != nil && !errors.Is(err, journal.ErrNoRun) {
			return err
		}
	}
	return nil
}

// forget removes the receivers of a run that was removed, of all protocols.
func (s *Server) forget(ctx context.Context, run string) error {
	var gone []string // at the end, as in remove
	for info, err := range s.each(ctx, journal.Query{Labels: map[string]string{webhook.Receives: run}}) {
		if err != nil {
			return err
		}
		if webhook.Keeps(info.Pipeline) {
			gone = append(gone, info.ID)
		}
	}
	for _, id := range gone {
		if err := s.cfg.Journal.Remove(ctx, id); err != nil && !errors.Is(err, journal.ErrNoRun) {
			return err
		}
	}
	return nil
}

// secret reports whether a run keeps the secrets of a receiver of a run, which nobody may read. The record says
// it, whatever this server is configured for. A damaged one may not say it.
func secret(info journal.RunInfo) bool {
	return webhook.Keeps(info.Pipeline) || strings.HasPrefix(info.Pipeline, webhook.Runs) && (info.Labels[webhook.Receives] != "" || info.State == journal.Damaged)
}

// notices returns the notices for the receivers of a run that has stopped.
func (r *Receivers) notices(ctx context.Context, who Principal, info journal.RunInfo) (all []notice, err error) {
	if strings.HasPrefix(info.Pipeline, webhook.Runs) || goesOn(info.State) {
		return nil, nil
	}
	to, err := r.of(ctx, info)
	if err != nil || len(to) == 0 {
		return nil, err
	}
	who.Roles = []Role{Read}
	body, err := r.body(ctx, who, run(who, info))
	if err != nil {
		return nil, err
	}
	for _, one := range to {
		about, err := json.Marshal([]string{r.pipeline.Name, info.ID, one.ID, one.URL, string(info.State), info.Ended.Format(time.RFC3339Nano)})
		if err != nil {
			return nil, err
		}
		all = append(all, notice{ID: noticeID(about), Body: string(body), To: &one, Tenant: who.Tenant})
	}
	return all, nil
}
