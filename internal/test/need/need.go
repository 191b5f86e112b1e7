// Package need lets a test state what it needs, such as time or a program. If the program is absent, the test is skipped with a
// message. If STONE_REQUIRED is set, as in .ci/run, the test fails instead.
package need

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Time skips a long test in short mode, which `make test` uses.
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

// Absent skips the test, or fails it if STONE_REQUIRED is set.
func Absent(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("STONE_REQUIRED") != "" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// Recorded returns the files that match a pattern in the folder "shared" next to the checkout. This folder contains recordings and
// specifications, and is not part of the module. If there are no such files, Recorded reports them as absent.
func Recorded(t testing.TB, pattern string) []string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for up := filepath.Dir(dir); ; up = filepath.Dir(up) {
		files, err := filepath.Glob(filepath.Join(up, "shared", filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		if len(files) > 0 {
			return files
		}
		if up == filepath.Dir(up) {
			Absent(t, "there is no shared/"+pattern+" beside the checkout")
		}
	}
}
