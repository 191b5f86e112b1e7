//go:build unix

package confine

import (
	"fmt"
	"os/exec"
)

// system is what nearly every program needs to read. The rest of /etc is left out:
// secrets lie there.
var system = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store",
	"/etc/alternatives", "/etc/ca-certificates", "/etc/group", "/etc/hosts", "/etc/ld.so.cache",
	"/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/mime.types", "/etc/nsswitch.conf",
	"/etc/passwd", "/etc/pki", "/etc/protocols", "/etc/resolv.conf", "/etc/services", "/etc/ssl",
}

// bubblewrap rewrites cmd so that bwrap runs it.
func (p Policy) bubblewrap(cmd *exec.Cmd) error {
	bwrap, err := exec.LookPath("bwrap")
	if err != nil {
		return fmt.Errorf("the program bwrap is not installed (package bubblewrap): %w", err)
	}
	// In a new session there is no terminal into which a command could type.
	args := []string{bwrap, "--unshare-all", "--cap-drop", "ALL", "--die-with-parent", "--new-session"}
	if p.Network {
		args = append(args, "--share-net")
	}
	for _, path := range system {
		args = append(args, "--ro-bind-try", path, path)
	}
	// What root owns below /proc/sys could be written even without capabilities.
	args = append(args, "--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev", "--tmpfs", "/tmp")
	for _, path := range p.ReadOnly {
		args = append(args, "--ro-bind-try", path, path)
	}
	for _, path := range p.Writable {
		args = append(args, "--bind", path, path)
	}
	if cmd.Dir != "" {
		args = append(args, "--chdir", cmd.Dir)
	}
	args = append(append(args, "--", cmd.Path), cmd.Args[1:]...)
	cmd.Path, cmd.Args, cmd.Dir = bwrap, args, ""
	return nil
}
