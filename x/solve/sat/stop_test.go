//go:build !race

package sat

import (
	"strings"
	"testing"
)

// Under the race detector solvers run to their end.
const stops = true

func TestGivesUp(t *testing.T) {
	_, err := ask(t.Context(), Config{Conflicts: 1000}, pigeons(12))
	if err == nil || !strings.Contains(err.Error(), "solver/gave-up: not decided within 1000 conflicts") {
		t.Error(err)
	}
}
