package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/step"
)

// Secret marks a value as secret, so that the run to which ctx belongs does not record it from now on. See the package comment.
// Secret has no effect in a run whose recorder comes from neither [Keep] nor [Redact]. In other runs, it returns an error if the
// value is shorter than 8 bytes.
func Secret(ctx context.Context, value string) error {
	s := redact.From(ctx)
	if s == nil {
		return nil
	}
	return s.Add(value)
}

// Redact returns a recorder for runs that are not kept in a journal. The arguments are values that must not leave the run. Like
// [Keep]'s recorder, it removes secrets from the results of steps, and from failures, questions and events.
func Redact(secrets ...string) stone.RunRecorder { return &redactor{values: secrets} }

// A redactor is a recorder that removes secrets but records nothing.
type redactor struct {
	values  []string
	secrets *redact.Set // secrets of the run
}

// OpenRun implements [stone.RunRecorder].
func (r *redactor) OpenRun(ctx context.Context, _ stone.Ashlar, cfg stone.Config) (stone.RunRecord, error) {
	s, err := secretsOf(ctx, r.values)
	if err == nil {
		err = refuse(s, cfg.Input, nil)
	}
	if err != nil {
		return stone.RunRecord{Config: cfg}, err
	}
	cfg.Recorder, cfg.Watch = &redactor{secrets: s}, event.Clean(cfg.Watch, s)
	if cfg.Frontend != nil {
		cfg.Frontend = discreet{cfg.Frontend, s}
	}
	return stone.RunRecord{
		Config: cfg,
		Begin:  func(ctx context.Context) (context.Context, error) { return redact.With(ctx, s), nil },
	}, nil
}

// Do implements [step.Recorder].
func (r *redactor) Do(ctx context.Context, _ step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	rec, err := work(ctx)
	if err == nil {
		rec.Replayed, err = cleanRecord(r.secrets, &rec)
	}
	return rec, err
}

// Clean removes secrets from the text of failures that the run itself creates; see step.Recorder.
func (r *redactor) Clean(text string) string { return r.secrets.Clean(text) }

// discreet is a frontend that removes secrets from questions before it passes them to another frontend.
type discreet struct {
	ask.Frontend
	secrets *redact.Set
}

// Ask implements [ask.Frontend].
func (d discreet) Ask(ctx context.Context, q ask.Question) (ask.Answer, error) {
	return d.Frontend.Ask(ctx, clean(d.secrets, q))
}

// clean returns a copy of q without secrets.
func clean(s *redact.Set, q ask.Question) ask.Question {
	q.Text, q.Problem = s.Clean(q.Text), s.Clean(q.Problem)
	if q.Call == nil || s.Empty() {
		return q
	}
	c := *q.Call
	c.Request, c.Said = s.Clean(c.Request), s.Clean(c.Said)
	if input, _, err := s.JSON(c.Input); err == nil {
		c.Input = input
	} else {
		c.Input = nil // the question's text already shows what may be shown of the input
	}
	q.Call = &c
	return q
}

// secretsOf returns the run's set of secrets, to which it adds values. It takes the set from ctx, or creates a set if ctx has none.
func secretsOf(ctx context.Context, values []string) (*redact.Set, error) {
	s := redact.From(ctx)
	if s == nil {
		s = new(redact.Set)
	}
	for _, v := range values {
		if err := s.Add(v); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// cleanRecord removes secrets from rec, and reports whether it found any.
func cleanRecord(s *redact.Set, rec *step.Record) (bool, error) {
	if s.Empty() {
		return false, nil
	}
	if s.Holds(string(rec.Kept)) {
		return false, errors.New("a leaf keeps nodes that contain a secret: record the steps that made them, or remove the secret")
	}
	content, found, err := s.JSON(rec.Content)
	if err != nil {
		return false, fmt.Errorf("a result cannot be recorded without its secrets: %w", err)
	}
	for k, v := range rec.Meta {
		clean := s.Text(v)
		rec.Meta[k], found = clean, found || clean != v
	}
	if rec.Failure != nil && s.Holds(rec.Failure.Reason) {
		rec.Failure.Reason, found = s.Clean(rec.Failure.Reason), true
	}
	if !found {
		return false, nil
	}
	return true, reseal(rec, content)
}

// reseal replaces the content of rec, and updates the node and the sum of rec accordingly.
func reseal(rec *step.Record, content []byte) error {
	if rec.Failure == nil {
		spec := dag.Spec{Type: "value", Content: json.RawMessage(content), Meta: rec.Meta, Time: rec.Time}
		if rec.Node != nil {
			spec.Type, spec.Parents = rec.Node.Type(), rec.Node.Parents()
		}
		n, err := dag.NewNode(spec) // NewNode also makes the content canonical
		if err != nil {
			return fmt.Errorf("a result without its secrets makes no node: %w", err)
		}
		if rec.Content = n.Content(); rec.Node != nil {
			rec.Node = n
		}
	}
	rec.Sum = rec.Seal()
	return nil
}

// refuse returns an error if the input d or the source contains a secret, because both are recorded unchanged.
func refuse(s *redact.Set, d dag.DAG, source []byte) error {
	if s.Empty() {
		return nil
	}
	if s.Holds(string(source)) {
		return errors.New("Options.Source contains a secret, which must not be recorded: let the pipeline read it from the environment")
	}
	for n := range d.Nodes() {
		if s.Holds(n.JSON()) {
			return fmt.Errorf("node %s of the input contains a secret, which must not be recorded: remove it", n)
		}
	}
	return nil
}
