package trust

import (
	"errors"
	"os"
	"testing"

	"github.com/stonelayer/stone/internal/test/need"
)

// A file without a time of birth is not believed, however often it is marked: its number may be used again.
func TestUnknownIdentity(t *testing.T) {
	const file = "/proc/self/status" // procfs keeps no times of birth, and has no handles
	info, err := os.Stat(file)
	if err != nil {
		need.Absent(t, "there is no procfs")
	}
	if id := identity(file, info); id != "" {
		t.Fatalf("identity %q", id)
	}
	if id := identity("/proc/missing", info); id != "" {
		t.Errorf("a missing file has the identity %q", id)
	}
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	s, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Believe(file); !errors.Is(err, errUnknown) {
		t.Errorf("marked: %v", err)
	}
	if err := s.keep(file, ""); err != nil {
		t.Fatal(err)
	}
	if believed, err := s.Believed(file); err != nil || believed {
		t.Errorf("believed %v, %v", believed, err)
	}
}
