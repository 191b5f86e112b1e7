package journal

import (
	"context"
	"errors"
	"fmt"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/step"
)

// A DoneStep is a step that another process has done for a run.
type DoneStep struct {
	Key      step.Key      `json:"key"`
	Declared budget.Amount `json:"declared,omitzero"` // as in Step
	Attempts int           `json:"attempts"`          // how often its work was started; see Import
	Record   *step.Record  `json:"record,omitempty"`  // nil if it has no result
}

// Spent returns what the step may have cost, as Step.Spent does.
func (s DoneStep) Spent() budget.Amount {
	done := Step{Attempts: s.Attempts, Declared: s.Declared}
	if s.Record != nil {
		done.Recorded, done.Usage = true, UsageOf(*s.Record)
	}
	lost := s.Declared.Times(done.PossiblyPaid())
	done.Possible = budget.Possible{Attempts: done.PossiblyPaid(), Tokens: lost.Tokens, USD: lost.USD}
	return done.Spent()
}

var errElsewhere = errors.New("an attempt in another process had no result")

// Import records steps within a leaf that another process has done. Ctx is the context of the work
// of the leaf, as DoBy passes it to an executor. A body of the leaf that runs here later, and
// a resumed run, find them. Attempts counts those that were not imported before: with a Record it may
// be zero. Without the recorder of Keep, Import does nothing.
func Import(ctx context.Context, steps ...DoneStep) error {
	t := troubleIn(ctx)
	if t == nil || t.recorder == nil {
		return nil
	}
	imports := &recorder{t.recorder.runner, true}
	for _, s := range steps {
		ctx := budget.Declare(ctx, s.Declared)
		lost := s.Attempts
		if s.Record != nil {
			if lost--; lost < 0 {
				ctx = context.WithValue(ctx, countedKey{}, true)
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

type countedKey struct{}

// Counted reports whether the attempt of the step that ctx records was counted before: a Journal
// keeps its result and counts no further attempt.
func Counted(ctx context.Context) bool { return ctx.Value(countedKey{}) != nil }

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
