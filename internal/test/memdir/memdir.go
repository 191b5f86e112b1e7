// Package memdir provides folders in memory for tests. Tests that commit often, and only simulate the end of processes, do not
// need a disk, and a commit to the disk of a shared machine can take a minute.
package memdir

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/test/need"
)

// New returns an empty folder, which is removed after the test. The folder is on disk if the system has no /dev/shm, or only a
// small one, as in a container.
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
	if err := os.Chmod(folder, 0o755); err != nil { // the same mode as with t.TempDir
		t.Fatal(err)
	}
	return folder
}

// Disk mounts a separate disk in memory on a folder, with a size in bytes and additional tmpfs options, until the returned
// function is called. It skips the test if this process is not allowed to mount.
func Disk(t testing.TB, folder string, size int, options ...string) (remove func() error) {
	t.Helper()
	if err := mount(folder, strings.Join(append(options, fmt.Sprint("size=", size)), ",")); err != nil {
		need.Absent(t, fmt.Sprintf("no disk of its own: mount tmpfs: %v", err))
	}
	return func() error { return unmount(folder) }
}
