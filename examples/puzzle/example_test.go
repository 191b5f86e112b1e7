package puzzle_test

import (
	"context"
	"fmt"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/examples/puzzle"
)

func Example() {
	p, err := puzzle.Pipeline(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	res, err := stone.Run(context.Background(), p, stone.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(res.Node.Text())
	// Output:
	// A sudoku, asked for in Go: one after the other
	//
	//   ✗ model/sure           is refused: legal-sudoku: column 8 has 2 twice, column 9 has 1 twice
	//   ✓ solver/sudoku        is accepted
	//
	//     5 3 4 │ 6 7 8 │ 9 1 2
	//     6 7 2 │ 1 9 5 │ 3 4 8
	//     1 9 8 │ 3 4 2 │ 5 6 7
	//     ──────┼───────┼──────
	//     8 5 9 │ 7 6 1 │ 4 2 3
	//     4 2 6 │ 8 5 3 │ 7 9 1
	//     7 1 3 │ 9 2 4 │ 8 5 6
	//     ──────┼───────┼──────
	//     9 6 1 │ 5 3 7 │ 2 8 4
	//     2 8 7 │ 4 1 9 │ 6 3 5
	//     3 4 5 │ 2 8 6 │ 1 7 9
	//
	// A harder one: a race, in which the second starts 20 ms later
	//
	//   – solver/backtracking  was slower, and is stopped
	//   ✓ solver/sudoku        is accepted
	//
	//     9 8 7 │ 6 5 4 │ 3 2 1
	//     2 4 6 │ 1 7 3 │ 9 8 5
	//     3 5 1 │ 9 2 8 │ 7 4 6
	//     ──────┼───────┼──────
	//     1 2 8 │ 5 3 7 │ 6 9 4
	//     6 3 4 │ 8 9 2 │ 1 5 7
	//     7 9 5 │ 4 6 1 │ 8 3 2
	//     ──────┼───────┼──────
	//     5 1 9 │ 2 8 6 │ 4 7 3
	//     4 7 2 │ 3 1 9 │ 5 6 8
	//     8 6 3 │ 7 4 5 │ 2 1 9
	//
	// Colours for a map, asked for in a plan: one after the other
	//
	//   ✗ model/bold           is refused: legal-colouring: Northern Territory and Queensland are both blue, South Australia and Victoria are both green
	//   ✓ solver/colours       is accepted
	//
	//     red    South Australia, Tasmania
	//     green  Western Australia, Queensland, Victoria
	//     blue   Northern Territory, New South Wales
	//
	// The same again: a model that may repair its answer
	//
	//   ✗ model/diligent       is refused: legal-colouring: New South Wales and Victoria are both green
	//   ✓ model/diligent       repairs it, and is accepted
	//
	//     red    Western Australia, Queensland, Victoria, Tasmania
	//     green  Northern Territory, New South Wales
	//     blue   South Australia
	//
	// A caption: a tournament, and a judge
	//
	//   ✗ model/vain           is refused: the score is 0.2, want 0.5 (the judge gives 0.2)
	//   ✓ model/plain          is accepted (the judge gives 0.9)
	//
	//     “Seven states in three colours, no two neighbours alike.”
}
