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

// A Receiver is an address that receives notices about one run, because a caller of a mounted protocol has requested them.
type Receiver struct {
	ID     string            `json:"id"` // unique among the receivers of the run
	URL    string            `json:"url"`
	Header map[string]string `json:"header,omitempty"` // added to each notice
	// If Secret begins with "whsec_", notices are signed with it as described in Standard Webhooks.
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

// Receivers stores the receivers of runs and their secrets in the journal. No list or reply contains the secrets. Like a
// [Webhook], a receiver receives a notice when its run ends, waits for an answer or is refused. Receivers is safe for concurrent
// use.
type Receivers struct {
	s       *Server
	name    string
	private bool
	sender  *webhook.Sender
	body    func(ctx context.Context, who Principal, run api.Run) ([]byte, error)
}

// Receivers returns the Receivers of a protocol, whose name must be unique. The function body returns the body of a notice about
// a run, as a caller with the run's tenant may see it. Unless private is true, all receivers must be on the public Internet. Call
// Receivers in a [Mount], before the server accepts requests.
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

// Check returns an *api.Problem if the receiver is invalid, and nil otherwise.
func (r *Receivers) Check(to Receiver) error { return to.check(r.private) }

// Save adds a receiver to a run, or replaces the receiver that has the same id. If the run has already stopped, a notice is sent
// to the receiver at once. The caller needs the role Start.
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
	// A tenant whose receiver does not answer, or that names another tenant's receiver, delays only its own notices.
	bound := digestID(r.name+"/", []byte(info.Labels[tenantLabel])) + " " + digestID("", []byte(to.URL))
	err = r.s.outbox.store.PutReceiver(ctx, info.ID, owed.Receiver{Name: r.name + "/" + to.ID, Bound: bound, Data: data})
	if errors.Is(err, owed.ErrFull) {
		return problem(problems.TooMuch, http.StatusTooManyRequests, "the run has %d receivers: remove one", owed.MostReceivers)
	}
	r.s.outbox.hurry()
	return err
}

// List returns a run's receivers, sorted by id. The caller needs the role Read.
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

// Remove removes the receiver with the given id from a run, and the notices that are still owed to it. If there is no such
// receiver, Remove does nothing. The caller needs the role Start.
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
