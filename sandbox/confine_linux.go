package sandbox

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// confine puts the policy on the calling thread and what it executes, for good.
func (o order) confine() error {
	// What this process has inherited beyond its streams is not for the command.
	if err := unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close_range: %w", err)
	}
	if err := o.Limits.set(); err != nil {
		return err
	}
	if o.Method == Unconfined {
		return nil
	}
	if auditArch[runtime.GOARCH] == 0 {
		return fmt.Errorf("there is no system call filter for %s", runtime.GOARCH)
	}
	if err := dropCapabilities(); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	// Needed by the two that follow; and no program with a set-user-id bit helps.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("prctl(PR_SET_NO_NEW_PRIVS): %w", err)
	}
	if o.Method == Landlock {
		if err := o.Reach.restrict(); err != nil {
			return err
		}
	}
	return filterCalls(o.Method, o.Network)
}

// set limits this process and its descendants, each by itself.
func (l Limits) set() error {
	seconds := int64(0)
	if l.CPU > 0 {
		seconds = max(1, int64(l.CPU/time.Second))
	}
	return errors.Join(
		limit("core dumps", syscall.RLIMIT_CORE, 0),
		positive("file size", syscall.RLIMIT_FSIZE, l.FileSize),
		positive("open files", syscall.RLIMIT_NOFILE, int64(l.OpenFiles)),
		positive("processor time", syscall.RLIMIT_CPU, seconds),
		positive("threads of the user", unix.RLIMIT_NPROC, userThreads(l.Processes)))
}

// userThreads returns how many threads the user may have so that a command can have
// its own: the kernel counts those of a user, and not those of root.
func userThreads(processes int) int64 {
	if processes <= 0 {
		return 0
	}
	files, err := filepath.Glob("/proc/[0-9]*/task/[0-9]*")
	if err != nil {
		return 0 // the pattern is right
	}
	return int64(len(files) + threads*processes)
}

func positive(what string, resource int, value int64) error {
	if value <= 0 {
		return nil // unlimited
	}
	return limit(what, resource, uint64(value))
}

func limit(what string, resource int, value uint64) error {
	var now syscall.Rlimit
	err := syscall.Getrlimit(resource, &now)
	if err == nil {
		value = min(value, now.Max)
		err = syscall.Setrlimit(resource, &syscall.Rlimit{Cur: value, Max: value})
	}
	if err != nil {
		return fmt.Errorf("limiting %s: %w", what, err)
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
