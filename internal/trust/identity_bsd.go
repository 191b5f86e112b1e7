//go:build darwin || freebsd || netbsd

package trust

import (
	"fmt"
	"io/fs"
	"syscall"
)

// identity returns a string that distinguishes a file from a file that replaces it. It contains the file's number, which may be
// reused, and its creation time.
func identity(_ string, info fs.FileInfo) string {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok || s.Birthtimespec.Sec <= 0 { // the file system does not store the creation time
		return ""
	}
	return fmt.Sprintf("%d %d", s.Ino, s.Birthtimespec.Nano())
}
