//go:build unix

package fs

import (
	"os"
	"syscall"
)

// nonblock makes opening a pipe return at once.
const nonblock = syscall.O_NONBLOCK

// links returns the number of a file's hard links.
func links(info os.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink)
	}
	return 1
}
