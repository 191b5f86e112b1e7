package sandbox

import "golang.org/x/sys/unix"

// legacyChanges change files by their paths.
var legacyChanges = []uint32{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN}
