package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/internal/declared"
	"github.com/stonelayer/stone/internal/record"
	"github.com/stonelayer/stone/step"
)

var errElsewhere = errors.New("an attempt in another process had no result")

// Import implements [record.Importer].
func (t *trouble) Import(ctx context.Context, steps ...record.Done) error {
	imports := &recorder{t.recorder.runner, true}
	for _, s := range steps {
		ctx := declared.With(ctx, s.Declared)
		lost := s.Attempts
		if s.Record != nil {
			if lost--; lost < 0 {
				ctx = record.WithCounted(ctx)
			}
			if err := intact(s.Record); err != nil {
				return fmt.Errorf("step %s: %w", s.Key.Path, err)
			}
		}
		for range lost { // its cost is unknown, and counts as possibly paid
			_, err := imports.Do(ctx, s.Key, func(context.Context) (step.Record, error) { return step.Record{}, errElsewhere })
			if err != nil && !errors.Is(err, errElsewhere) {
				return err
			}
		}
		if s.Record == nil {
			continue
		}
		_, err := imports.Do(ctx, s.Key, func(context.Context) (step.Record, error) { return *s.Record, nil })
		if err != nil {
			return err
		}
		if s.Declared != (budget.Amount{}) {
			imports.paid.Store(bodyOf(s.Key.Path, s.Key.Name), true)
		}
	}
	return nil
}

// intact makes the content of a record from another process canonical, and checks its sum.
func intact(rec *step.Record) (err error) {
	if rec.Failure == nil {
		if rec.Content, err = canon.Canonical(rec.Content); err != nil {
			return fmt.Errorf("the record cannot be read: %w", err)
		}
	}
	if rec.Seal() != rec.Sum {
		return errors.New("the record was changed in transit")
	}
	return nil
}
