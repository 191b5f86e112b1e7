//go:build !unix

package mcp

import "os/exec"

// Without process groups only the command itself is ended.
func ownGroup(*exec.Cmd) {}

func terminateGroup(cmd *exec.Cmd) { killGroup(cmd) }
func killGroup(cmd *exec.Cmd)      { cmd.Process.Kill() }
