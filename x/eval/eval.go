package eval

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/internal/suggest"
	"github.com/stonelayer/stone/internal/tree"
	"github.com/stonelayer/stone/schema"
)

// Config configures an evaluation.
type Config struct {
	Pipeline stone.Ashlar
	Data     Data
	Scorers  []Scorer // at least one
	Trials   int      // number of answers for each case; zero means one
	Lanes    int      // maximum number of concurrent cases, at most 256; zero means 64
	// Against is the baseline with which the report is compared, case by case. It may be nil.
	Against *Baseline
	// Gate judges the report. It may be nil.
	Gate *Gate
}

// Result is the type of an evaluation's last node.
var Result = dag.NewType[Report]("eval/report")

// Run evaluates the pipeline and returns the report. If a case fails, the evaluation continues with the other cases. If the
// budget is exhausted or a question waits for a person, the run fails and can be resumed.
func Run(ctx context.Context, cfg Config, run stone.Config) (Report, error) {
	p, err := Pipeline(ctx, cfg, run)
	if err != nil {
		return Report{}, err
	}
	return stone.Produce(withAccount(ctx), p, Result, run)
}

// withAccount returns ctx or, if it has no budget.Account, a context with an account, so that a resumed run can restore its
// earlier costs.
func withAccount(ctx context.Context) context.Context {
	if budget.From(ctx) == nil {
		ctx = budget.With(ctx, budget.New(budget.Limits{}))
	}
	return ctx
}

// Pipeline returns the evaluation as a pipeline, which must be run with the given stone.Config. The error describes faults in the
// data or in the configuration. The costs in the report of a resumed run include earlier costs only if the context has a
// budget.Account.
func Pipeline(ctx context.Context, cfg Config, run stone.Config) (stone.Ashlar, error) {
	e, err := newEvaluation(ctx, cfg, run)
	if err != nil {
		return stone.Ashlar{}, err
	}
	if e.Gate != nil && e.Gate.Routing != (RoutingRules{}) {
		return stone.Ashlar{}, errors.New("the gate has rules for routing, which apply only to a Routing: remove routing")
	}
	return e.pipeline()
}

// newEvaluation reads the data and checks the configuration.
func newEvaluation(ctx context.Context, cfg Config, run stone.Config) (*evaluation, error) {
	cfg.Trials, cfg.Lanes = cmp.Or(cfg.Trials, 1), cmp.Or(cfg.Lanes, 64)
	if err := cfg.check(); err != nil {
		return nil, err
	}
	set, err := cfg.Data.load(ctx, cfg.Pipeline, run)
	if err != nil {
		return nil, err
	}
	e := &evaluation{Config: cfg, data: set}
	for _, check := range []func() error{e.checkExpected, e.checkTypes, func() error { return e.checkFit(ctx) }, e.checkAgainst, e.overRuns, e.checkGate} {
		if err := check(); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// pipeline returns a pipeline that answers and scores all cases and ends with the report.
func (e *evaluation) pipeline() (stone.Ashlar, error) {
	version, err := e.judging()
	if err != nil {
		return stone.Ashlar{}, err
	}
	return stone.Seq("eval", e.asking(), stone.Reduce(e.report(version))), nil
}

// asking returns a pipeline that answers and scores all cases, in groups.
func (e *evaluation) asking() stone.Ashlar {
	groups, rows := e.groups()
	return stone.Map("groups", dag.ReaderFunc(func(dag.DAG) ([]string, error) { return groups, nil }), group, e.group(rows),
		stone.AllLanes(), stone.Lanes(e.Lanes))
}

// An evaluation is a Config with its data.
type evaluation struct {
	Config
	data  *dataset
	prior int    // 1 if trial 0 is the answer in the recorded run, otherwise 0
	tuned string // type of the call whose attempts are kept, or ""
	out   atomic.Pointer[lockedOutError]
}

const maxTrials = 1000

func (cfg *Config) check() error {
	switch {
	case cfg.Pipeline.IsZero():
		return errors.New("the evaluation has no pipeline")
	case len(cfg.Scorers) == 0:
		return errors.New("the evaluation has no scorer: name one, such as exact")
	case cfg.Trials < 1 || cfg.Trials > maxTrials:
		return fmt.Errorf("%d trials: want 1 to %d", cfg.Trials, maxTrials)
	case cfg.Lanes < 1 || cfg.Lanes > 256:
		return fmt.Errorf("%d lanes: want 1 to 256", cfg.Lanes)
	}
	for i, s := range cfg.Scorers {
		if s.leaf == nil {
			return errors.New("a scorer is the zero Scorer: create scorers with Func or Read")
		}
		if slices.ContainsFunc(cfg.Scorers[:i], func(other Scorer) bool { return other.name == s.name }) {
			return fmt.Errorf("two scorers are named %q: rename one, as in close=number:0.1", s.name)
		}
	}
	return cfg.checkNodes()
}

// checkNodes returns an error for scorers of nodes that the pipeline never creates, unless the type of a step is unknown.
func (cfg *Config) checkNodes() error {
	made, known := map[string]bool{}, true
	var visit func(a stone.Ashlar)
	visit = func(a stone.Ashlar) {
		below := 0
		for _, c := range tree.Children(a) {
			visit(c)
			below++
		}
		if t := a.Result(); t != nil {
			made[t.Name()] = true
		} else if below == 0 {
			known = false
		}
	}
	visit(cfg.Pipeline)
	for _, s := range cfg.Scorers {
		if s.node == "" || made[s.node] || !known {
			continue
		}
		return fmt.Errorf("the scorer %s reads the node %q, but no step of the pipeline produces one; it produces %s%s", s.name, s.node, strings.Join(slices.Sorted(maps.Keys(made)), ", "), suggest.Hint(s.node, maps.Keys(made)))
	}
	return nil
}

// checkExpected returns an error for scorers that need an expected output if no row has one.
func (e *evaluation) checkExpected() error {
	for _, s := range e.Scorers {
		if s.needs && !e.data.expects {
			return fmt.Errorf("the scorer %s needs an expectation, but no row has the column %q: name the column with the expectations in --expected, or Data.Expected", s.name, e.data.Expected)
		}
	}
	return nil
}

// checkTypes returns an error for scorers of fields that no answer has.
func (e *evaluation) checkTypes() error {
	nodes, emitted := map[string]*schema.Schema{}, map[string]*schema.Schema{}
	emits := 0
	var visit func(a stone.Ashlar)
	visit = func(a stone.Ashlar) {
		for _, c := range tree.Children(a) {
			visit(c)
		}
		if of, ok := a.Detail().Value.(kinds.Emitter); ok {
			emitted = of.Emits()
			emits++
		}
		if t := a.Result(); t != nil {
			nodes[t.Name()] = t.Schema()
		}
	}
	visit(e.Pipeline)
	known := map[string]*schema.Schema{}
	switch out := e.Pipeline.Result(); {
	case emits == 1:
		for path, s := range emitted {
			known["output"+path] = s
		}
	case emits == 0 && out != nil:
		known["output"] = out.Schema()
	}
	if len(e.data.inputs) == 1 && !e.data.inputs[0].Many {
		known["input"] = e.data.inputs[0].Type.Schema()
	}
	for _, s := range e.Scorers {
		if s.fits == nil {
			continue
		}
		of := maps.Clone(known)
		if s.node != "" {
			maps.DeleteFunc(of, func(path string, _ *schema.Schema) bool { return strings.HasPrefix(path, "output") })
			of["output"] = nodes[s.node]
		}
		if s.of != "" { // the scorer reads only a part of the output
			whole := of["output"]
			maps.DeleteFunc(of, func(path string, _ *schema.Schema) bool { return strings.HasPrefix(path, "output") })
			of["output"], _ = whole.At(strings.Split(s.of, ".")...)
		}
		if err := s.fits(of); err != nil {
			return fmt.Errorf("the scorer %s: %w", s.name, err)
		}
	}
	return nil
}

// checkFit returns an error if the whole output is compared but can never be equal, because no expected output matches its type.
func (e *evaluation) checkFit(ctx context.Context) error {
	i := slices.IndexFunc(e.Scorers, func(s Scorer) bool { return s.whole })
	out := e.Pipeline.Result()
	if i < 0 || out == nil {
		return nil
	}
	s := out.Schema()
	if slices.ContainsFunc(s.Properties(), func(name string) bool { return slices.Contains(textFields, name) }) {
		return nil // an expected text is compared with that field
	}
	var first error
	for n, r := range e.data.rows {
		values := r.values()
		expected := values[len(values)-1]
		if expected == nil {
			continue
		}
		err := s.Validate(ctx, expected)
		if err == nil || s.Validate(ctx, parsed(expected)) == nil {
			return nil
		}
		if first == nil {
			first = fmt.Errorf("of case %d, %s: %w", n+1, shown(expected), err)
		}
	}
	if first == nil {
		return nil
	}
	return fmt.Errorf("the scorer %s compares the whole output, of type %s, and no row has an expectation that fits it; that %w; name the field to compare with of, as in %s",
		e.Scorers[i].name, out.Name(), first, `[{"kind": "exact", "of": "FIELD"}]`)
}

// scorers returns the names of the scorers.
func (e *evaluation) scorers() (names []string) {
	for _, s := range e.Scorers {
		names = append(names, s.name)
	}
	return names
}
