package trust

import (
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// identity returns a string that distinguishes a file from a file that replaces it. It contains the file's number, which may be
// reused, and its creation time. File systems that do not store this time, such as NFS, have file handles with a generation
// number, which is used instead.
func identity(file string, _ fs.FileInfo) string {
	var s unix.Statx_t
	const need = unix.STATX_INO | unix.STATX_BTIME
	if err := unix.Statx(unix.AT_FDCWD, file, 0, need, &s); err == nil && s.Mask&need == need {
		return fmt.Sprintf("%d %d.%d", s.Ino, s.Btime.Sec, s.Btime.Nsec)
	}
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, file, unix.AT_SYMLINK_FOLLOW)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%d %x", h.Type(), h.Bytes())
}
