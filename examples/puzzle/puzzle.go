// Package puzzle asks for things that are hard to find and easy to check: sudokus,
// and colours for the states of a map. Models are asked first. They are sure, and
// some of them are wrong; a check that knows the rules lets none of that through,
// and somebody who can do it answers in the end.
//
//	go run ./cmd/stone run ./examples/puzzle
//
// The sudokus are asked for in Go. The map is coloured by a plan, colouring.edn,
// which is data, and one of those that answer it is another plan, by-sat.edn. Both
// use the same capabilities, and stand in one pipeline. Nothing has to be installed:
// the models say what a script tells them to.
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

// Text is what a model says, and what is printed in the end.
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
	Mended   = dag.NewType[Colouring]("mended")
	Caption  = dag.NewType[Text]("caption")

	Story = dag.NewType[Text]("story")
)

//go:embed colouring.edn
var colouring []byte

// Pipeline sets the puzzles, has them solved and tells how that went. It takes no
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
		// One after the other: who is refused makes room for the next.
		call.New("solve-sudoku", EasySolved, call.Spec{
			Applicator: app,
			Intent:     "sudoku/solve",
			Input:      call.From(Easy),
			Dispatch:   call.Dispatch{Candidates: []string{"model/sure", "solver/sudoku"}},
			Done:       call.Done{Must: []string{"legal-sudoku"}},
		}),
		set("set-hard-sudoku", Hard, hard),
		// Two at once, the second after a while: who is first has won.
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
		stone.New("tell", Story, tell, stone.Queries(Easy, EasySolved, HardSolved, Map, Coloured, Mended, Caption)),
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
