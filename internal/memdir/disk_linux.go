package memdir

import "syscall"

// spacious reports whether a file system has 2 GB.
func spacious(folder string) bool {
	var s syscall.Statfs_t
	return syscall.Statfs(folder, &s) == nil && s.Bavail*uint64(s.Bsize) >= 2<<30
}

func mount(folder, options string) error { return syscall.Mount("tmpfs", folder, "tmpfs", 0, options) }

// unmount does not wait for descriptors: a process that is just being started by another test has
// those of this one until it is another program.
func unmount(folder string) error { return syscall.Unmount(folder, syscall.MNT_DETACH) }
