//go:build unix && !linux

package sandbox

import (
	"errors"
	"os"
	"sync"
	"syscall"
)

// processes are a command and its descendants in its process group.
type processes struct {
	main   int
	method Method
	limits Limits
	ended  chan struct{}

	mu     sync.Mutex
	reaped bool
}

func adopt() error { return nil }

func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func dup(from, to int) error { return syscall.Dup2(from, to) }

func executable() (string, error) { return os.Executable() }

func undumpable() {}

// A cgroup exists only on Linux.
type cgroup struct{}

func newCgroup(Limits) cgroup { return cgroup{} }
func (cgroup) enter() error   { return nil }
func (cgroup) leave() error   { return nil }
func (cgroup) remove()        {}

// watch does nothing, because memory and processes are measured only on Linux.
func (p *processes) watch() {}

func (p *processes) exceeded() string { return "" }

func (p *processes) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		_ = syscall.Kill(-p.main, s) // fails only if the process has ended
	}
}

func (p *processes) terminate()  { p.signal(syscall.SIGTERM) }
func (p *processes) kill(string) { p.signal(syscall.SIGKILL) }

func (p *processes) wait() (status syscall.WaitStatus, err error) {
	for {
		if _, err = syscall.Wait4(p.main, &status, 0, nil); !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	p.signal(syscall.SIGKILL)
	p.mu.Lock()
	p.reaped = true
	p.mu.Unlock()
	close(p.ended)
	return status, err
}
