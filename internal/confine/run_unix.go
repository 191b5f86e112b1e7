//go:build unix

package confine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// Run starts cmd under the method and the policy and returns when it has ended with
// everything that it has started. It works in cmd.Dir, which must be an absolute
// path in the policy. When ctx is done the processes get SIGTERM, after Grace
// SIGKILL (under Bubblewrap at once), and the error is that of ctx; otherwise it is
// that of cmd.Wait. Run sets cmd.SysProcAttr and cmd.WaitDelay.
func Run(ctx context.Context, m Method, p Policy, cmd *exec.Cmd) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if m == Bubblewrap {
		if err := p.bubblewrap(cmd); err != nil {
			return err
		}
	}
	g, err := newGroup()
	if err != nil {
		return err
	}
	defer g.end()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: g.id()}
	cmd.WaitDelay = drain
	release, err := start(m, p, g.id(), cmd)
	defer release()
	if err != nil {
		return err
	}
	waited := make(chan error, 1)
	go func() { waited <- cmd.Wait() }()
	select {
	case err := <-waited:
		if errors.Is(err, exec.ErrWaitDelay) {
			err = nil // what it left behind ends now
		}
		return err
	case <-ctx.Done():
	}
	g.signal(syscall.SIGTERM)
	select {
	case <-waited:
	case <-time.After(Grace):
		g.signal(syscall.SIGKILL)
		<-waited
	}
	return ctx.Err()
}

// start starts cmd on a thread of its own, which lives until release is called:
// bubblewrap dies with the thread that has started it, and one that has been
// confined is of no other use.
func start(m Method, p Policy, group int, cmd *exec.Cmd) (release func(), err error) {
	started, done := make(chan error), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		var err error
		if m == Landlock {
			err = p.confineThread(group) // and never unlocked: the thread ends here
		} else {
			defer runtime.UnlockOSThread()
		}
		if err == nil {
			err = cmd.Start()
		}
		started <- err
		<-done
	}()
	err = <-started
	return func() { close(done) }, err
}

// A group is a process group that exists until end is called.
type group struct {
	keeper *exec.Cmd
	stdin  io.Closer
}

// The keeper reads what never comes. When the program is gone, however that came,
// its end of the pipe is closed, and the keeper kills the group.
const keep = `trap "" TERM INT HUP; read nothing; kill -s KILL 0`

func newGroup() (*group, error) {
	keeper := exec.Command("/bin/sh", "-c", keep)
	keeper.Dir, keeper.Env = "/", []string{}
	keeper.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := keeper.StdinPipe()
	if err == nil {
		err = keeper.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("a process group cannot be made: %w", err)
	}
	return &group{keeper, stdin}, nil
}

func (g *group) id() int { return g.keeper.Process.Pid }

// signal cannot fail in a way that matters: the keeper is there until end.
func (g *group) signal(s syscall.Signal) { _ = syscall.Kill(-g.id(), s) }

// end kills all that is in the group. The keeper's exit says nothing.
func (g *group) end() {
	g.signal(syscall.SIGKILL)
	_ = g.stdin.Close()
	_ = g.keeper.Wait()
}
