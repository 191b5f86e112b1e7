package boxtest

import "golang.org/x/sys/unix"

// hasLandlock reports whether the kernel supports version 6 of Landlock or a later version.
func hasLandlock() bool {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	return errno == 0 && version >= 6
}
