package puzzle

import "context"

// backtrack tries digits cell by cell and removes those that lead nowhere. It finds the
// solution, but may be slow.
func backtrack(ctx context.Context, g Grid) (Grid, error) {
	c, err := g.cells()
	if err != nil {
		return Grid{}, err
	}
	s := search{ctx: ctx, cells: c}
	switch {
	case s.from(0):
		return s.cells.grid(), nil
	case s.stopped:
		return Grid{}, ctx.Err()
	}
	return Grid{}, errUnsolvable
}

type search struct {
	ctx     context.Context
	cells   cells
	tries   int
	stopped bool // its context is canceled
}

// from fills the cells from the n-th one on.
func (s *search) from(n int) bool {
	for n < 81 && s.cells[n/9][n%9] != 0 {
		n++
	}
	if n == 81 {
		return true
	}
	r, c := n/9, n%9
	for digit := 1; digit <= 9 && !s.stopped; digit++ {
		if s.tries++; s.tries%1024 == 0 {
			s.stopped = s.ctx.Err() != nil
		}
		if s.fits(r, c, digit) {
			s.cells[r][c] = digit
			if s.from(n + 1) {
				return true
			}
			s.cells[r][c] = 0
		}
	}
	return false
}

func (s *search) fits(r, c, digit int) bool {
	for i := range 9 {
		if s.cells[r][i] == digit || s.cells[i][c] == digit || s.cells[r/3*3+i/3][c/3*3+i%3] == digit {
			return false
		}
	}
	return true
}
