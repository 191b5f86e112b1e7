//go:build unix

package mcp

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the command the leader of a process group, so that what it
// starts ends with it: launchers such as npx start the server as a child.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// An error of these says that the group is gone, which is what they are for.
func terminateGroup(cmd *exec.Cmd) { syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
func killGroup(cmd *exec.Cmd)      { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
