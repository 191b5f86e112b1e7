package sandbox

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// grace is the time that a command has to end after SIGTERM, before it is killed.
const grace = 2 * time.Second

// drain is the time for which output is read after the supervisor has ended. It is limited because a process that has escaped from
// an unconfined command may keep the output open.
const drain = time.Second

// A Cmd is a command that can be run once.
type Cmd struct {
	// Args contains the program and its arguments. If the program contains no slash, it is looked up in the PATH of this process.
	Args []string
	// Dir is the absolute path of the working directory. The default is the command's temporary directory.
	Dir string
	// Env contains environment variables, each as NAME=value, or as NAME to pass on the variable of this process. Commands also
	// receive PATH, TZ and the language variables of this process, and HOME and TMPDIR with the path of their temporary directory.
	Env []string
	// Stdin, Stdout and Stderr are as in os/exec.Cmd.
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	ctx    context.Context
	policy Policy
}

// Command returns a command that runs a program under the policy p. When ctx is done, the command is ended.
func Command(ctx context.Context, p Policy, program string, args ...string) *Cmd {
	return &Cmd{Args: append([]string{program}, args...), ctx: ctx, policy: p}
}

// An ExitError reports that a command started but did not succeed.
type ExitError struct {
	Code   int    // exit status; -1 if a signal ended the command
	Signal string // signal that ended the command, such as "killed"
	Limit  string // limit that the command exceeded, if it was killed for that
}

func (e *ExitError) Error() string {
	switch {
	case e.Limit != "":
		return "killed: " + e.Limit
	case e.Signal != "":
		return "signal: " + e.Signal
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// Run runs the command and returns when it and all its descendants have ended. When the context is done, Run sends SIGTERM to the
// processes, and SIGKILL two seconds later, and returns the context's error. If the command does not succeed, the error is an
// *ExitError.
func (c *Cmd) Run() error { return c.run() }

// Output runs the command and returns its combined standard output and standard error. If the output is longer than limit bytes,
// its middle is replaced with a line that says how many bytes are missing.
func (c *Cmd) Output(limit int) (string, error) {
	out := &Buffer{Max: limit}
	c.Stdout, c.Stderr = out, out
	err := c.Run()
	return out.String(), err
}

// passed contains the names of the variables of this process that every command receives.
var passed = []string{"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ"}

// environment returns the environment variables of a command, including more. If a name occurs twice, the last value applies.
func environment(scratch string, more []string) []string {
	env := []string{"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=" + scratch, "TMPDIR=" + scratch}
	for _, v := range append(passed[:len(passed):len(passed)], more...) {
		if strings.Contains(v, "=") {
			env = append(env, v)
		} else if value, ok := os.LookupEnv(v); ok {
			env = append(env, v+"="+value)
		}
	}
	return env
}
