// Package boxtest is for tests that need a sandbox. An installed sandboxing method is required to work: a test is skipped only if
// the method is absent, because otherwise a method that is present but does not work would never be noticed.
package boxtest

import (
	"os/exec"
	"testing"

	"github.com/stonelayer/stone/internal/test/need"
	"github.com/stonelayer/stone/sandbox"
)

// Need skips the test if the method is absent, and fails it if the method is present but does not work.
func Need(t testing.TB, m sandbox.Method) {
	t.Helper()
	switch {
	case present(m):
	default:
		need.Absent(t, string(m)+" is not installed, or not in this kernel")
	}
	if err := m.Check(); err != nil {
		t.Fatalf("%s is installed and does not work: %v", m, err)
	}
}

// NeedAny is like Need, for the strongest method that is present.
func NeedAny(t testing.TB) sandbox.Method {
	t.Helper()
	for _, m := range []sandbox.Method{sandbox.Bubblewrap, sandbox.Landlock} {
		if present(m) {
			Need(t, m)
			return m
		}
	}
	need.Absent(t, "no sandbox is installed")
	return ""
}

func present(m sandbox.Method) bool {
	switch m {
	case sandbox.Bubblewrap:
		_, err := exec.LookPath("bwrap")
		return err == nil
	case sandbox.Landlock:
		return hasLandlock()
	}
	return true
}
