//go:build unix

package cli

import "syscall"

// openFiles returns the maximum number of files that this process may have open, or 0 if unknown.
func openFiles() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return uint64(limit.Cur) // the type is signed on some systems
}
