package confine

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Before version 3 (Linux 6.2) Landlock could not keep a command from truncating
// files that it must not write.
const minLandlock = 3

// Rights of Landlock. A file can only be given those of fileRights.
const (
	fileRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	readRights  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	writeRights = fileRights | readRights |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	// never granted, so only to be handled
	deviceRights = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
)

// devices are the special files that do nothing but give or take bytes.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// confineThread puts the policy on the calling thread, and on all processes that it
// starts from now on, for good. They stay in the process group.
func (p Policy) confineThread(group int) error {
	if auditArch[runtime.GOARCH] == 0 {
		return fmt.Errorf("there is no system call filter for %s", runtime.GOARCH)
	}
	ruleset, err := p.ruleset()
	if err != nil {
		return err
	}
	defer unix.Close(ruleset)
	if err := dropCapabilities(); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	// Needed by the two that follow; and no program with a set-user-id bit helps.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("prctl(PR_SET_NO_NEW_PRIVS): %w", err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); errno != 0 {
		return fmt.Errorf("landlock_restrict_self: %w", errno)
	}
	return filterCalls(group, p.Network)
}

// ruleset returns the file descriptor of the rules.
func (p Policy) ruleset() (fd int, err error) {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return -1, fmt.Errorf("the kernel has no Landlock, or it is off: %w", errno)
	}
	if version < minLandlock {
		return -1, fmt.Errorf("the kernel has Landlock %d, and %d (Linux 6.2) is needed", version, minLandlock)
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: writeRights | deviceRights}
	if version >= 5 {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	if version >= 6 { // it cannot signal other processes of its user
		attr.Scoped = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	}
	r, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), attrSize(version), 0)
	if errno != 0 {
		return -1, fmt.Errorf("landlock_create_ruleset: %w", errno)
	}
	fd = int(r)
	defer func() {
		if err != nil {
			unix.Close(fd)
		}
	}()
	for _, path := range p.Writable {
		if err := allow(fd, path, writeRights); err != nil {
			return -1, err
		}
	}
	if err := allowFound(fd, devices, fileRights); err != nil {
		return -1, err
	}
	return fd, allowFound(fd, slices.Concat(system, p.ReadOnly, []string{"/proc"}), readRights)
}

// allowFound grants rights below those of the paths that exist.
func allowFound(ruleset int, paths []string, rights uint64) error {
	for _, path := range paths {
		if err := allow(ruleset, path, rights); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// attrSize returns how much of the attributes a version knows.
func attrSize(version uintptr) uintptr {
	var attr unix.LandlockRulesetAttr
	switch {
	case version < 4:
		return unsafe.Offsetof(attr.Handled_access_net)
	case version < 6:
		return unsafe.Offsetof(attr.Scoped)
	}
	return unsafe.Offsetof(attr.Quiet_access_fs)
}

// allow grants rights below a path.
func allow(ruleset int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var stat unix.Stat_t
	if err := unix.Fstat(fd, &stat); err != nil {
		return &os.PathError{Op: "stat", Path: path, Err: err}
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileRights
	}
	rule := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	if _, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&rule)), 0, 0, 0); errno != 0 {
		return &os.PathError{Op: "landlock_add_rule", Path: path, Err: errno}
	}
	return nil
}

// dropCapabilities takes from the thread what root may. With no_new_privs a program
// that it starts does not get them back.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}
