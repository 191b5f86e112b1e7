//go:build unix

package config

import (
	"io/fs"
	"os"
	"syscall"
)

// ours reports whether the owner of a file is the user of this process, or root.
func ours(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || stat.Uid == 0 || int(stat.Uid) == os.Geteuid()
}
