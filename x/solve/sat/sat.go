package sat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stonelayer/stone/call"
)

// Failure types in addition to package call's.
const (
	kindTooLarge = "solver/too-large" // the formula exceeds the limits of Config
	kindGaveUp   = "solver/gave-up"   // the formula was not decided within Config.Conflicts
)

// Config limits the size of formulas and the work of the solver. A zero field means the default.
type Config struct {
	Variables int // maximum variables per formula; 100,000 by default
	Literals  int // maximum number of literals in all clauses and groups; 2,000,000 by default
	// Conflicts is the maximum number of conflicts before the solver gives up. The default, 2,000,000, takes minutes.
	Conflicts int
}

// Check returns an error if the configuration is invalid.
func (c Config) Check() error {
	if c.Variables < 0 || c.Literals < 0 || c.Conflicts < 0 {
		return errors.New("sat: a limit is negative: want zero for the default")
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.Variables = cmp.Or(c.Variables, 100_000)
	c.Literals = cmp.Or(c.Literals, 2_000_000)
	c.Conflicts = cmp.Or(c.Conflicts, 2_000_000)
	return c
}

// New returns a capability that decides whether a formula is satisfiable. Empty fields of m have defaults: the id solver/sat, the
// kind solver and the intent sat/solve.
func New(m call.Metadata, c Config) call.Capability {
	m.ID, m.Kind = cmp.Or(m.ID, "solver/sat"), cmp.Or(m.Kind, "solver")
	if m.Intents == nil {
		m.Intents = []string{"sat/solve"}
	}
	invalid := c.Check()
	c = c.withDefaults()
	return call.Capability{Metadata: m, Invoke: func(ctx context.Context, req *call.Request) (*call.Reply, error) {
		if invalid != nil {
			return nil, invalid
		}
		f, err := read(req.Input, c)
		if err != nil {
			return nil, err
		}
		model, err := solve(ctx, f, c.Conflicts)
		if err != nil {
			return nil, err
		}
		out, err := json.Marshal(answer{Satisfiable: model != nil, Model: f.named(model)})
		if err != nil {
			return nil, err
		}
		return &call.Reply{Type: call.Value, Out: out}, nil
	}}
}

type answer struct {
	Satisfiable bool            `json:"satisfiable"`
	Model       map[string]bool `json:"model,omitzero"`
}

// A formula consists of the clauses and groups that a model must satisfy. Variables are numbers from 1; a negative number is a
// negated variable.
type formula struct {
	names      []string // element i is the name of variable i+1
	clauses    [][]int  // at least one literal of each is true
	atMost     [][]int  // at most one literal of each is true
	exactlyOne [][]int
}

func (f *formula) named(model []bool) map[string]bool {
	if model == nil {
		return nil
	}
	named := make(map[string]bool, len(f.names))
	for i, name := range f.names {
		named[name] = model[i]
	}
	return named
}

// holds reports whether a model satisfies the formula.
func (f *formula) holds(model []bool) error {
	count := func(literals []int) int {
		n, seen := 0, map[int]bool{}
		for _, l := range literals {
			if !seen[l] && (l > 0) == model[max(l, -l)-1] {
				n++
			}
			seen[l] = true
		}
		return n
	}
	for i, c := range f.clauses {
		if count(c) == 0 {
			return fmt.Errorf("clause %d is not satisfied", i+1)
		}
	}
	for i, g := range f.atMost {
		if count(g) > 1 {
			return fmt.Errorf("group %d of at-most-one is not satisfied", i+1)
		}
	}
	for i, g := range f.exactlyOne {
		if count(g) != 1 {
			return fmt.Errorf("exactly-one group %d is not satisfied", i+1)
		}
	}
	return nil
}

// compile returns clauses that are equivalent to the formula. They contain additional variables.
func (f *formula) compile() (clauses [][]int, variables int) {
	variables = len(f.names)
	add := func(literals ...int) {
		if c, taut := tidy(literals); !taut {
			clauses = append(clauses, c)
		}
	}
	atMostOne := func(group []int) {
		group, _ = tidy(group)
		if len(group) <= 5 {
			for i, a := range group {
				for _, b := range group[:i] {
					add(-a, -b)
				}
			}
			return
		}
		// For each literal of a group, an additional variable means that this literal or an earlier one is true. This requires at
		// most three clauses per literal; comparing literals in pairs would require a quadratic number.
		for i, l := range group {
			upTo := variables + i + 1
			add(-l, upTo)
			if i > 0 {
				add(-(upTo - 1), upTo)
				add(-(upTo - 1), -l)
			}
		}
		variables += len(group)
	}
	for _, c := range f.clauses {
		add(c...)
	}
	for _, g := range f.atMost {
		atMostOne(g)
	}
	for _, g := range f.exactlyOne {
		add(g...)
		atMostOne(g)
	}
	return clauses, variables
}

// tidy returns the literals of a clause without duplicates, and reports whether the clause is always true because it contains a
// literal and its negation.
func tidy(literals []int) (once []int, taut bool) {
	seen := make(map[int]bool, len(literals))
	for _, l := range literals {
		if seen[l] {
			continue
		}
		seen[l] = true
		taut = taut || seen[-l]
		once = append(once, l)
	}
	return once, taut
}
