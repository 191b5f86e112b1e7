package puzzle

import (
	"errors"
	"fmt"
	"strings"
)

// Grid is a sudoku, solved or not: nine rows of nine digits, a dot where one is
// missing.
type Grid struct {
	Rows []string `json:"rows"`
}

var easy = Grid{[]string{
	"53..7....",
	"6..195...",
	".98....6.",
	"8...6...3",
	"4..8.3..1",
	"7...2...6",
	".6....28.",
	"...419..5",
	"....8..79",
}}

// hard leaves a search that goes row by row with the largest first digits for the
// very end.
var hard = Grid{[]string{
	".........",
	".....3.85",
	"..1.2....",
	"...5.7...",
	"..4...1..",
	".9.......",
	"5......73",
	"..2.1....",
	"....4...9",
}}

// digits by their value; a dot is none.
const digits = ".123456789"

// cells are the digits of a grid, 0 where one is missing.
type cells [9][9]int

func (g Grid) cells() (c cells, err error) {
	if len(g.Rows) != 9 {
		return c, fmt.Errorf("it has %d rows, want 9", len(g.Rows))
	}
	for r, row := range g.Rows {
		if len(row) != 9 {
			return c, fmt.Errorf("row %d is %.20q: want nine digits or dots", r+1, row)
		}
		for col, digit := range []byte(row) {
			at := strings.IndexByte(digits, digit)
			if at < 0 {
				return c, fmt.Errorf("row %d is %q: want nine digits or dots", r+1, row)
			}
			c[r][col] = at
		}
	}
	return c, nil
}

func (c cells) grid() Grid {
	g := Grid{make([]string, 9)}
	for r, row := range c {
		for _, digit := range row {
			g.Rows[r] += string(digits[digit])
		}
	}
	return g
}

// house is nine cells that hold every digit once: a row, a column or a box.
type house struct {
	name  string
	cells [9][2]int
}

var houses = func() (all []house) {
	for n := range 9 {
		row, column, box := house{name: fmt.Sprint("row ", n+1)}, house{name: fmt.Sprint("column ", n+1)}, house{name: fmt.Sprint("box ", n+1)}
		for i := range 9 {
			row.cells[i] = [2]int{n, i}
			column.cells[i] = [2]int{i, n}
			box.cells[i] = [2]int{n/3*3 + i/3, n%3*3 + i%3}
		}
		all = append(all, row, column, box)
	}
	return all
}()

// legalSudoku returns every error of a solution.
func legalSudoku(puzzle, solution Grid) error {
	given, err := puzzle.cells()
	if err != nil {
		return fmt.Errorf("the puzzle: %w", err)
	}
	said, err := solution.cells()
	if err != nil {
		return err
	}
	var wrong []string
	for r := range 9 {
		for c := range 9 {
			switch {
			case said[r][c] == 0:
				wrong = append(wrong, fmt.Sprintf("row %d, column %d is empty", r+1, c+1))
			case given[r][c] != 0 && said[r][c] != given[r][c]:
				wrong = append(wrong, fmt.Sprintf("the %d given in row %d, column %d is gone", given[r][c], r+1, c+1))
			}
		}
	}
	for _, h := range houses {
		var times [10]int
		for _, at := range h.cells {
			digit := said[at[0]][at[1]]
			if times[digit]++; digit != 0 && times[digit] == 2 {
				wrong = append(wrong, fmt.Sprintf("%s has %d twice", h.name, digit))
			}
		}
	}
	return listed(wrong)
}

func listed(wrong []string) error {
	if len(wrong) == 0 {
		return nil
	}
	return errors.New(strings.Join(wrong, ", "))
}
