//go:build !unix

package pgtest

import (
	"errors"
	"os/exec"
	"syscall"
)

const stop = syscall.SIGKILL // unused: kill fails

func kill(int, syscall.Signal) error { return errors.New("signals need Unix") }

func apart(*exec.Cmd, bool) {}

// unprivileged returns nil: servers of tests run as the user of the tests.
func unprivileged() *struct{ Uid, Gid uint32 } { return nil }
