package batch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/batches"
	"github.com/stonelayer/stone/internal/owed"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/kind"
)

// A made is a batch that was created. Its note in the journal tells every process that continues the run how often the batch was
// tried, which of its requests were lost and how it ended.
type made struct {
	owed.Batch
	endpoint endpoint // zero if the run makes none of the batch's requests
	changed  bool     // whether the batch has changed since it was noted
}

// attempts is the maximum number of times that an unanswered request is sent.
const attempts = 3

// Made reports whether batches have been created for a run, perhaps by another process. If not, journal.Cancel cancels the run.
func Made(ctx context.Context, j journal.Journal, run string) (bool, error) {
	return batches.Made(ctx, j, run)
}

// hold calls work while this process holds the run's lease.
func (s *session) hold(ctx context.Context, work func(context.Context) error) error {
	info, err := s.Journal.Acquire(ctx, s.id)
	if err != nil {
		return err
	}
	if info.Started.IsZero() {
		err = fmt.Errorf("run %q: %w", s.id, journal.ErrNoRun) // the run was removed meanwhile
	} else if err = s.load(ctx); err == nil {
		err = work(ctx)
	}
	return errors.Join(err, s.Journal.Release(s.id))
}

// load reads the notes, which another process may have changed. It keeps the ends of batches that this process knows of but has
// not recorded yet.
func (s *session) load(ctx context.Context) error {
	all, err := s.notes.Batches(ctx, s.id)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := map[int]*made{}
	for _, b := range s.made {
		known[b.Number] = b
	}
	s.made = nil
	for _, noted := range all {
		b := known[noted.Number]
		if b == nil || b.Name != noted.Name {
			b = &made{}
		}
		if !b.changed || noted.State == owed.Ended {
			b.Batch, b.changed = noted, false
		}
		s.made = append(s.made, b)
	}
	s.index()
	return nil
}

// index computes which batches contain each request. The caller holds s.mu.
func (s *session) index() {
	s.batches, s.lost = map[string]*made{}, map[string][]*made{}
	for _, b := range s.made {
		s.add(b)
		for _, key := range b.Lost {
			s.lost[key] = append(s.lost[key], b)
		}
	}
}

// add records that a batch contains the requests with its keys. The caller holds s.mu.
func (s *session) add(b *made) {
	for _, key := range b.Keys {
		s.batches[key] = b
		if r := s.asked[key]; r != nil {
			b.endpoint = r.to // the current endpoint, because another process may have made the batch
		}
	}
}

// note writes the note of a batch to the journal.
func (s *session) note(ctx context.Context, b *made) error {
	b.changed = false
	return s.notes.PutBatch(ctx, s.id, b.Batch)
}

// settle notes, after a visit, which requests are done and how batches have ended. If the visit was complete, answers that it did
// not request have already been recorded. Answers that it did receive have been recorded if the run has ended, even with a
// failure; if their requests are repeated later, they count as new requests. A waiting visit may combine several answers, which
// the next visit requests again.
func (s *session) settle(ctx context.Context, ended error) error {
	s.mu.Lock()
	over := func(key string) bool {
		if s.given[key] {
			return !errors.Is(ended, kind.Waiting)
		}
		return s.asked[key] == nil && (ended == nil || errors.Is(ended, kind.Waiting))
	}
	for _, b := range s.made {
		if b.State != owed.Ended {
			continue
		}
		n := len(b.Keys) + len(b.Lost)
		b.Keys, b.Lost = slices.DeleteFunc(b.Keys, over), slices.DeleteFunc(b.Lost, over)
		b.changed = b.changed || len(b.Keys)+len(b.Lost) < n
	}
	s.index()
	s.mu.Unlock()
	var err error
	for _, b := range s.made {
		if b.changed {
			err = errors.Join(err, s.note(ctx, b))
		}
	}
	return err
}

// end notes how a batch ended. Its unanswered requests are lost and can be part of the next batch.
func (s *session) end(b *made, e end) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.State, b.Estimate, b.changed = owed.Ended, budget.Amount{}, true
	var answered []string
	for _, key := range b.Keys {
		if _, ok := s.answers[key]; ok {
			answered = append(answered, key)
			continue
		}
		delete(s.batches, key)
		if !b.Dropped { // if this program canceled the batch, earlier attempts at its requests do not count
			b.Lost, s.lost[key] = append(b.Lost, key), append(s.lost[key], b)
		}
	}
	b.Keys, b.Why, b.Canceled, b.Refused = answered, e.how, e.canceled, e.refused
}

// spent returns the reason why a request is not sent again, or "": its batches did not answer it, or somebody cancelled the last
// batch. The caller holds s.mu.
func (s *session) spent(key string) string {
	all := s.lost[key]
	if len(all) == 0 {
		return ""
	}
	switch last := all[len(all)-1]; {
	case last.Canceled:
		return fmt.Sprintf("batch %s of %s was canceled at the provider: resume the run to send its requests again", last.ID, last.Provider)
	case len(all) >= attempts:
		return fmt.Sprintf("%d batches had no answer to the request, the last one is %s of %s: %s", len(all), last.ID, last.Provider, last.Why)
	}
	return ""
}

// fewer returns the maximum size of the next batch that contains a request. It is unlimited, or 0, unless the request was in a
// batch that was rejected as a whole. The caller must hold s.mu.
func (s *session) fewer(key string) (most int) {
	for _, b := range s.lost[key] {
		if b.Refused {
			most = (len(b.Lost) + 1) / 2
		}
	}
	return most
}

// refused returns how many times batches with the waiting requests were rejected as a whole. The cause may be temporary, such as
// a limit on queued tokens, so the next batch has to wait longer each time.
func (s *session) refused() (most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.asked {
		n := 0
		for _, b := range s.lost[key] {
			if b.Refused {
				n++
			}
		}
		if s.batches[key] == nil && n < attempts {
			most = max(most, n)
		}
	}
	return most
}

// park makes the run wait for its batches with a question that shows their progress.
func (s *session) park(why error) error {
	if errors.As(why, new(*journal.HeldError)) || errors.Is(why, journal.ErrNoRun) {
		return nil // the current owner of the lease does this, or the run was removed
	}
	ctx := context.Background() // the run's context may have ended
	all, err := s.Journal.Questions(ctx, s.id)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(q journal.Question) bool { return q.Name == Question && q.Open() && q.Text == why.Error() }) {
		return nil // nothing has changed since the last poll
	}
	if err := s.wake(ctx); err != nil {
		return err
	}
	_, err = s.Journal.Ask(ctx, journal.Question{
		Run: s.id, Path: fmt.Sprint(Question, "/", len(all)+1), Name: Question, Text: why.Error(), Choices: []string{"look again"}, Asked: time.Now(),
	})
	return err
}

// wake answers the question that park has asked.
func (s *session) wake(ctx context.Context) error {
	all, err := s.Journal.Questions(ctx, s.id)
	for _, q := range all {
		if q.Name != Question || !q.Open() {
			continue
		}
		if failed := s.Journal.Answer(ctx, s.id, q.Path, ask.Answer{Response: q.Choices[0], By: "batch"}); !errors.Is(failed, journal.ErrNoQuestion) { // or the question has already been answered
			err = errors.Join(err, failed)
		}
	}
	return err
}
