package memdir

import "syscall"

// spacious reports whether a file system has 2 GB.
func spacious(folder string) bool {
	var s syscall.Statfs_t
	return syscall.Statfs(folder, &s) == nil && s.Bavail*uint64(s.Bsize) >= 2<<30
}
