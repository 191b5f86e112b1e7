package memdir

import "syscall"

// spacious reports whether a file system has 2 GB of free space.
func spacious(folder string) bool {
	var s syscall.Statfs_t
	return syscall.Statfs(folder, &s) == nil && s.Bavail*uint64(s.Bsize) >= 2<<30
}

func mount(folder, options string) error { return syscall.Mount("tmpfs", folder, "tmpfs", 0, options) }

// unmount does not wait until all file descriptors are closed, because a process that another test is starting has this process's
// descriptors between fork and exec.
func unmount(folder string) error { return syscall.Unmount(folder, syscall.MNT_DETACH) }
