package mcp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/stonelayer/stone/sandbox"
)

const (
	// stopGrace is how long a command has to end by itself after its input has ended.
	stopGrace = 2 * time.Second
	// drainGrace is how long output is read after the command has ended: a child
	// of it may hold the pipes open for ever.
	drainGrace = 500 * time.Millisecond
	// maxStderr bounds what is kept of the standard error, in bytes.
	maxStderr = 4096
)

// inherited are the variables of our own environment that a command gets beside
// those of every command. One that is not confined gets those of directories too.
var (
	inherited  = []string{"LOGNAME", "SHELL", "TERM", "USER", "PATHEXT", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "USERNAME"}
	unconfined = []string{"HOME", "TMPDIR", "APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "TEMP", "USERPROFILE"}
)

func environment(c Config) []string {
	env := inherited[:len(inherited):len(inherited)]
	if c.Sandbox.Method == sandbox.Unconfined {
		env = append(env, unconfined...)
	}
	for name, value := range c.Env {
		env = append(env, name+"="+string(value)) // the last of a name counts
	}
	return env
}

// A process is a running command with everything that it has started.
type process struct {
	end    context.CancelFunc // asks it to end, then kills it
	stdin  *os.File
	stdout *os.File
	stderr tail
	exited chan struct{} // closed when it has ended and nothing of its stderr is to come
	err    error         // of the exit, readable when exited is closed
}

// startProcess starts the command. The pipes are ours and not those of os/exec,
// which would close the output with the exit, and an answer given just before it
// would be lost.
func startProcess(c Config) (*process, error) {
	if c.Dir != "" { // the command would be said not to exist
		if _, err := os.Stat(c.Dir); err != nil {
			return nil, err
		}
	}
	program, err := exec.LookPath(c.Command[0])
	if err != nil {
		return nil, err
	}
	policy := c.Sandbox
	dir := c.Dir
	if dir == "" && policy.Method == sandbox.Unconfined {
		dir = "."
	}
	if dir != "" {
		if dir, err = filepath.Abs(dir); err != nil {
			return nil, err
		}
		policy.ReadOnly = append(policy.ReadOnly[:len(policy.ReadOnly):len(policy.ReadOnly)], dir)
	}
	input, stdin, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	stdout, output, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, input.Close(), stdin.Close())
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{end: cancel, stdin: stdin, stdout: stdout, exited: make(chan struct{})}
	cmd := sandbox.Command(ctx, policy, program, c.Command[1:]...)
	cmd.Dir, cmd.Env = dir, environment(c)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = input, output, &p.stderr
	go func() {
		defer close(p.exited)
		p.err = cmd.Run()
		input.Close()
		output.Close()
		if errors.Is(stdout.SetReadDeadline(time.Now().Add(drainGrace)), os.ErrNoDeadline) {
			stdout.Close()
		}
	}()
	return p, nil
}

// stop ends the command: it closes its input, then has it asked and killed.
func (p *process) stop() {
	p.stdin.Close()
	if !p.ended(stopGrace) {
		p.end()
		<-p.exited
	}
	p.end()
	p.stdout.Close()
}

// ended reports whether the command ends within the time.
func (p *process) ended(within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.exited:
		return true
	case <-timer.C:
		return false
	}
}

// errUnsent is in the error of a message that did not get through as a whole.
var errUnsent = errors.New("not sent")

// A timedWriter gives up on a reader that does not read: the protocol library
// writes without regard to the context of a call.
type timedWriter struct {
	*os.File
	limit time.Duration
}

func (w *timedWriter) Write(b []byte) (int, error) {
	err := w.SetWriteDeadline(time.Now().Add(w.limit))
	if err != nil && !errors.Is(err, os.ErrNoDeadline) {
		return 0, fmt.Errorf("%w: %w", errUnsent, err)
	}
	n, err := w.File.Write(b)
	if err != nil && n < len(b)-1 { // without the end of the line it may be understood
		err = fmt.Errorf("%w: %w", errUnsent, err)
	}
	return n, err
}

// A tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b[max(0, len(b)-maxStderr):]...)
	t.buf = append(t.buf[:0], t.buf[max(0, len(t.buf)-maxStderr):]...)
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}
