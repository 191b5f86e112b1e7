//go:build unix

package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stonelayer/stone/internal/notice"
)

// An order tells the supervisor which command to run, and how.
type order struct {
	Method  Method
	Reach   reach
	Network bool
	Limits  Limits
	Wrapper string // absolute path of bwrap, if Method is Bubblewrap
	// Connector is the absolute path of slirp4netns if the command has a network without the machine's loopback interface, and
	// otherwise empty.
	Connector string
	Path      string
	Args      []string
	Dir       string
	Env       []string
}

// A report tells this process how a command ended. The first report contains only the ID of the started process.
type report struct {
	Main   int
	Error  string // reason why the command did not start or could not be ended
	Code   int
	Signal string
	Limit  string
}

func (r report) err() error {
	switch {
	case r.Error != "":
		return errors.New(r.Error)
	case r.Code != 0 || r.Signal != "" || r.Limit != "":
		return &ExitError{Code: r.Code, Signal: r.Signal, Limit: r.Limit}
	}
	return nil
}

func (c *Cmd) run() error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	o, err := c.order()
	if err != nil {
		return err
	}
	scratch, err := c.scratch(&o)
	if err != nil {
		return err
	}
	err = c.supervise(o)
	if scratch != "" {
		err = errors.Join(err, os.RemoveAll(scratch))
	}
	return errors.Join(err, o.Reach.appeared())
}

// order returns the order for the command, without the temporary directory.
func (c *Cmd) order() (o order, err error) {
	o = order{Method: c.policy.Method, Network: c.policy.Network, Limits: c.policy.Limits.complete(), Args: c.Args, Dir: c.Dir}
	if o.Method == "" {
		if o.Method, err = Find(); err != nil {
			return o, err
		}
	}
	if o.Path, err = lookPath(c.Args[0]); err != nil {
		return o, err
	}
	// The supervisor has no PATH, so the program is looked up here.
	if o.Method == Bubblewrap {
		if o.Wrapper, err = wrapper(); err != nil {
			return o, err
		}
	}
	if o.Network && !c.policy.Loopback && o.Method != Unconfined {
		if o.Connector, err = connector(o.Method); err != nil {
			return o, err
		}
	}
	if o.Dir != "" && !filepath.IsAbs(o.Dir) {
		return o, fmt.Errorf("sandbox: the working directory %q is not an absolute path", o.Dir)
	}
	if o.Method == Landlock {
		notice.Tell(c.ctx, weaker)
	}
	if o.Method != Unconfined {
		o.Reach, err = c.policy.resolve(o.Path)
	}
	return o, err
}

// lookPath looks up a program in the PATH of this process, and returns its absolute path.
func lookPath(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// scratch creates the temporary directory and returns its path, or "" if the caller has supplied one.
func (c *Cmd) scratch(o *order) (dir string, err error) {
	if !slices.ContainsFunc(c.Env, func(v string) bool { return strings.HasPrefix(v, "TMPDIR=") }) {
		if dir, err = os.MkdirTemp("", "stone-sandbox-"); err != nil {
			return "", err
		}
		place, err := resolve(dir)
		if err != nil {
			return "", errors.Join(err, os.RemoveAll(dir))
		}
		o.Reach.Writable = append(o.Reach.Writable, place)
		if o.Dir == "" {
			o.Dir = dir
		}
	}
	if o.Dir == "" {
		o.Dir = "/"
	}
	o.Env = environment(dir, c.Env)
	return dir, nil
}

// supervise starts the supervisor and waits for its report. When this process ends, the pipe for the order is closed, so the
// supervisor notices and ends the command.
func (c *Cmd) supervise(o order) error {
	hide()
	self, err := executable()
	if err != nil {
		return err
	}
	orders, toSupervisor, err := os.Pipe()
	if err != nil {
		return err
	}
	defer toSupervisor.Close()
	fromSupervisor, reports, err := os.Pipe()
	if err != nil {
		return errors.Join(err, orders.Close())
	}
	defer fromSupervisor.Close()
	cmd := exec.Command(self)
	cmd.Args = []string{"stone-sandbox", supervisorRole}
	// By default, a program with the race detector sleeps for a second before it exits.
	cmd.Env = []string{"GOMAXPROCS=1", "GORACE=atexit_sleep_ms=1"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	cmd.ExtraFiles = []*os.File{orders, reports}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // separates the supervisor from the terminal and the terminal's signals
	cmd.WaitDelay = drain
	err = cmd.Start()
	closed := errors.Join(orders.Close(), reports.Close())
	if err = errors.Join(err, closed); err != nil {
		return fmt.Errorf("sandbox: the supervisor cannot be started: %w", err)
	}
	told := make(chan error, 1)
	go func() { told <- json.NewEncoder(toSupervisor).Encode(o) }()
	ended := make(chan error, 1)
	var r report
	go func() {
		dec := json.NewDecoder(fromSupervisor)
		err := dec.Decode(&r)
		if started := r.Main; err == nil && started != 0 {
			if err = dec.Decode(&r); err != nil {
				// The supervisor was killed, or ran out of resources. Its child dies with it, but the child's group must be
				// killed.
				_ = syscall.Kill(-started, syscall.SIGKILL)
			}
		}
		waited := cmd.Wait()
		if errors.Is(waited, exec.ErrWaitDelay) {
			waited = nil // only an unconfined command can leave processes behind
		}
		ended <- errors.Join(err, waited)
	}()
	err = await(c.ctx, ended, toSupervisor)
	if sent := <-told; err == nil {
		err = sent
	}
	switch {
	case c.ctx.Err() != nil:
		return c.ctx.Err()
	case err != nil:
		return fmt.Errorf("sandbox: the supervisor failed: %w", err)
	}
	return r.err()
}

// await waits until the command ends, and stops it when ctx is done. Errors of Write and Close are ignored, because they mean
// that the supervisor has ended.
func await(ctx context.Context, ended <-chan error, toSupervisor io.WriteCloser) error {
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	_, _ = toSupervisor.Write([]byte{terminate})
	select {
	case err := <-ended:
		return err
	case <-time.After(grace):
	}
	_ = toSupervisor.Close()
	return <-ended
}

// hide protects the environment and memory of this process from unconfined commands,
// and from other processes of the same user.
var hide = sync.OnceFunc(undumpable)
