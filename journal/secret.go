package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/step"
)

// Secret marks a value as one that must not be recorded, in the run to which ctx
// belongs, from now on; see the package comment. Outside of a run that Keep keeps
// it does nothing. A value of less than 8 bytes is an error.
func Secret(ctx context.Context, value string) error {
	s, _ := ctx.Value(secretsKey{}).(*redact.Set)
	if s == nil {
		return nil
	}
	return s.Add(value)
}

type secretsKey struct{}

// cleanRecord takes the secrets out of a record, and reports whether it had any.
func cleanRecord(s *redact.Set, rec *step.Record) (bool, error) {
	if s.Holds(string(rec.Kept)) {
		return false, errors.New("a leaf keeps nodes that hold a secret: have the steps that made them recorded, or take it out")
	}
	found := false
	clean := func(text string) string {
		cleaned := s.Clean(text)
		found = found || cleaned != text
		return cleaned
	}
	content := []byte(clean(string(rec.Content)))
	for k, v := range rec.Meta {
		rec.Meta[k] = clean(v)
	}
	if rec.Failure != nil {
		rec.Failure.Reason = clean(rec.Failure.Reason)
	}
	if !found {
		return false, nil
	}
	return true, reseal(rec, content)
}

// reseal gives a record its changed content, with the node and the sum that go
// with it.
func reseal(rec *step.Record, content []byte) error {
	if rec.Failure == nil {
		spec := dag.Spec{Type: "value", Content: json.RawMessage(content), Meta: rec.Meta, Time: rec.Time}
		if rec.Node != nil {
			spec.Type, spec.Parents = rec.Node.Type(), rec.Node.Parents()
		}
		n, err := dag.NewNode(spec) // which makes the content canonical again
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

// refuse reports a secret in what is kept as it is: the input and the source.
func refuse(s *redact.Set, d dag.DAG, source []byte) error {
	if s.Longest() == 0 {
		return nil
	}
	if s.Holds(string(source)) {
		return errors.New("Options.Source holds a secret, which must not be recorded: have the pipeline read it from the environment")
	}
	for n := range d.Nodes() {
		if s.Holds(n.JSON()) {
			return fmt.Errorf("node %s of the input holds a secret, which must not be recorded: take it out", n)
		}
	}
	return nil
}
