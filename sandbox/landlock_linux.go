package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Version 6 (Linux 6.12) is the first that can prevent a command from sending signals to the user's processes. Version 3 is the
// first that can prevent it from truncating files.
const minLandlock = 6

// Rights that Landlock handles. Only fileRights can be granted for a file.
const (
	fileRights = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_WRITE_FILE |
		unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	readRights  = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	writeRights = fileRights | readRights |
		unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE | unix.LANDLOCK_ACCESS_FS_MAKE_DIR |
		unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	// These rights are handled but never granted.
	deviceRights = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
)

// devices contains the special files that only return or accept bytes.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// restrict applies the Landlock rules to the calling thread. It requires no_new_privs.
func (r reach) restrict() error {
	ruleset, err := r.ruleset()
	if err != nil {
		return err
	}
	defer unix.Close(ruleset)
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); errno != 0 {
		return fmt.Errorf("landlock_restrict_self: %w", errno)
	}
	return nil
}

// ruleset returns a file descriptor for the Landlock rules of the policy.
func (r reach) ruleset() (fd int, err error) {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return -1, fmt.Errorf("the kernel has no Landlock, or it is off: %w", errno)
	}
	if version < minLandlock {
		return -1, fmt.Errorf("the kernel has Landlock %d, and %d (Linux 6.12) is needed", version, minLandlock)
	}
	attr := unix.LandlockRulesetAttr{
		Handled_access_fs: writeRights | deviceRights,
		Scoped:            unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL,
	}
	size := unsafe.Offsetof(attr.Quiet_access_fs) // size of the attributes in version 6
	handle, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return -1, fmt.Errorf("landlock_create_ruleset: %w", errno)
	}
	fd = int(handle)
	defer func() {
		if err != nil {
			unix.Close(fd)
		}
	}()
	for _, p := range r.Writable {
		if err := r.write(fd, p.Real); err != nil {
			return -1, err
		}
	}
	read := slices.Clone(r.Fixed)
	for _, p := range r.ReadOnly {
		read = append(read, p.Real)
	}
	return fd, errors.Join(
		allowFound(fd, read, readRights, unix.RESOLVE_NO_SYMLINKS),
		allowFound(fd, append(system, "/proc"), readRights, 0),
		allowFound(fd, devices, fileRights, 0))
}

// write grants all rights below a path, except for the fixed paths and for /proc, /sys and /dev. Landlock does not support
// exceptions, so if a directory contains a fixed path, write grants rights for each of its entries. Commands can then not create or
// remove entries of this directory.
func (r reach) write(ruleset int, path string) error {
	fixed := append(r.Fixed[:len(r.Fixed):len(r.Fixed)], "/proc", "/sys", "/dev")
	if !slices.ContainsFunc(fixed, func(f string) bool { return below(f, path) }) {
		return allow(ruleset, path, writeRights, unix.RESOLVE_NO_SYMLINKS)
	}
	if err := allow(ruleset, path, unix.LANDLOCK_ACCESS_FS_READ_DIR, unix.RESOLVE_NO_SYMLINKS); err != nil {
		return err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		entry := filepath.Join(path, e.Name())
		if slices.Contains(fixed, entry) || e.Type()&os.ModeSymlink != 0 {
			continue
		}
		if err := r.write(ruleset, entry); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// allowFound grants rights below the paths. It skips paths that do not exist.
func allowFound(ruleset int, paths []string, rights, how uint64) error {
	for _, path := range paths {
		if err := allow(ruleset, path, rights, how); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// allow grants rights below a path. It returns an error if part of the path has become a symbolic link since the policy was
// resolved.
func allow(ruleset int, path string, rights, how uint64) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: how})
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
