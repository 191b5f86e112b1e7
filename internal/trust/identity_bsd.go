//go:build darwin || freebsd || netbsd

package trust

import (
	"fmt"
	"io/fs"
	"syscall"
)

// identity distinguishes a file from its replacement by its number, which may be reused, and its creation time.
func identity(_ string, info fs.FileInfo) string {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok || s.Birthtimespec.Sec <= 0 { // the file system keeps no such time
		return ""
	}
	return fmt.Sprintf("%d %d", s.Ino, s.Birthtimespec.Nano())
}
