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

	"github.com/stonelayer/stone/llm"
)

// send makes the batches of the requests that wait.
func (s *session) send(ctx context.Context) error {
	if err := s.settle(ctx); err != nil {
		return err
	}
	for _, group := range s.groups() {
		if err := s.make(ctx, group); err != nil {
			return err
		}
	}
	return nil
}

// make notes a batch, makes it, and notes its id.
func (s *session) make(ctx context.Context, group []*request) error {
	to := group[0].to
	b := &made{note: note{Provider: to.provider.name(), URL: to.url}, noted: time.Now(), endpoint: to}
	sum := sha256.New()
	fmt.Fprintln(sum, s.id, len(s.made))
	for _, r := range group {
		b.Keys = append(b.Keys, r.key)
		fmt.Fprintln(sum, r.key)
	}
	b.name = fmt.Sprintf("stone-%d-%s", len(s.made)+1, hex.EncodeToString(sum.Sum(nil)[:8]))
	if err := errors.Join(s.start(ctx), s.keep(ctx, b.name, notes, b.note, nil)); err != nil {
		return err
	}
	s.add(b)
	return s.finish(ctx, b, func(ctx context.Context) (string, error) {
		id, err := to.provider.make(ctx, to, b.name, group)
		if err == nil || !uncertain(err) {
			return id, err
		}
		// The provider may have made it although its answer was lost.
		found, other := s.find(ctx, b)
		if other != nil {
			return "", errors.Join(err, other)
		}
		if found == "" {
			return "", err
		}
		return found, nil
	})
}

// uncertain reports whether a request may have been carried out although it failed.
func uncertain(err error) bool {
	refused, ok := errors.AsType[*llm.HTTPError](err)
	return !ok || refused.Status >= 500 || refused.Status == http.StatusRequestTimeout
}

// finish notes the id of a batch. An error of work leaves it open: the next process looks for it. One that says that
// the provider refused the batch is noted, so that its requests are free.
func (s *session) finish(ctx context.Context, b *made, work func(context.Context) (string, error)) error {
	var refused error
	err := s.keep(ctx, b.name+"/"+makes, makes, nil, func(ctx context.Context) (any, error) {
		id, err := work(ctx)
		if err != nil && uncertain(err) {
			return nil, err
		}
		refused, b.id = err, id
		return id, nil
	})
	switch {
	case errors.As(err, new(*WaitingError)):
		return err
	case err != nil:
		return fmt.Errorf("batch %s could not be made: %w: run it again to look for it", b.name, err)
	}
	b.settled = true
	if b.id == "" {
		s.drop(b)
	}
	if refused != nil {
		return fmt.Errorf("%s makes no batch of %s: %w", b.Provider, b.URL, refused)
	}
	return nil
}

// settle finds out what became of batches that an earlier process was making. Only those matter that the run
// asks for.
func (s *session) settle(ctx context.Context) error {
	for _, b := range s.wanted() {
		if b.settled {
			continue
		}
		err := s.finish(ctx, b, func(ctx context.Context) (string, error) { return s.find(ctx, b) })
		if err != nil {
			return err
		}
	}
	return nil
}

// find returns the id of a batch at its provider, "" if it was not made.
func (s *session) find(ctx context.Context, b *made) (string, error) {
	known := map[string]bool{}
	for _, other := range s.made {
		known[other.id] = true
	}
	for n := 1; ; n++ {
		id, sure, err := b.endpoint.provider.find(ctx, b.endpoint, b, known)
		if err != nil || sure {
			return id, err
		}
		if !s.rest(ctx, n) {
			return "", unsure(b)
		}
	}
}

// unsure is the error while nobody can tell whether a batch was made.
func unsure(b *made) error {
	return &WaitingError{[]Status{{Provider: b.Provider, ID: b.name + ", which may have been made,", Total: len(b.Keys)}}}
}

// wanted are the batches that have requests without an answer.
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

// look asks how far the batches are, and reads the answers of those that have ended.
func (s *session) look(ctx context.Context) (states []Status, ended bool, err error) {
	for _, b := range s.wanted() {
		state, over, err := b.endpoint.provider.state(ctx, b.endpoint, b.id)
		if err != nil {
			return states, ended, fmt.Errorf("batch %s of %s: %w", b.id, b.Provider, err)
		}
		state.Provider, state.ID, state.Total = b.Provider, b.id, cmp.Or(state.Total, len(b.Keys))
		states = append(states, state)
		if !over {
			continue
		}
		ended = true
		err = b.endpoint.provider.answers(ctx, b.endpoint, b.id, func(key string, a answer) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.batches[key] == b {
				s.answers[key] = a
			}
		})
		if err != nil {
			return states, ended, fmt.Errorf("the answers of batch %s of %s: %w", b.id, b.Provider, err)
		}
		s.drop(b) // requests without an answer are sent again
	}
	return states, ended, nil
}

// cancel cancels the batches that have not ended.
func (s *session) cancel(ctx context.Context) (err error) {
	for _, b := range s.wanted() {
		if b.id != "" {
			err = errors.Join(err, b.endpoint.provider.cancel(ctx, b.endpoint, b.id))
		}
	}
	return err
}

// abandon cancels the batches of a canceled run, as far as it asked for them in this visit.
func (s *session) abandon(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	return errors.Join(s.cancel(ctx), s.wake(ctx))
}

// decode reads JSON that a provider sent.
func decode[T any](data []byte) (v T, err error) {
	if err = json.Unmarshal(data, &v); err != nil {
		err = fmt.Errorf("the answer of the provider cannot be read: %w", err)
	}
	return v, err
}
