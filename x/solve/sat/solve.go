package sat

import (
	"context"
	"fmt"

	"github.com/crillab/gophersat/solver"

	"github.com/stonelayer/stone/call"
)

// turn is held by the formula that is being solved. The solvers of a process share a buffer, so if two worked at once, each would
// learn the other's clauses.
var turn = make(chan struct{}, 1)

// solve returns a model, or nil if the formula has none.
func solve(ctx context.Context, f *formula, conflicts int) ([]bool, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	clauses, variables := f.compile()
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	learned, result := make(chan string), make(chan outcome, 1)
	go func() {
		defer func() { <-turn }() // only after the solver has ended, even if no caller is waiting
		result <- run(clauses, variables, learned)
	}()
	for n := 0; ; n++ {
		select {
		case r := <-result:
			if r.err != nil || r.model == nil {
				return nil, r.err
			}
			model := r.model[:len(f.names)]
			if err := f.holds(model); err != nil {
				return nil, fmt.Errorf("the solver answered with a wrong model: %w", err)
			}
			return model, nil
		case <-learned:
			if n < conflicts {
				continue
			}
			stop(learned)
			return nil, &call.Error{Type: kindGaveUp, Message: fmt.Sprintf("not decided within %d conflicts", conflicts)}
		case <-ctx.Done():
			stop(learned)
			return nil, ctx.Err()
		}
	}
}

type outcome struct {
	model []bool
	err   error
}

// run solves the clauses. Whenever the solver has learned a clause, run blocks until the clause is received. A panic comes from
// the solver, or from sending on learned when this channel has been closed.
func run(clauses [][]int, variables int, learned chan string) (o outcome) {
	defer func() {
		if r := recover(); r != nil {
			o = outcome{err: fmt.Errorf("the solver panicked: %v", r)}
		}
	}()
	if variables == 0 { // the solver would divide by zero
		if len(clauses) > 0 {
			return outcome{}
		}
		return outcome{model: []bool{}}
	}
	s := solver.New(solver.ParseSliceNb(clauses, variables))
	s.Certified, s.CertChan = true, learned
	switch status := s.Solve(); status {
	case solver.Sat:
		model := make([]bool, variables)
		copy(model, s.Model())
		return outcome{model: model}
	case solver.Unsat:
		return outcome{}
	default:
		return outcome{err: fmt.Errorf("the solver ended with status %v", status)}
	}
}
