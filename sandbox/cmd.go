package sandbox

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// grace is how long a command may run after SIGTERM before it is killed.
const grace = 2 * time.Second

// drain is how long output is still read after the supervisor has ended, because a process that escaped from an unconfined
// command may keep the output open.
const drain = time.Second

// A Cmd is a command that can be run once.
type Cmd struct {
	// Args are the program and its arguments. A program without a slash is looked
	// up in the PATH of this process.
	Args []string
	// Dir is the absolute path of the working directory. The default is the command's temporary directory.
	Dir string
	// Env lists environment variables, as NAME=value, or as NAME to pass on the value in this process. In addition, a command
	// receives PATH, TZ and the language variables, and HOME and TMPDIR with the path of its temporary directory.
	Env []string
	// Stdin, Stdout and Stderr are as in os/exec.Cmd.
	Stdin          io.Reader
	Stdout, Stderr io.Writer

	ctx    context.Context
	policy Policy
}

// Command returns a command that runs a program under a policy.
func Command(ctx context.Context, p Policy, program string, args ...string) *Cmd {
	return &Cmd{Args: append([]string{program}, args...), ctx: ctx, policy: p}
}

// An ExitError reports a command that started but did not succeed.
type ExitError struct {
	Code   int    // the exit status; -1 if a signal ended the command
	Signal string // the signal that ended the command, such as "killed"
	Limit  string // the limit that the command exceeded, if it was killed for that
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

// Run runs the command and returns when it and all its descendants have ended. When the context is done, the processes receive
// SIGTERM, and two seconds later SIGKILL, and Run returns the context's error. If the command fails, the error is an *ExitError.
func (c *Cmd) Run() error { return c.run() }

// Output runs the command and returns its standard output and standard error, at most limit bytes. If the output is longer, its
// middle is replaced with a line that states how many bytes are missing.
func (c *Cmd) Output(limit int) (string, error) {
	out := &Buffer{Max: limit}
	c.Stdout, c.Stderr = out, out
	err := c.Run()
	return out.String(), err
}

// passed lists the variables of this process that every command receives.
var passed = []string{"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ"}

// environment returns the environment variables of a command. If a name occurs twice, the later value applies.
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
