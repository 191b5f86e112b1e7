package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/prompts"
	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/internal/terms"
	"github.com/stonelayer/stone/internal/tree"
)

// Improving revises the prompts of a pipeline that agent.Adjustable marks, and the prompts of capabilities that its calls may
// use. In each round, a version of the prompts is selected. A capability is shown some cases of the dev split in which this
// version fell short, and proposes a better prompt. If the new version is better on these cases, it is tried on all of dev. If
// the best version beats the original prompts, both versions answer the test split once.
//
// As in GEPA (L. A. Agrawal et al., arXiv 2507.19457, section 3), a version is drawn from the versions that no other version
// dominates, with a probability proportional to the number of cases in which it is best.
type Improving struct {
	Program stone.Ashlar
	// Data is read twice: once for the dev split and once for the test split. Data.N limits the number of cases per split.
	Data   Data
	Scorer Scorer
	Lanes  int // maximum number of concurrent cases, at most 256; zero means 64

	// Applicator provides the revising capability By, which is called with the intent eval/revise.
	Applicator *call.Applicator
	By         string
	// Prompts names the prompts that may be revised. Nil means all.
	Prompts []string
	Rounds  int // maximum number of proposals; zero means 12
	Shown   int // number of cases shown for each proposal; zero means 4
	Looks   int // number of earlier runs that used the test split; the question "accept" shows it
}

// Improved is the type of an Improving's last node.
var Improved = dag.NewType[Revision]("eval/revision")

const (
	maxRounds   = 200
	maxShown    = 32
	maxImproved = 5000 // maximum cases per split
)

// Run improves the prompts and returns the revision. If the test shows an improvement, the run asks the question "accept";
// without an ask.Frontend, it waits for the answer.
func (i Improving) Run(ctx context.Context, run stone.Config) (Revision, error) {
	p, err := i.Pipeline(ctx, run)
	if err != nil {
		return Revision{}, err
	}
	return stone.Produce(withAccount(ctx), p, Improved, run)
}

// Pipeline returns the improvement as a pipeline, which must be run with the given stone.Config. The costs in the revision of a
// resumed run include earlier costs only if the context has a budget.Account.
func (i Improving) Pipeline(ctx context.Context, run stone.Config) (stone.Ashlar, error) {
	m, err := i.read(ctx, run)
	if err != nil {
		return stone.Ashlar{}, err
	}
	children := []stone.Ashlar{m.revise}
	types := []dag.AnyType{chosen, critique, prompts.Type}
	for _, s := range []*split{m.dev, m.test} {
		children, types = append(children, s.cases), append(types, s.e.data.types()...)
	}
	work := stone.Leaf("revise", Improved, m.run, stone.Queries(), stone.Version(m.version()), stone.Detail{Value: extent{test: m.test.e.data.test}},
		stone.Children(stone.Walk{}.Reads().Writes(types...).Repeat(children...)))
	accept := stone.Ask("accept", Improved, accepted, Revision.question, stone.Choices(acceptIt, "refuse"))
	return stone.Seq("improve", work, stone.Leaf("decide", Improved, func(ctx context.Context, d dag.DAG) (*dag.Node, error) {
		return decide(ctx, d, accept)
	}, stone.Queries(Improved), stone.Children(stone.Walk{}.Reads().Perhaps(accept)))), nil
}

// acceptIt is the choice that accepts the improvement.
const acceptIt = "accept"

var accepted = dag.NewType[stone.Answer]("eval/accepted")

// decide asks whether to accept an improvement that the test has shown.
func decide(ctx context.Context, d dag.DAG, accept stone.Ashlar) (*dag.Node, error) {
	r, err := Improved.From(d)
	if err != nil {
		return nil, err
	}
	if r.Better() {
		out := stone.In(ctx).RunChild(accept, d).Within(nil)
		if out.InFlight() {
			return nil, out.Cause()
		}
		said, err := accepted.From(out)
		if err != nil {
			return nil, err
		}
		r.Accepted = said.Response == acceptIt
	}
	return dag.NewNode(dag.Spec{Type: Improved.Name(), Content: r, Parents: d.Next()})
}

// An improver is an Improving with its data.
type improver struct {
	Improving
	texts     map[string]string // prompts that may be revised, by name
	names     []string          // names of these prompts, sorted
	dev, test *split
	revise    stone.Ashlar
}

// A split is a part of the data together with the pipeline that answers the cases in it.
type split struct {
	e     *evaluation
	cases stone.Ashlar
	ids   []string
}

// read checks the configuration and reads the data.
func (i Improving) read(ctx context.Context, run stone.Config) (*improver, error) {
	i.Rounds, i.Shown, i.Lanes = cmp.Or(i.Rounds, 12), cmp.Or(i.Shown, 4), cmp.Or(i.Lanes, 64)
	switch {
	case i.Rounds < 1 || i.Rounds > maxRounds:
		return nil, fmt.Errorf("%d rounds: want 1 to %d", i.Rounds, maxRounds)
	case i.Shown < 1 || i.Shown > maxShown:
		return nil, fmt.Errorf("%d cases to show: want 1 to %d", i.Shown, maxShown)
	case i.Applicator == nil || i.By == "":
		return nil, errors.New("no capability is set to revise the prompts: name a configured model")
	}
	if _, ok := i.Applicator.Registry.Lookup(i.By); !ok {
		return nil, fmt.Errorf("the capability %s, which should revise the prompts, is not configured%s", i.By, suggest.Hint(i.By, slices.Values(i.Applicator.Registry.IDs())))
	}
	m := &improver{Improving: i}
	if err := m.find(); err != nil {
		return nil, err
	}
	for part, s := range map[string]**split{DevSplit: &m.dev, TestSplit: &m.test} {
		var err error
		if *s, err = i.split(ctx, part, run); err != nil {
			return nil, err
		}
	}
	m.revise = stone.Seq("propose", call.New("ask", proposed, call.Spec{
		Applicator: i.Applicator, Intent: terms.Revise, Cap: i.By, Input: dag.Derive[question, any](critique, func(q question) any { return q }),
	}))
	return m, nil
}

// find sets the prompts that may be revised: all adjustable prompts or, if Prompts is not nil, the prompts named there.
func (m *improver) find() error {
	m.texts = map[string]string{}
	all, err := adjustable(m.Program)
	switch {
	case err != nil:
		return err
	case len(all) == 0:
		return errors.New("no prompt of the pipeline may be revised: create one with agent.Adjustable, or configure prompts for a capability of its calls")
	}
	m.names = m.Prompts
	if m.names == nil {
		m.names = slices.Collect(maps.Keys(all))
	}
	for _, name := range m.names {
		text, ok := all[name]
		if !ok {
			return fmt.Errorf("the pipeline has no prompt %q to revise; it has %s%s", name, strings.Join(slices.Sorted(maps.Keys(all)), ", "), suggest.Hint(name, maps.Keys(all)))
		}
		m.texts[name] = text
	}
	m.names = slices.Sorted(maps.Keys(m.texts))
	return nil
}

// adjustable returns the prompts of a pipeline that may be revised, by name.
func adjustable(p stone.Ashlar) (map[string]string, error) {
	all := map[string]string{}
	var visit func(stone.Ashlar) error
	visit = func(a stone.Ashlar) error {
		if of := a.Detail().Prompts; of != nil {
			for name, text := range of() {
				if other, ok := all[name]; ok && other != text {
					return fmt.Errorf("two prompts of the pipeline are named %q: rename one", name)
				}
				all[name] = text
			}
		}
		for _, c := range tree.Children(a) {
			if err := visit(c); err != nil {
				return err
			}
		}
		return nil
	}
	return all, visit(p)
}

// split reads a part of the data.
func (i Improving) split(ctx context.Context, part string, run stone.Config) (*split, error) {
	data := i.Data
	data.Split = part
	e, err := newEvaluation(ctx, Config{Pipeline: i.Program, Data: data, Scorers: []Scorer{i.Scorer}, Lanes: i.Lanes}, run)
	if err != nil {
		return nil, err
	}
	s := &split{e: e}
	if n := len(e.data.rows); n > maxImproved {
		return nil, fmt.Errorf("the split %s has %d cases: draw at most %d with Data.N, or --n", part, n, maxImproved)
	}
	for _, r := range e.data.rows {
		s.ids = append(s.ids, r.id())
	}
	s.cases = stone.Seq(part,
		stone.Map("each", dag.Derive(chosen, func(ids []string) (all []visit) {
			for _, id := range ids {
				all = append(all, visit{id, 1})
			}
			return all
		}), visited, stone.Seq("case", e.answer(), i.Scorer.leaf(e.data)), stone.AllLanes(), stone.Lanes(i.Lanes)),
		stone.Reduce(stone.Leaf("collect", attempted, func(_ context.Context, d dag.DAG) (*dag.Node, error) { return collectAttempts(d) },
			stone.Queries(append([]dag.Querier{dag.History(visited), dag.History(answered), dag.History(scored)}, i.Scorer.calls...)...))))
	return s, nil
}

// version returns a digest of the cases and prompts, because a run cannot be resumed if these have changed.
func (m *improver) version() string {
	return fmt.Sprintf("%s %s %d %d %s %q", m.dev.e.version(), m.test.e.version(), m.Rounds, m.Shown, m.By, m.texts)
}
