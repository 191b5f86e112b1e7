package mcp

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/stonelayer/stone/llm"
)

const (
	// stopGrace is how long a command has to end by itself, first after its input
	// has ended and again after it was told to terminate.
	stopGrace = 2 * time.Second
	// drainGrace is how long output is read after the command has ended: a child
	// of it may hold the pipes open for ever.
	drainGrace = 500 * time.Millisecond
	// maxStderr bounds what is kept of the standard error, in bytes.
	maxStderr = 4096
)

// inherited are the variables of our own environment that a command gets.
var inherited = []string{
	"HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER",
	"APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE",
}

func environment(env map[string]llm.Secret) []string {
	out := []string{} // nil would mean all of ours
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			out = append(out, name+"="+value)
		}
	}
	for name, value := range env {
		out = append(out, name+"="+string(value)) // the last of a name counts
	}
	return out
}

// A process is a running command with its process group.
type process struct {
	cmd    *exec.Cmd
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
	if c.Dir != "" { // os/exec would say that the command does not exist
		if _, err := os.Stat(c.Dir); err != nil {
			return nil, err
		}
	}
	var pipes [3][2]*os.File
	closeAll := func(side int) {
		for _, p := range pipes {
			if p[side] != nil {
				p[side].Close()
			}
		}
	}
	for i := range pipes {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(0)
			closeAll(1)
			return nil, err
		}
		pipes[i] = [2]*os.File{r, w}
	}
	pipes[0][0], pipes[0][1] = pipes[0][1], pipes[0][0] // now 0 is our side of each

	cmd := exec.Command(c.Command[0], c.Command[1:]...)
	cmd.Dir, cmd.Env = c.Dir, environment(c.Env)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = pipes[0][1], pipes[1][1], pipes[2][1]
	ownGroup(cmd)
	err := cmd.Start()
	closeAll(1)
	if err != nil {
		closeAll(0)
		return nil, err
	}
	p := &process{cmd: cmd, stdin: pipes[0][0], stdout: pipes[1][0], exited: make(chan struct{})}
	go p.watch(pipes[2][0])
	return p, nil
}

// watch waits for the end of the command, and ends what it leaves behind.
func (p *process) watch(stderr *os.File) {
	defer close(p.exited)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		defer stderr.Close()
		io.Copy(&p.stderr, stderr) // an error is the end of it too
	}()
	p.err = p.cmd.Wait()
	killGroup(p.cmd)
	limit := time.Now().Add(drainGrace)
	for _, f := range []*os.File{p.stdout, stderr} {
		if errors.Is(f.SetReadDeadline(limit), os.ErrNoDeadline) {
			f.Close()
		}
	}
	<-drained
}

// stop ends the command: it closes its input, then asks, then kills.
func (p *process) stop() {
	p.stdin.Close()
	if !p.ended(stopGrace) {
		terminateGroup(p.cmd)
		if !p.ended(stopGrace) {
			killGroup(p.cmd)
			p.ended(stopGrace)
		}
	}
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
