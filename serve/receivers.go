package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/stonelayer/stone/internal/owed"
	"github.com/stonelayer/stone/internal/problems"
	"github.com/stonelayer/stone/internal/transport"
	"github.com/stonelayer/stone/internal/webhook"
	"github.com/stonelayer/stone/serve/api"
)

// A Receiver receives notices about one run. A caller of a mounted protocol requests them.
type Receiver struct {
	ID     string            `json:"id"` // unique among the receivers of the run
	URL    string            `json:"url"`
	Header map[string]string `json:"header,omitempty"` // of the notices
	// If Secret begins with "whsec_", it signs the notices as in Standard Webhooks.
	Secret string `json:"secret,omitempty"`
}

// check returns an error for an invalid receiver.
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

// Receivers keep the receivers of runs, with their secrets, in the journal. No list or request returns the secrets. Like a
// [Webhook], a receiver gets a notice when its run ends, waits for an answer or is refused. They may be used from several
// goroutines.
type Receivers struct {
	s       *Server
	name    string
	private bool
	sender  *webhook.Sender
	body    func(ctx context.Context, who Principal, run api.Run) ([]byte, error)
}

// Receivers returns the receivers of a protocol, whose name must be unique. Body returns the notice about a run for a reader with
// its tenant. Unless private is true, receivers must be on the public Internet. Call Receivers in a [Mount], before the server
// serves.
func (s *Server) Receivers(name string, private bool, body func(ctx context.Context, who Principal, run api.Run) ([]byte, error)) (*Receivers, error) {
	if !pipelineName.MatchString(name) || s.outbox.protocols[name] != nil {
		return nil, fmt.Errorf("serve: receivers named %q: the name is empty or taken: choose another one", name)
	}
	if s.outbox.store == nil {
		return nil, fmt.Errorf("serve: receivers named %q: %w", name, errNoOutbox)
	}
	r := &Receivers{s: s, name: name, private: private, sender: webhook.NewSender(private), body: body}
	s.outbox.protocols[name] = r
	return r, nil
}

// Check returns an *api.Problem for an invalid receiver.
func (r *Receivers) Check(to Receiver) error { return to.check(r.private) }

// Save adds a receiver of a run, or replaces the one with its id. If the run has already stopped, the receiver gets a notice at
// once. The caller needs the role Start.
func (r *Receivers) Save(ctx context.Context, who Principal, run string, to Receiver) error {
	switch {
	case !who.may(Start):
		return lacking(Start)
	case r.s.closing():
		return closing()
	}
	if err := r.Check(to); err != nil {
		return err
	}
	info, err := r.s.owned(ctx, who, run)
	if err != nil {
		return err
	}
	data, err := json.Marshal(to)
	if err != nil {
		return err
	}
	// A tenant whose receiver does not answer, or that names another's receiver, delays only itself.
	bound := digestID(r.name+"/", []byte(info.Labels[tenantLabel])) + " " + digestID("", []byte(to.URL))
	err = r.s.outbox.store.PutReceiver(ctx, info.ID, owed.Receiver{Name: r.name + "/" + to.ID, Bound: bound, Data: data})
	if errors.Is(err, owed.ErrFull) {
		return problem(problems.TooMuch, http.StatusTooManyRequests, "the run has %d receivers: remove one", owed.MostReceivers)
	}
	r.s.outbox.hurry()
	return err
}

// List returns the receivers of a run, sorted by id. The caller needs the role Read.
func (r *Receivers) List(ctx context.Context, who Principal, run string) (all []Receiver, err error) {
	if !who.may(Read) {
		return nil, lacking(Read)
	}
	info, err := r.s.owned(ctx, who, run)
	if err != nil {
		return nil, err
	}
	kept, err := r.s.outbox.store.Receivers(ctx, info.ID)
	for _, one := range kept {
		if !strings.HasPrefix(one.Name, r.name+"/") {
			continue
		}
		var to Receiver
		if err := json.Unmarshal(one.Data, &to); err != nil {
			return nil, fmt.Errorf("a receiver of run %s cannot be read: %w", run, err)
		}
		all = append(all, to)
	}
	return all, err
}

// Remove removes the receiver of a run with an id, if it exists, and the notices owed to it. The caller needs the role Start.
func (r *Receivers) Remove(ctx context.Context, who Principal, run, id string) error {
	if !who.may(Start) {
		return lacking(Start)
	}
	info, err := r.s.owned(ctx, who, run)
	if err != nil {
		return err
	}
	return r.s.outbox.store.DropReceiver(ctx, info.ID, r.name+"/"+id)
}
