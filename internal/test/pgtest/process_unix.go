//go:build unix

package pgtest

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

const stop = syscall.SIGSTOP

func kill(pid int, sig syscall.Signal) error { return syscall.Kill(pid, sig) }

// apart makes a command start in a separate process group. If server is set, the command runs as the server's user.
func apart(cmd *exec.Cmd, server bool) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if server {
		cmd.SysProcAttr.Credential = unprivileged()
	}
}

// unprivileged returns the user that runs the server if this process runs as root, and otherwise nil.
func unprivileged() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		if u, err := user.Lookup(name); err == nil {
			uid, failed := strconv.ParseUint(u.Uid, 10, 32)
			gid, err := strconv.ParseUint(u.Gid, 10, 32)
			if failed == nil && err == nil {
				return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
			}
		}
	}
	return nil
}
