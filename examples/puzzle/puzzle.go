// Package puzzle asks for things that are hard to find and easy to check: sudokus,
// and colours for the states of a map. Models are asked first. They are sure, and
// some of them are wrong; a check that knows the rules refuses wrong answers, and a
// solver answers in the end.
//
//	go run ./cmd/stone run ./examples/puzzle
//
// The sudokus are asked for in Go. The map is coloured by a plan, colouring.edn,
// which is data, and one of its capabilities is another plan, by-sat.edn. Both use the
// same capabilities and are part of one pipeline. No installation is needed: the models
// are scripted.
package puzzle

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/call"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/plan"
)

// Text is the answer of a model, and the printed result.
type Text struct {
	Text string `json:"text"`
}

var (
	Easy       = dag.NewType[Grid]("sudoku")
	EasySolved = dag.NewType[Grid]("sudoku-solved")
	Hard       = dag.NewType[Grid]("hard-sudoku")
	HardSolved = dag.NewType[Grid]("hard-sudoku-solved")

	// The plan reads the first of these and writes the others.
	Map      = dag.NewType[Country]("country")
	Coloured = dag.NewType[Colouring]("coloured")
	Repaired = dag.NewType[Colouring]("repaired")
	Caption  = dag.NewType[Text]("caption")

	Story = dag.NewType[Text]("story")
)

//go:embed colouring.edn
var colouring []byte

// Pipeline sets the puzzles, has them solved and reports the calls. It takes no
// arguments.
func Pipeline(args []string) (stone.Ashlar, error) {
	if len(args) > 0 {
		return stone.Ashlar{}, fmt.Errorf("unexpected argument %q: the puzzles take none", args[0])
	}
	app, err := world()
	if err != nil {
		return stone.Ashlar{}, err
	}
	colour, err := ashlarOf(app, colouring)
	if err != nil {
		return stone.Ashlar{}, err
	}
	return stone.Seq("puzzle",
		set("set-sudoku", Easy, easy),
		// One after the other: after a refusal, the next one is asked.
		call.New("solve-sudoku", EasySolved, call.Spec{
			Applicator: app,
			Intent:     "sudoku/solve",
			Input:      call.From(Easy),
			Dispatch:   call.Dispatch{Candidates: []string{"model/sure", "solver/sudoku"}},
			Done:       call.Done{Must: []string{"legal-sudoku"}},
		}),
		set("set-hard-sudoku", Hard, hard),
		// Two at once, the second after a delay: the first good answer wins.
		call.New("race-for-sudoku", HardSolved, call.Spec{
			Applicator: app,
			Intent:     "sudoku/solve",
			Input:      call.From(Hard),
			Dispatch: call.Dispatch{
				Candidates: []string{"solver/backtracking", "solver/sudoku"},
				Strategy:   call.Race, Hedge: 20 * time.Millisecond,
			},
			Done: call.Done{Must: []string{"legal-sudoku"}},
		}),
		set("set-map", Map, australia),
		colour,
		stone.New("tell", Story, tell, stone.Queries(Easy, EasySolved, HardSolved, Map, Coloured, Repaired, Caption)),
	), nil
}

func ashlarOf(app *call.Applicator, text []byte) (stone.Ashlar, error) {
	p, err := plan.Read(text)
	if err != nil {
		return stone.Ashlar{}, err
	}
	return p.Ashlar(app, plan.Options{})
}

// set puts a puzzle into the DAG.
func set[T any](name string, out dag.Type[T], puzzle T) stone.Ashlar {
	return stone.Func0(name, out, func(context.Context) (T, error) { return puzzle, nil })
}
