// Package memdir gives tests a folder in memory. Tests that commit often and only end processes
// need no disk, and the disk of a shared machine can take a minute for one commit.
package memdir

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/test/need"
)

// New returns an empty folder, which is removed after the test. It is on the disk if the system
// has no /dev/shm, or a small one, as in a container.
func New(t testing.TB) string {
	t.Helper()
	if !spacious("/dev/shm") {
		return t.TempDir()
	}
	folder, err := os.MkdirTemp("/dev/shm", "stone-test-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(folder, 0o755); err != nil { // as t.TempDir does
		t.Fatal(err)
	}
	return folder
}

// Disk makes a folder a disk of its own in memory, of a size in bytes and with further options of
// tmpfs, until the returned function is called. It skips the test where nobody may mount.
func Disk(t testing.TB, folder string, size int, options ...string) (remove func() error) {
	t.Helper()
	if err := mount(folder, strings.Join(append(options, fmt.Sprint("size=", size)), ",")); err != nil {
		need.Absent(t, fmt.Sprintf("no disk of its own: mount tmpfs: %v", err))
	}
	return func() error { return unmount(folder) }
}
