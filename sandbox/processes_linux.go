package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// interval is the time between two measurements of memory and processes.
	interval = 50 * time.Millisecond
	// rounds and pause limit the attempts to kill processes that start other processes. Only the processes of an unconfined
	// command can leave their group and thus require more than one round.
	rounds = 2000
	pause  = 5 * time.Millisecond
)

// processes represents a command and its descendants.
type processes struct {
	main   int // the group leader's process ID
	method Method
	limits Limits
	ended  chan struct{} // closed when main has ended

	mu     sync.Mutex
	reaped bool // main has been reaped
	limit  string
}

// adopt makes this process the parent of all descendants that lose their own parent.
func adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("prctl(PR_SET_CHILD_SUBREAPER): %w", err)
	}
	if _, err := os.Stat("/proc/thread-self/children"); err != nil {
		return fmt.Errorf("the kernel does not list the children of a process (CONFIG_PROC_CHILDREN): %w", err)
	}
	return nil
}

// dieWithParent returns process attributes with which a command is killed when its parent dies.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func dup(from, to int) error { return unix.Dup3(from, to, 0) }

func executable() (string, error) { return "/proc/self/exe", nil }

func undumpable() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) } // cannot fail for the value 0

// children returns the IDs of the processes whose parent is pid.
func children(pid int) (pids []int) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return nil // unreachable: the pattern is valid
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has ended
		}
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// descendants returns the IDs of the descendants of pid. If there are more than most, it may return only some of them. If most is
// zero or negative, it returns all.
func descendants(pid, most int) []int {
	all := children(pid)
	for i := 0; i < len(all) && (most <= 0 || len(all) <= most); i++ {
		all = append(all, children(all[i])...)
	}
	return all
}

// memory returns the size of a process's private memory in bytes.
func memory(pid int) (sum int64) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0 // the process has ended
	}
	for line := range bytes.Lines(status) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch string(name) {
		case "RssAnon", "RssShmem", "VmSwap":
			kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(string(value)), " kB"), 10, 64)
			if err == nil {
				sum += kib << 10
			}
		}
	}
	return sum
}

// watch kills the command if it exceeds a limit. It returns when the command has ended.
func (p *processes) watch() {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-p.ended:
			return
		case <-ticker.C:
		}
		all := descendants(os.Getpid(), p.limits.Processes)
		if p.limits.Processes > 0 && len(all) > p.limits.Processes {
			p.kill(fmt.Sprintf("more than %d processes", p.limits.Processes))
			continue
		}
		var sum int64
		for _, pid := range all {
			sum += memory(pid)
		}
		if p.limits.Memory > 0 && sum > p.limits.Memory {
			p.kill(fmt.Sprintf("more than %d bytes of memory", p.limits.Memory))
		}
		p.reapOrphans()
	}
}

// reapOrphans reaps the adopted processes that have ended.
func (p *processes) reapOrphans() {
	for _, pid := range children(os.Getpid()) {
		if pid != p.main {
			_, _ = syscall.Wait4(pid, nil, syscall.WNOHANG, nil) // with WNOHANG, a running process is not reaped
		}
	}
}

// terminate sends SIGTERM to the processes. It ignores errors, because they mean that a process has ended.
func (p *processes) terminate() {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.reaped:
	case p.method == Bubblewrap: // a signal to bwrap would kill all of them
		for _, pid := range descendants(p.main, 0) {
			_ = syscall.Kill(pid, syscall.SIGTERM)
		}
	default:
		_ = syscall.Kill(-p.main, syscall.SIGTERM)
	}
}

// kill kills the command. The limit is the limit that the command has exceeded, or "" if its result is no longer needed.
func (p *processes) kill(limit string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		if p.limit == "" {
			p.limit = limit
		}
		_ = syscall.Kill(-p.main, syscall.SIGKILL)
	}
}

func (p *processes) exceeded() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.limit
}

// wait waits until the command has ended, and then kills all processes that remain.
func (p *processes) wait() (status syscall.WaitStatus, err error) {
	for {
		err = unix.Waitid(unix.P_PID, p.main, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	close(p.ended)
	if err != nil {
		return status, fmt.Errorf("waiting for the command: %w", err)
	}
	// The ID of the group is not reused until the group's leader has been reaped.
	p.mu.Lock()
	_ = syscall.Kill(-p.main, syscall.SIGKILL)
	_, err = syscall.Wait4(p.main, &status, 0, nil)
	p.reaped = true
	p.mu.Unlock()
	if err != nil {
		return status, fmt.Errorf("waiting for the command: %w", err)
	}
	for range rounds {
		for _, pid := range descendants(os.Getpid(), 0) {
			_ = syscall.Kill(pid, syscall.SIGKILL) // fails only if the process has ended
		}
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if errors.Is(err, syscall.ECHILD) {
				return status, nil
			}
			if pid <= 0 {
				break
			}
		}
		time.Sleep(pause)
	}
	return status, errors.New("the command has left processes that cannot be killed")
}
