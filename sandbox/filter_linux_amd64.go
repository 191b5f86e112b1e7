package sandbox

import "golang.org/x/sys/unix"

// legacyChanges change files by their paths.
var legacyChanges = []uint32{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT}

// legacyModes give files a mode.
var legacyModes = []modeCall{{unix.SYS_CREAT, 1}, {unix.SYS_CHMOD, 1}, {unix.SYS_MKNOD, 1}}

var legacyOpens = []modeCall{{unix.SYS_OPEN, 1}}
