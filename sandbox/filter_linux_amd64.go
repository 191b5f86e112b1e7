package sandbox

import "golang.org/x/sys/unix"

// legacyChanges are older calls that change files by path.
var legacyChanges = []uint32{unix.SYS_CHMOD, unix.SYS_CHOWN, unix.SYS_LCHOWN, unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT}

// legacyModes are older calls that set the mode of a file.
var legacyModes = []modeCall{{unix.SYS_CREAT, 1}, {unix.SYS_CHMOD, 1}, {unix.SYS_MKNOD, 1}}

var legacyOpens = []modeCall{{unix.SYS_OPEN, 1}}
