//go:build darwin || freebsd || netbsd

package trust

import (
	"fmt"
	"io/fs"
	"syscall"
)

// identity tells a file from the one that replaces it: by its number, which may be used again, and the time of its birth.
func identity(_ string, info fs.FileInfo) string {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok || s.Birthtimespec.Sec <= 0 { // the file system keeps no such time
		return ""
	}
	return fmt.Sprintf("%d %d", s.Ino, s.Birthtimespec.Nano())
}
