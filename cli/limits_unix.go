//go:build unix

package cli

import "syscall"

// openFiles returns how many files this process may open at once, 0 if unknown.
func openFiles() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return 0
	}
	return uint64(limit.Cur) // signed on some systems
}
