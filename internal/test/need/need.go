// Package need lets a test say what it needs: time, or a program. A test whose program is absent is
// skipped with a line; where STONE_REQUIRED is set, as in .ci/run, it fails.
package need

import (
	"os"
	"os/exec"
	"path/filepath"
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

// Recorded returns the files of a pattern in the folder shared beside the checkout, where recordings and specifications
// are, which is not part of the module. Without them it reports them as absent.
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
