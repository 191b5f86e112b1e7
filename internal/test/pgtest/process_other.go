//go:build !unix

package pgtest

import (
	"errors"
	"os/exec"
	"syscall"
)

const stop = syscall.SIGKILL // not used: kill fails on this system

func kill(int, syscall.Signal) error { return errors.New("signals need Unix") }

func apart(*exec.Cmd, bool) {}

// unprivileged returns nil, because the servers run as the same user as the tests.
func unprivileged() *struct{ Uid, Gid uint32 } { return nil }
