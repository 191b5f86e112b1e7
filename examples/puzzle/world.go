package puzzle

import (
	"context"
	_ "embed"
	"encoding/json"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/plan"
	"github.com/stonelayer/stone/schema"
	"github.com/stonelayer/stone/x/solve/sat"
)

//go:embed by-sat.edn
var bySAT []byte

// world returns an applicator with the capabilities and checks of the puzzles.
func world() (*call.Applicator, error) {
	p, err := plan.Read(bySAT)
	if err != nil {
		return nil, err
	}
	colours, err := plan.Capability(call.Metadata{ID: "solver/colours", Intents: []string{"map/colour"}, Out: "colouring"}, p)
	if err != nil {
		return nil, err
	}
	app := &call.Applicator{
		Tools: call.NewRegistry(
			call.Func(call.Metadata{ID: "colours/encode"}, encodeColours),
			call.Func(call.Metadata{ID: "colours/decode"}, decodeColours),
		),
		Schemas: map[string]*schema.Schema{"grid": Easy.Schema(), "colouring": Coloured.Schema()},
		Checks: map[string]call.Check{
			"legal-sudoku":    legal(legalSudoku),
			"legal-colouring": legal(legalColouring),
		},
		Policy: call.Policy{Intents: map[string]call.Rules{
			"map/caption": {Judge: call.Judge{On: new(true), Weight: new(1.0), Cap: "judge/critic"}},
		}},
		Plans: plan.Planner(plan.Options{}),
	}
	app.Registry = call.NewRegistry(append(models(app), sat.New(call.Metadata{}, sat.Config{}), colours, sudokuBySAT(app),
		call.Func(call.Metadata{ID: "solver/backtracking", Kind: "solver", Intents: []string{"sudoku/solve"}, In: "grid", Out: "grid"}, backtrack))...)
	return app, nil
}

// legal makes a check from a function that compares an answer with its puzzle.
func legal[A, B any](fn func(asked A, said B) error) call.Check {
	return func(_ context.Context, s call.Subject) error {
		var asked A
		var said B
		if err := json.Unmarshal(s.Request.Input, &asked); err != nil {
			return err
		}
		if err := json.Unmarshal(s.Out, &said); err != nil {
			return err
		}
		return fn(asked, said)
	}
}

var (
	formula = dag.NewType[Formula]("formula")
	verdict = dag.NewType[Verdict]("verdict")
	decoded = dag.NewType[Grid]("decoded")
)

// sudokuBySAT makes a capability from a pipeline, one step of which is a call.
// By-sat.edn is the same thing as data, for colours.
func sudokuBySAT(app *call.Applicator) call.Capability {
	return call.Pipeline(
		call.Metadata{ID: "solver/sudoku", Kind: "solver", Intents: []string{"sudoku/solve"}, In: "grid", Out: "grid"},
		stone.Seq("by-sat",
			stone.Func("encode", Easy, formula, encodeSudoku),
			call.New("decide", verdict, call.Spec{
				Applicator: app,
				Intent:     "sat/solve",
				Input:      call.From(formula),
			}),
			stone.Func("decode", verdict, decoded, decodeSudoku),
		), Easy, decoded)
}
