package puzzle

import (
	"context"
	"fmt"
	"strings"

	"github.com/stonelayer/stone"
)

// Formula is the input of the capability sat/solve.
type Formula struct {
	Clauses    [][]string `json:"clauses"`
	ExactlyOne [][]string `json:"exactly-one"`
}

// Verdict is its answer.
type Verdict struct {
	Satisfiable bool            `json:"satisfiable"`
	Model       map[string]bool `json:"model,omitempty"`
}

var errUnsolvable = stone.Fail("unsolvable", "there is no solution")

// digitAt names the variable that is true if a cell has a digit.
func digitAt(row, column, digit int) string { return fmt.Sprintf("r%dc%d=%d", row+1, column+1, digit) }

// encodeSudoku says in a formula that every cell has one digit, every house has
// every digit once, and the digits that are given stay.
func encodeSudoku(_ context.Context, g Grid) (Formula, error) {
	given, err := g.cells()
	if err != nil {
		return Formula{}, err
	}
	f := Formula{Clauses: [][]string{}}
	for r := range 9 {
		for c := range 9 {
			var one []string
			for digit := 1; digit <= 9; digit++ {
				one = append(one, digitAt(r, c, digit))
			}
			f.ExactlyOne = append(f.ExactlyOne, one)
			if digit := given[r][c]; digit != 0 {
				f.Clauses = append(f.Clauses, []string{digitAt(r, c, digit)})
			}
		}
	}
	for _, h := range houses {
		for digit := 1; digit <= 9; digit++ {
			var one []string
			for _, at := range h.cells {
				one = append(one, digitAt(at[0], at[1], digit))
			}
			f.ExactlyOne = append(f.ExactlyOne, one)
		}
	}
	return f, nil
}

func decodeSudoku(_ context.Context, v Verdict) (Grid, error) {
	if !v.Satisfiable {
		return Grid{}, errUnsolvable
	}
	var found cells
	for r := range 9 {
		for c := range 9 {
			for digit := 1; digit <= 9; digit++ {
				if v.Model[digitAt(r, c, digit)] {
					found[r][c] = digit
				}
			}
		}
	}
	return found.grid(), nil
}

// is joins state and colour in the name of a variable.
const is = " is "

// encodeColours says in a formula that every state has one colour, and neighbours
// have none in common.
func encodeColours(_ context.Context, c Country) (Formula, error) {
	f := Formula{Clauses: [][]string{}, ExactlyOne: [][]string{}}
	for _, state := range c.States {
		var one []string
		for _, colour := range c.Palette {
			one = append(one, state+is+colour)
		}
		f.ExactlyOne = append(f.ExactlyOne, one)
	}
	for _, border := range c.Borders {
		if len(border) != 2 {
			return Formula{}, fmt.Errorf("the border %q is not between two states", border)
		}
		for _, colour := range c.Palette {
			f.Clauses = append(f.Clauses, []string{"-" + border[0] + is + colour, "-" + border[1] + is + colour})
		}
	}
	return f, nil
}

func decodeColours(_ context.Context, v Verdict) (Colouring, error) {
	if !v.Satisfiable {
		return Colouring{}, errUnsolvable
	}
	out := Colouring{map[string]string{}}
	for name, yes := range v.Model {
		if state, colour, ok := strings.Cut(name, is); ok && yes {
			out.Colours[state] = colour
		}
	}
	return out, nil
}
