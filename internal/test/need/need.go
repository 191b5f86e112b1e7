// Package need lets a test say what it needs: time, or a program. A test whose program is absent is
// skipped with a line; where STONE_REQUIRED is set, as in .ci/run, it fails.
package need

import (
	"os"
	"os/exec"
	"testing"
)

// Time skips a test that takes long, in short mode: `make test` runs in it.
func Time(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long: see make test-all")
	}
}

// Program returns the path of a program, or reports it as absent.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Absent(t, "the program "+name+" is not installed")
	}
	return path
}

// Absent skips the test, or fails it where everything is required.
func Absent(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("STONE_REQUIRED") != "" {
		t.Fatal(what)
	}
	t.Skip(what)
}
