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

// confine permanently applies the policy to the calling thread, and so to the program that the thread executes.
func (o order) confine() error {
	// The command must not inherit any descriptors except its streams.
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
	// The next two steps need no_new_privs. It also disables set-user-id bits.
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

// set applies the resource limits. The kernel enforces them separately for this process and for each of its descendants.
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

// userThreads returns a limit on the user's total number of threads, which the kernel counts for every user except root. The limit
// leaves room for a command's threads, given its number of processes. Zero means no limit.
func userThreads(processes int) int64 {
	if processes <= 0 {
		return 0
	}
	files, err := filepath.Glob("/proc/[0-9]*/task/[0-9]*")
	if err != nil {
		return 0 // unreachable: the pattern is valid
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

// dropCapabilities drops the thread's capabilities. With no_new_privs, programs that the thread starts do not regain them.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}
