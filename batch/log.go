package batch

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// This file records the batches of a run as steps of a second run. Each batch has two steps: a note before it is
// created, and its id afterwards.

// A note says which batch is to be made.
type note struct {
	Provider string   `json:"provider"`
	URL      string   `json:"url"` // where its requests would be sent
	Keys     []string `json:"keys"`
}

// A made batch is noted.
type made struct {
	note
	name     string
	noted    time.Time
	id       string // at the provider; empty if that is not known
	settled  bool   // id is known, or that it was not made
	endpoint endpoint
}

// ofLabel is the label of notes with the run whose batches they note.
const ofLabel = "batches-of"

// Notes returns the id of the run that notes the batches of a run, if any were made. Without it they are made again.
func Notes(of string) string { return of + ".batches" }

func (s *session) log() string { return Notes(s.id) }

// load takes the notes and reads them.
func (s *session) load(ctx context.Context) error {
	if err := s.forget(ctx); err != nil {
		return err
	}
	info, err := s.Journal.Acquire(ctx, s.log())
	if err != nil {
		return err
	}
	if !info.Started.IsZero() {
		err = s.start(ctx)
	}
	if err == nil {
		err = s.read(ctx)
	}
	if err != nil {
		return errors.Join(err, s.Journal.Release(s.log()))
	}
	return nil
}

// forget removes the notes of a run that was removed: another one of its name asks anew.
func (s *session) forget(ctx context.Context) error {
	for _, id := range []string{s.id, s.log()} {
		info, err := s.Journal.Find(ctx, id)
		switch {
		case err == nil && info.ID == s.id:
			return nil
		case err == nil && info.ID == s.log():
			return s.Journal.Remove(ctx, s.log())
		case err != nil && !errors.Is(err, journal.ErrNoRun) && !errors.As(err, new(*journal.AmbiguousError)):
			return err
		}
	}
	return nil
}

// start starts the run of the notes, once there is one: a run that makes no batch has none.
func (s *session) start(ctx context.Context) error {
	if s.started {
		return nil
	}
	s.started = true
	return s.Journal.Begin(ctx, journal.RunInfo{ID: s.log(), Pipeline: "batches", Labels: map[string]string{ofLabel: s.id}, Started: time.Now()}, dag.DAG{})
}

func (s *session) read(ctx context.Context) error {
	steps, err := s.Journal.Steps(ctx, s.log())
	if err != nil {
		return err
	}
	byName := map[string]*made{}
	for _, one := range steps {
		if !one.Recorded {
			continue
		}
		rec, err := s.Journal.Record(ctx, s.log(), one.Path, one.Kind)
		if err != nil {
			return err
		}
		if one.Name == notes {
			b := &made{name: one.Path, noted: one.Started}
			if err := json.Unmarshal(rec.Content, &b.note); err != nil {
				return fmt.Errorf("the note of batch %s: %w", one.Path, err)
			}
			byName[b.name] = b
			s.add(b)
			continue
		}
		if b := byName[one.Path[:max(len(one.Path)-len("/"+makes), 0)]]; b != nil {
			b.settled = true
			if err := json.Unmarshal(rec.Content, &b.id); err != nil {
				return fmt.Errorf("the id of batch %s: %w", b.name, err)
			}
			if b.id == "" {
				s.drop(b)
			}
		}
	}
	return nil
}

// add makes a batch the one that answers its keys.
func (s *session) add(b *made) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made = append(s.made, b)
	for _, key := range b.Keys {
		s.batches[key] = b
	}
}

// drop frees the keys of a batch that answers them no more.
func (s *session) drop(b *made) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range b.Keys {
		if _, answered := s.answers[key]; !answered && s.batches[key] == b {
			delete(s.batches, key)
		}
	}
}

// The names of the two steps of a batch.
const (
	notes = "note"
	makes = "make"
)

// keep does a step of the notes, unless it is recorded.
func (s *session) keep(ctx context.Context, path, name string, value any, work func(context.Context) (any, error)) error {
	digest := sha256.Sum256([]byte(path + "\n" + name))
	_, err := s.Journal.Do(ctx, step.Key{RunID: s.log(), Path: path, Kind: "step", Name: name, Digest: digest}, func(ctx context.Context) (step.Record, error) {
		if work != nil {
			var err error
			if value, err = work(ctx); err != nil {
				return step.Record{}, err
			}
		}
		content, err := json.Marshal(value)
		rec := step.Record{Content: content, Time: time.Now()}
		rec.Sum = rec.Seal()
		return rec, err
	})
	return err
}

// park has the run wait for its batches, for whoever looks at it.
func (s *session) park(why error) error {
	ctx := context.Background() // the run's context may have ended
	all, err := s.Journal.Questions(ctx, s.id)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(all, func(q journal.Question) bool { return q.Name == Question && q.Open() && q.Text == why.Error() }) {
		return nil // nothing has changed since the last look
	}
	if err := s.wake(ctx); err != nil {
		return err
	}
	_, err = s.Journal.Ask(ctx, journal.Question{
		Run: s.id, Path: fmt.Sprint(Question, "/", len(all)+1), Name: Question, Text: why.Error(), Choices: []string{"look again"}, Asked: time.Now(),
	})
	return err
}

// wake answers what the parked run asks.
func (s *session) wake(ctx context.Context) error {
	all, err := s.Journal.Questions(ctx, s.id)
	for _, q := range all {
		if q.Name != Question || !q.Open() {
			continue
		}
		if failed := s.Journal.Answer(ctx, s.id, q.Path, ask.Answer{Response: q.Choices[0], By: "batch"}); !errors.Is(failed, journal.ErrNoQuestion) { // or somebody else did
			err = errors.Join(err, failed)
		}
	}
	return err
}

// close leaves the notes to others.
func (s *session) close() error {
	var err error
	if s.started {
		ctx := context.Background() // the notes are closed, whatever ended the run
		err = s.Journal.End(ctx, s.log(), journal.Outcome{State: journal.Done, Ended: time.Now(), Steps: 2 * len(s.made)})
	}
	return errors.Join(err, s.Journal.Release(s.log()))
}
