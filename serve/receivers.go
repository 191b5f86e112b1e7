package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
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
		if strings.ContainsFunc(name+value, func(c rune) bool { return c < ' ' || c == 0x7f }) || len(name)+len(value) > 8<<10 {
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
}

// maxReceivers bounds the receivers of a run.
const maxReceivers = 8

// keeps ends the names of the pipelines whose runs keep receivers.
const keeps = "/receiver"

var receiverType = dag.NewType[Receiver]("webhook/receiver")

// Receivers returns the receivers of a protocol, whose name other protocols must not have. Body
// makes the notice of a run for somebody with its tenant who may read. Unless private is true,
// receivers are in the public Internet. It is for a [Mount], before the server serves.
func (s *Server) Receivers(name string, private bool, body func(ctx context.Context, who Principal, run api.Run) ([]byte, error)) (*Receivers, error) {
	h := &hook{Webhook: Webhook{Name: name}, receivers: map[string]*receiver{}, sender: webhook.NewSender(private)}
	if !pipelineName.MatchString(name) || s.hooks[hookName(name)] != nil {
		return nil, fmt.Errorf("serve: receivers named %q: a webhook has this name, or it is none: choose another one", name)
	}
	h.of = &Receivers{s, private, body, &Pipeline{
		Name: hookName(name) + keeps, Grant: []string{},
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
	all, err := r.List(ctx, who, run)
	if err != nil {
		return err
	}
	more := 1
	for _, one := range all {
		if one.ID == to.ID {
			more = 0
		}
	}
	if len(all)+more > maxReceivers {
		return problem(api.TooMuch, http.StatusTooManyRequests, "the run has %d receivers: remove one", maxReceivers)
	}
	if err := r.Remove(ctx, who, run, to.ID); err != nil {
		return err
	}
	labels := who.labels()
	labels[webhook.Receives] = keyOf(who, run)
	started, _, err := r.s.launch(task{
		Pipeline: r.pipeline, source: source{Published: r.pipeline.Name, Grant: []string{}},
		run:  stone.Config{RunID: r.key(who, run, to.ID), Grant: []string{}, Input: dag.Of(receiverType.With(to))},
		keep: journal.Options{Labels: labels},
	})
	if err != nil {
		return err
	}
	if err := waitFor(ctx, started.ended); err != nil {
		return err
	}
	// The run may have stopped meanwhile, before it had a receiver.
	info, err := r.s.owned(ctx, who, run)
	if err == nil && !goesOn(info.State) {
		_, err = r.s.notify(context.WithoutCancel(ctx), info)
	}
	return errors.Join(started.err, err)
}

// key is the id in the journal of the run that keeps a receiver.
func (r *Receivers) key(who Principal, run, id string) string {
	text, _ := json.Marshal([]string{r.pipeline.Name, run, id}) // texts have JSON
	return keyOf(who, "webhook-"+noticeID(text))
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
	return r.of(ctx, who, info)
}

func (r *Receivers) of(ctx context.Context, who Principal, info journal.RunInfo) (all []Receiver, err error) {
	labels := map[string]string{webhook.Receives: info.ID}
	maps.Copy(labels, who.labels())
	for kept, err := range r.s.each(ctx, journal.Query{Pipeline: r.pipeline.Name, Labels: labels}) {
		if err != nil {
			return nil, err
		}
		input, err := journal.Input(ctx, r.s.cfg.Journal, kept)
		if err != nil {
			return nil, err
		}
		one, err := receiverType.From(input)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// Remove removes the receiver of a run with an id, if there is one. The caller needs the role Start.
func (r *Receivers) Remove(ctx context.Context, who Principal, run, id string) error {
	if !who.may(Start) {
		return lacking(Start)
	}
	if _, err := r.s.owned(ctx, who, run); err != nil {
		return err
	}
	err := r.s.cfg.Journal.Remove(ctx, r.key(who, run, id))
	if errors.Is(err, journal.ErrNoRun) {
		return nil
	}
	return err
}

// secret reports whether a run keeps the secrets of a receiver of a run, which nobody may read. The record says
// it, whatever this server is configured for.
func secret(info journal.RunInfo) bool {
	kept, ok := strings.CutPrefix(info.Pipeline, webhook.Runs)
	return ok && (info.Labels[webhook.Receives] != "" || strings.HasSuffix(kept, keeps))
}

// notices returns the notices for the receivers of a run that has stopped.
func (r *Receivers) notices(ctx context.Context, who Principal, info journal.RunInfo) (all []notice, err error) {
	if strings.HasPrefix(info.Pipeline, webhook.Runs) || goesOn(info.State) {
		return nil, nil
	}
	to, err := r.of(ctx, who, info)
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
