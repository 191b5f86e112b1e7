package record

import (
	"context"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/step"
)

// Done is a step within a leaf that another process has done for a run.
type Done struct {
	Key      step.Key      `json:"key"`
	Declared budget.Amount `json:"declared,omitzero"` // what an attempt may cost
	Attempts int           `json:"attempts"`          // how often its work was started; see Import
	Record   *step.Record  `json:"record,omitempty"`  // nil if it has no result
}

// Spent returns what the step may have cost: the usage of its result, and the declared cost of each
// attempt without one.
func (s Done) Spent() budget.Amount {
	var known budget.Usage
	lost := s.Attempts
	if s.Record != nil {
		known = Usage(*s.Record)
		lost--
	}
	spent := known.Amount().Add(s.Declared.Times(lost))
	spent.Roundtrips = s.Declared.Times(s.Attempts).Roundtrips
	return spent
}

// An Importer records steps within a leaf that another process has done. The context of the work
// of a leaf carries it.
type Importer interface {
	Import(ctx context.Context, steps ...Done) error
}

type importerKey struct{}

// WithImporter returns the context in which a step works.
func WithImporter(ctx context.Context, i Importer) context.Context {
	return context.WithValue(ctx, importerKey{}, i)
}

// ImporterOf returns the Importer of a context, or nil.
func ImporterOf(ctx context.Context) Importer {
	i, _ := ctx.Value(importerKey{}).(Importer)
	return i
}

// Import records steps within a leaf that another process has done. Ctx is the context of the work
// of the leaf, as DoBy passes it to an executor. A body of the leaf that runs here later, and
// a resumed run, find them. Attempts counts those that were not imported before: with a Record it may
// be zero. Without the recorder of journal.Keep, Import does nothing.
func Import(ctx context.Context, steps ...Done) error {
	if i := ImporterOf(ctx); i != nil {
		return i.Import(ctx, steps...)
	}
	return nil
}
