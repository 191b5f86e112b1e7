package cel

import (
	"cmp"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/kinds"
	"github.com/stonelayer/stone/x/cel/internal/expr"
)

// Language is the language of guards, checks and scorers. Package plan needs it for plans whose guards
// are expressions.
var Language call.Language = language{}

type language struct{}

func (language) Guard(text string, variables []string) (call.Expression, error) {
	return compiled(text, variables, expr.Bool)
}

func (language) Formula(text string, variables []string) (call.Expression, error) {
	return compiled(text, variables, expr.Any)
}

func (language) Check(text string) (call.Check, call.CheckFacts, error) { return check(text) }

// compiled compiles an expression. If the compilation fails, it returns a nil interface rather than an interface that contains a
// nil pointer.
func compiled(text string, variables []string, result expr.Result) (call.Expression, error) {
	program, err := expr.Compile(text, variables, result)
	if err != nil {
		return nil, err
	}
	return program, nil
}

// Part adds the solver cel and the expression language to a program.
var Part = kinds.Kind{
	Name:         "solver/cel",
	Read:         readKind,
	Unconfigured: "{:cap/kind :solver :solver :cel}",
	Language:     Language,
}

func readKind(r *kinds.Reader, m *form.Map, _ *kinds.Reached) kinds.Builder {
	var c Config
	kinds.SomeText(m, "expression", &c.Expression)
	return func(meta call.Metadata) (call.Capability, error) {
		err := c.Check()
		for name, s := range r.Outs(meta) {
			err = cmp.Or(err, c.fits(name, s))
		}
		return New(meta, c), err
	}
}
