package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/stonelayer/stone/effect"
	"github.com/stonelayer/stone/sandbox"
)

const (
	// stopGrace is the time within which a command has to exit after its input is closed.
	stopGrace = 2 * time.Second
	// drainGrace limits the reading of output after the command has ended, because a child process may keep the pipes open
	// forever.
	drainGrace = 500 * time.Millisecond
	// maxStderr is the maximum length of the kept end of standard error, in bytes.
	maxStderr = 4096
)

// inherited lists the variables of this process that a command receives in addition to the common variables. An unconfined
// command also receives the directory variables.
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
		env = append(env, name+"="+string(value)) // if a name occurs twice, the last value applies
	}
	return env
}

// method returns the sandbox method that confines the command, or "" if the server is not a command.
func (s *Server) method() sandbox.Method {
	m := s.cfg.Sandbox.Method
	if m == "" && s.needs[0] == effect.Process {
		m, _ = sandbox.Find() // without a sandbox, the command does not start
	}
	return m
}

// A process is a running command together with its descendants.
type process struct {
	end    context.CancelFunc // asks the process to end, then kills it
	stdin  *os.File
	stdout *os.File
	stderr tail
	exited chan struct{} // closed after the process has ended and stderr has been read
	err    error         // the exit error; it may be read once exited is closed
}

// startProcess starts the command. It does not use the pipes of os/exec, which close the output on exit, so that an answer
// written just before would be lost.
func startProcess(ctx context.Context, c Config) (*process, error) {
	if c.Dir != "" { // otherwise a missing directory would be reported as a missing command
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
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
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

// ended waits at most the given time for the command to end, and reports whether it has ended.
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

// messages returns a reader of the messages in the standard output. Other lines, such as banners and logs, are stored with the
// standard error.
func (p *process) messages() io.ReadCloser {
	return &messages{ReadCloser: p.stdout, lines: newLines(p.stdout), noise: &p.stderr}
}

func newLines(r io.Reader) *bufio.Reader { return bufio.NewReaderSize(r, 64<<10) }

type messages struct {
	io.ReadCloser
	lines *bufio.Reader
	noise io.Writer
	rest  []byte // the rest of the current message
	some  bool   // whether a message has been read
}

// Read implements [io.Reader].
func (m *messages) Read(p []byte) (int, error) {
	for len(m.rest) == 0 {
		line, err := m.line()
		if m.isMessage(line) {
			m.rest, m.some = line, true
			break
		}
		m.noise.Write(bytes.TrimLeft(line, "\r\n")) // Write never fails
		if err != nil {
			return 0, err
		}
	}
	n := copy(p, m.rest)
	m.rest = m.rest[n:]
	return n, nil
}

// line reads a line, which the next call overwrites.
func (m *messages) line() (line []byte, err error) {
	for {
		part, err := m.lines.ReadSlice('\n')
		if line == nil && err != bufio.ErrBufferFull {
			return part, err
		}
		if line = append(line, part...); err != bufio.ErrBufferFull {
			return line, err
		}
		if len(line) > maxFrame {
			return line[:maxStderr], fmt.Errorf("a message has more than %d bytes", maxFrame)
		}
	}
}

// isMessage reports whether a line is a JSON-RPC message or a list of such messages.
func (m *messages) isMessage(line []byte) bool {
	type message struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Method  string          `json:"method"`
	}
	var one message
	if line = bytes.TrimSpace(line); len(line) > 0 && line[0] == '[' {
		var all []message
		if json.Unmarshal(line, &all) != nil || len(all) == 0 {
			return false
		}
		one = all[0]
	} else if len(line) == 0 || json.Unmarshal(line, &one) != nil {
		return false
	}
	// An error without a request ends a start at once. Later, it is not treated as a message, so that other requests continue.
	about := one.Method != "" || len(one.ID) > 0 && string(one.ID) != "null" || !m.some
	return one.Version == "2.0" && about
}

// errUnsent is wrapped by the error of a message that was not sent completely.
var errUnsent = errors.New("not sent")

// A timedWriter limits the duration of a write, because the protocol library ignores the context of a call when it writes.
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
	if err != nil && n < len(b)-1 { // the server may understand a message without its final line break
		err = fmt.Errorf("%w: %w", errUnsent, err)
	}
	return n, err
}

// A tail keeps the last bytes written to it.
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
