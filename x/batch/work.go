package batch

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/internal/owed"
	"github.com/stonelayer/stone/llm"
)

// send creates batches from the waiting requests and returns the number of batches.
func (s *session) send(ctx context.Context) (n int, err error) {
	for _, group := range s.groups() {
		if err := s.make(ctx, group); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// make records a batch, creates it, and records its id. If it is uncertain whether the provider has created the batch, the note
// stays unchanged, and the next poll looks for the batch.
func (s *session) make(ctx context.Context, group []*request) error {
	to := group[0].to
	b := &made{Batch: owed.Batch{Number: 1, Provider: to.provider.name(), URL: to.url, Noted: time.Now(), State: owed.Making}}
	if n := len(s.made); n > 0 {
		b.Number = s.made[n-1].Number + 1
	}
	sum := sha256.New()
	fmt.Fprintln(sum, s.id, b.Number)
	for _, r := range group {
		b.Keys = append(b.Keys, r.key)
		b.Estimate.USD, b.Estimate.Tokens, b.Estimate.Roundtrips = b.Estimate.USD+r.cost.USD, b.Estimate.Tokens+r.cost.Tokens, b.Estimate.Roundtrips+1
		fmt.Fprintln(sum, r.key)
	}
	b.Name = fmt.Sprintf("stone-%d-%s", b.Number, hex.EncodeToString(sum.Sum(nil)[:8]))
	if err := s.note(ctx, b); err != nil {
		return err
	}
	s.mu.Lock()
	s.made = append(s.made, b)
	s.add(b)
	s.mu.Unlock()
	id, err := to.provider.make(ctx, to, b.Name, group)
	switch {
	case err == nil:
		b.ID, b.State = id, owed.Made
		return s.note(context.WithoutCancel(ctx), b)
	case uncertain(err):
		return nil
	}
	s.free(b)
	return errors.Join(fmt.Errorf("%s rejected the batch of %s: %w", b.Provider, b.URL, err), s.note(context.WithoutCancel(ctx), b))
}

// uncertain reports whether a failed request may have been carried out.
func uncertain(err error) bool {
	refused, ok := errors.AsType[*llm.HTTPError](err)
	return !ok || refused.Status >= 500 || refused.Status == http.StatusRequestTimeout
}

// free records that a batch was not created, so that its requests can be part of another batch.
func (s *session) free(b *made) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range b.Keys {
		if s.batches[key] == b {
			delete(s.batches, key)
		}
	}
	b.Keys, b.State, b.Estimate, b.changed = nil, owed.Ended, budget.Amount{}, true
}

// find looks for a batch that may have been created. The result is uncertain as long as an unfinished batch may be the batch in
// question.
func (s *session) find(ctx context.Context, b *made) (sure bool, err error) {
	if b.State != owed.Making {
		return true, nil
	}
	known := map[string]bool{}
	for _, other := range s.made {
		known[other.ID] = true
	}
	id, sure, err := b.endpoint.provider.find(ctx, b.endpoint, b, known)
	switch {
	case err != nil:
		return false, fmt.Errorf("batch %s of %s may have been created: %w: resume the run to look for it", b.Name, b.Provider, err)
	case sure && id == "":
		s.free(b)
	case sure:
		b.ID, b.State, b.changed = id, owed.Made, true
	}
	return sure, nil
}

// wanted returns the batches with unanswered requests.
func (s *session) wanted() (all []*made) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[*made]bool{}
	for key := range s.asked {
		if b := s.batches[key]; b != nil {
			seen[b] = true
		}
	}
	for _, b := range s.made {
		if seen[b] {
			all = append(all, b)
		}
	}
	return all
}

// look polls the batches and reads the answers of batches that have ended. It returns the errors for batches that cannot be read.
func (s *session) look(ctx context.Context) (states []Status, ended bool, err error) {
	for _, b := range s.wanted() {
		state, over, failed := s.lookAt(ctx, b)
		ended = ended || over
		if err = errors.Join(err, failed); failed == nil && state.Total > 0 {
			states = append(states, state)
		}
	}
	return states, ended, err
}

func (s *session) lookAt(ctx context.Context, b *made) (state Status, over bool, err error) {
	switch sure, err := s.find(ctx, b); {
	case err != nil:
		return state, false, err
	case !sure:
		return Status{Provider: b.Provider, ID: b.Name + ", which may have been created,", Total: len(b.Keys)}, false, nil
	case b.ID == "":
		return state, true, nil
	}
	state, how, err := b.endpoint.provider.state(ctx, b.endpoint, b.ID)
	state.Provider, state.ID, state.Total = b.Provider, b.ID, cmp.Or(state.Total, len(b.Keys))
	if err == nil && !how.over {
		return state, false, nil
	}
	if err == nil && !how.refused {
		err = b.endpoint.provider.answers(ctx, b.endpoint, b.ID, func(key string, a answer) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if a.status == http.StatusTooManyRequests || a.status >= 500 { // a temporary error: sent again in the next batch
				how.how = bounds.Cut(fmt.Sprintf("status %d: %s", a.status, a.body), 500)
			} else if s.batches[key] == b {
				s.answers[key] = a
			}
		})
	}
	switch refused, ok := errors.AsType[*llm.HTTPError](err); {
	case ok && (refused.Status == http.StatusNotFound || refused.Status == http.StatusGone):
		how.how = "the provider no longer has the batch or its answers, which may have been billed"
	case err != nil:
		return state, false, fmt.Errorf("batch %s of %s: %w", b.ID, b.Provider, err)
	}
	s.end(b, how)
	if len(b.Lost) > 0 {
		state.Why = b.Why
	}
	return state, true, nil
}

// cancel cancels the unfinished batches with requests of the run.
func (s *session) cancel(ctx context.Context) (err error) {
	for _, b := range s.wanted() {
		if b.Dropped {
			continue // already cancelled
		}
		err = errors.Join(err, s.drop(ctx, b))
		if b.changed {
			err = errors.Join(err, s.note(ctx, b))
		}
	}
	return err
}

// drop cancels a batch unless it has ended.
func (s *session) drop(ctx context.Context, b *made) error {
	switch sure, err := s.find(ctx, b); {
	case err != nil:
		return err
	case !sure:
		return fmt.Errorf("batch %s of %s may have been created: cancel the run again once the provider lists it", b.Name, b.Provider)
	case b.ID == "":
		return nil
	}
	err := b.endpoint.provider.cancel(ctx, b.endpoint, b.ID)
	if refused, ok := errors.AsType[*llm.HTTPError](err); ok && refused.Status < 500 && refused.Status != http.StatusTooManyRequests {
		_, how, unread := b.endpoint.provider.state(ctx, b.endpoint, b.ID)
		gone, _ := errors.AsType[*llm.HTTPError](unread)
		if unread == nil && how.over || gone != nil && (gone.Status == http.StatusNotFound || gone.Status == http.StatusGone) {
			return nil // the batch has ended
		}
	}
	if err != nil {
		return fmt.Errorf("batch %s of %s: %w", b.ID, b.Provider, err)
	}
	b.Dropped, b.changed = true, true
	return nil
}

// abandon cancels, for a cancelled run, the batches whose requests were made in this visit.
func (s *session) abandon(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if len(s.made) == 0 {
		return s.wake(ctx)
	}
	return errors.Join(s.hold(ctx, s.cancel), s.wake(ctx))
}

// decode reads JSON that a provider sent.
func decode[T any](data []byte) (v T, err error) {
	if err = json.Unmarshal(data, &v); err != nil {
		err = fmt.Errorf("the provider's answer cannot be read: %w", err)
	}
	return v, err
}
