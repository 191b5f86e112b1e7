package memdir

import "syscall"

// spacious reports whether a file system has 2 GB.
func spacious(folder string) bool {
	var s syscall.Statfs_t
	return syscall.Statfs(folder, &s) == nil && s.Bavail*uint64(s.Bsize) >= 2<<30
}

func mount(folder, options string) error { return syscall.Mount("tmpfs", folder, "tmpfs", 0, options) }

// unmount does not wait for descriptors: between fork and exec, a process that another test starts
// has the descriptors of this one.
func unmount(folder string) error { return syscall.Unmount(folder, syscall.MNT_DETACH) }
