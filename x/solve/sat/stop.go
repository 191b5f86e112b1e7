//go:build !race

package sat

// stop ends a solver: its next report panics.
func stop(learned chan string) { close(learned) }
