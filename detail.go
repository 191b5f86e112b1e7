package stone

import (
	"context"
	"iter"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/finding"
)

// Detail is a LeafOption for packages that make leaves: it describes what the body does not show. Every field is optional, and every function must be safe for concurrent calls.
//
//	stone.Leaf(name, out, a.run, stone.Detail{Value: a, Check: a.check, Fingerprint: a.fingerprint})
type Detail struct {
	// Value is for the package itself, which gets it back from Ashlar.Detail.
	Value any

	// Check returns findings, which Validate adds to its own.
	Check func() []finding.Finding
	// CheckGrant returns the findings for a run that grants these effects and no others. Use it where the
	// effects that the leaf needs are not known when it is made.
	CheckGrant func(grant []string) []finding.Finding
	// Guards means that the leaf exists to fail: no other step has to read its node.
	Guards bool

	// Fingerprint is part of the leaf's fingerprint and keys. Return everything except the
	// body that can change the result: settings, limits, the name of a model.
	Fingerprint func() []byte
	// Render is part of the key under which other runs reuse the leaf. Return the texts that the body
	// makes of the DAG before it starts, such as prompts. It is called before the body and may read
	// everything that the leaf declares.
	Render func(dag.DAG) ([]byte, error)
	// Cached returns the maximum age of a result. With an age above zero the leaf is like a Reusable one, but takes
	// results of any run up to that age, whatever the run's reuse setting. The key is part of the reuse key; it
	// covers what depends on the granted effects, all if the grant is nil.
	Cached func(grant []string) (key []byte, age time.Duration)
	// Prompt returns the constant text that the leaf sends to a model. It is part of no key: a journal compares it on
	// resume, and the run reports a change.
	Prompt func() string
	// Prompts returns the texts that the leaf sends to a model and that are marked as adjustable, by their names.
	Prompts func() map[string]string

	// Facts describe the leaf to people, as names and values; see tree.Facts.
	Facts func() iter.Seq2[string, string]
	// Questions are the names of the questions that the leaf may ask.
	Questions func() []string
	// Undeclared returns the names of the leaf's tools and capabilities that state no effects, and what the
	// function of returns for pipelines behind them. Nil means the leaf itself, if it states none; see
	// [Ashlar.Undeclared].
	Undeclared func(of func(Ashlar) []string) []string
	// Unpriced returns the models without a known price that the leaf may ask: a budget that limits money rejects
	// them. It is set if the leaf asks models.
	Unpriced func(context.Context) []string
	// Bound returns the most that one attempt at the leaf may cost; see [Ashlar.Bound]. The function of returns the bound
	// of a child, as it is now, each time that it runs. Nil means that the body itself costs nothing.
	Bound func(ctx context.Context, of func(child Ashlar) budget.Bound) budget.Bound
	// Unfit returns why the leaf's model cannot do what the leaf requires, or nil.
	Unfit func(context.Context) error
}

func (d Detail) apply(s *spec) { s.detail = &d }
func (Detail) ask()            {}
func (Detail) leaf()           {}

var noDetail Detail

// said returns the Detail of a leaf, an empty one if it has none.
func (s *spec) said() *Detail {
	if s.detail == nil {
		return &noDetail
	}
	return s.detail
}

// Detail returns the Detail of a leaf; the zero Detail if it has none.
func (a Ashlar) Detail() Detail { return *a.spec().said() }
