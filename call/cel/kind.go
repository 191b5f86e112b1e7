package cel

import (
	"cmp"

	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/call/cel/internal/expr"
	"github.com/stonelayer/stone/internal/form"
	"github.com/stonelayer/stone/internal/kinds"
)

func init() {
	kinds.Register(kinds.Kind{
		Name:         "solver/cel",
		Read:         readKind,
		Unconfigured: "{:cap/kind :solver :solver :cel}",
	})
	kinds.Speak(kinds.Language{
		Check: check,
		Formula: func(text string, variables []string) (kinds.Formula, error) {
			program, err := expr.Compile(text, variables, expr.Any)
			if err != nil {
				return nil, err
			}
			return program, nil
		},
		Guard: func(text string, variables []string) (kinds.Guard, error) {
			program, err := expr.Compile(text, variables, expr.Bool)
			if err != nil {
				return nil, err
			}
			return program, nil
		},
	})
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
