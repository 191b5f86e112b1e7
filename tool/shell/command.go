package shell

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/stonelayer/stone/internal/confine"
)

// A command is one that runs or has run.
type command struct {
	id      string // empty if it is not in the background
	script  string
	timeout time.Duration
	method  confine.Method
	policy  confine.Policy
	cmd     *exec.Cmd
	stdout  output
	stderr  output

	done chan struct{} // closed when it has ended; err may be read then
	err  error
}

func (c *command) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// report says how the command ended, or that it runs, and what it has written.
func (c *command) report() string {
	var b strings.Builder
	b.WriteString(c.state())
	b.WriteByte('\n')
	for _, part := range []struct {
		name string
		*output
	}{{"stdout", &c.stdout}, {"stderr", &c.stderr}} {
		if text := part.String(); text != "" {
			fmt.Fprintf(&b, "%s:\n%s", part.name, text)
			if !strings.HasSuffix(text, "\n") {
				b.WriteByte('\n')
			}
		}
	}
	return b.String()
}

func (c *command) state() string {
	if !c.ended() {
		return "running"
	}
	_, exited := errors.AsType[*exec.ExitError](c.err)
	switch {
	case errors.Is(c.err, context.DeadlineExceeded):
		return fmt.Sprintf("timed out after %v and was killed", c.timeout)
	case errors.Is(c.err, context.Canceled):
		return "was stopped before it ended"
	case c.err != nil && !exited:
		return fmt.Sprintf("could not be run: %v", c.err)
	case c.cmd.ProcessState.ExitCode() < 0:
		return "ended by a " + c.cmd.ProcessState.String() // "signal: killed"
	}
	return fmt.Sprintf("exit code: %d", c.cmd.ProcessState.ExitCode())
}

// meta is what programs may want to know of a command that has ended.
func (c *command) meta() map[string]any {
	m := map[string]any{
		"command": c.script, "sandbox": string(c.method), "timed_out": errors.Is(c.err, context.DeadlineExceeded),
		"stdout_bytes": c.stdout.size(), "stderr_bytes": c.stderr.size(),
	}
	if c.cmd.ProcessState != nil {
		m["exit_code"] = c.cmd.ProcessState.ExitCode()
	}
	return m
}

// output keeps the first and the last part of what is written to it. It is safe for
// concurrent use.
type output struct {
	max int // bytes to keep

	mu    sync.Mutex
	total int64
	head  []byte // the first max/2
	tail  []byte // ends with the last max-max/2 of the rest
}

// Write never fails, so that the command can go on.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := len(p)
	o.total += int64(n)
	first := min(n, o.max/2-len(o.head))
	o.head = append(o.head, p[:first]...)
	p = p[first:]
	last := o.max - o.max/2
	if len(p) >= last {
		o.tail, p = o.tail[:0], p[len(p)-last:]
	}
	if o.tail = append(o.tail, p...); len(o.tail) > 2*last {
		o.tail = append(o.tail[:0], o.tail[len(o.tail)-last:]...)
	}
	return n, nil
}

func (o *output) size() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total
}

// String returns what is kept as valid UTF-8, with a line for what is not.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	tail := o.tail[max(0, len(o.tail)-(o.max-o.max/2)):]
	text := string(o.head)
	if left := o.total - int64(len(o.head)+len(tail)); left > 0 {
		text += fmt.Sprintf("\n[%d bytes are left out here]\n", left)
	}
	return strings.ToValidUTF8(text+string(tail), "\uFFFD")
}
