package shell

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stonelayer/stone/internal/redact"
	"github.com/stonelayer/stone/sandbox"
)

// A command is a running or ended command.
type command struct {
	id      string // empty if the command does not run in the background
	script  string
	timeout time.Duration
	policy  sandbox.Policy
	dir     string
	env     []string
	stdout  sandbox.Buffer
	stderr  sandbox.Buffer

	done chan struct{} // closed when the command has ended; err can then be read
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

// report returns the state and the output of the command. Secrets of the run and the command are removed.
func (c *command) report(ctx context.Context) string {
	secrets := redact.From(ctx)
	secrets.NoteEnv(c.env)
	var b strings.Builder
	b.WriteString(c.state())
	b.WriteByte('\n')
	for _, part := range []struct {
		name string
		*sandbox.Buffer
	}{{"stdout", &c.stdout}, {"stderr", &c.stderr}} {
		if text := part.Text(secrets.CleanCut); text != "" {
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
	exit, exited := errors.AsType[*sandbox.ExitError](c.err)
	switch {
	case errors.Is(c.err, context.DeadlineExceeded):
		return fmt.Sprintf("timed out after %v and was killed", c.timeout)
	case errors.Is(c.err, context.Canceled):
		return "was stopped before it ended"
	case c.err != nil && !exited:
		return fmt.Sprintf("could not be run: %v", c.err)
	case exited && exit.Limit != "":
		return exit.Error() // "killed: more than 512 processes"
	case exited && exit.Code < 0:
		return "ended by a " + exit.Error() // "signal: killed"
	case exited:
		return fmt.Sprintf("exit code: %d", exit.Code)
	}
	return "exit code: 0"
}

// meta returns the metadata of an ended command, for programs.
func (c *command) meta() map[string]any {
	m := map[string]any{
		"command": c.script, "sandbox": string(c.policy.Method), "timed_out": errors.Is(c.err, context.DeadlineExceeded),
		"stdout_bytes": c.stdout.Size(), "stderr_bytes": c.stderr.Size(),
	}
	if exit, ok := errors.AsType[*sandbox.ExitError](c.err); ok {
		m["exit_code"] = exit.Code
	} else if c.err == nil {
		m["exit_code"] = 0
	}
	return m
}
