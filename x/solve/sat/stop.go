//go:build !race

package sat

// stop ends a solver: the next time that the solver reports a clause, it panics.
func stop(learned chan string) { close(learned) }
