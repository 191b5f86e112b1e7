//go:build !unix

package sandbox

import (
	"errors"
	"os/exec"
)

// run supports only unconfined commands, and ends only the command itself.
func (c *Cmd) run() error {
	if c.policy.Method != Unconfined {
		return errors.New("sandbox: commands can only be confined on Linux: choose Unconfined if they may do anything")
	}
	cmd := exec.CommandContext(c.ctx, c.Args[0], c.Args[1:]...)
	cmd.Dir, cmd.Env = c.Dir, environment(c.Dir, c.Env)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Stdout, c.Stderr
	cmd.WaitDelay = drain
	err := cmd.Run()
	exit, failed := errors.AsType[*exec.ExitError](err)
	switch {
	case c.ctx.Err() != nil:
		return c.ctx.Err()
	case failed:
		return &ExitError{Code: exit.ExitCode()}
	}
	return err
}
