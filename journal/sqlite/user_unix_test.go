//go:build unix

package sqlite

import "syscall"

func setUser(uid int) error { return syscall.Setuid(uid) }
