package sandbox

import (
	"fmt"
	"path/filepath"
	"slices"
)

// system contains the files that nearly every program reads. It contains nothing else in /etc, because there are secrets.
var system = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store",
	"/etc/alternatives", "/etc/ca-certificates", "/etc/group", "/etc/hosts", "/etc/ld.so.cache",
	"/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/mime.types", "/etc/nsswitch.conf",
	"/etc/passwd", "/etc/pki", "/etc/protocols", "/etc/resolv.conf", "/etc/services", "/etc/ssl",
}

// wrapper returns the absolute path of bwrap, or an error if it is not installed.
func wrapper() (string, error) {
	path, err := lookPath("bwrap")
	if err != nil {
		return "", fmt.Errorf("the program bwrap is not installed (package bubblewrap): %w", err)
	}
	return path, nil
}

// bubblewrap returns the command line of bwrap, up to the command that bwrap runs.
func (o order) bubblewrap() []string {
	r, dir := o.Reach, o.Dir
	// A new session has no terminal into which a command could inject input.
	args := []string{o.Wrapper, "--unshare-all", "--cap-drop", "ALL", "--die-with-parent", "--new-session"}
	switch {
	case o.Connector != "":
		args = append(args, "--info-fd", fmt.Sprint(infoFile))
	case o.Network:
		args = append(args, "--share-net")
	}
	all := slices.ContainsFunc(r.Writable, func(w place) bool { return w.Real == "/" })
	if all {
		args = append(args, "--bind", "/", "/", "--ro-bind-try", "/sys", "/sys")
	} else {
		for _, path := range system {
			args = append(args, "--ro-bind-try", path, path)
		}
	}
	// Even without capabilities, root could write to its files below /proc/sys, and files in the tmpfs of /dev would use memory
	// that no process is charged for.
	args = append(args, "--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev", "--remount-ro", "/dev")
	for _, p := range r.ReadOnly {
		args = append(args, bind("--ro-bind", p)...)
	}
	for _, p := range r.Writable {
		if p.Real != "/" {
			args = append(args, bind("--bind", p)...)
		}
	}
	for _, path := range r.Fixed {
		args = append(args, r.fix(path)...)
	}
	if o.Connector != "" {
		args = append(args, "--ro-bind-data", fmt.Sprint(namesFile), namesPath(all))
	}
	if !all {
		args = append(args, "--remount-ro", "/")
	}
	return append(args, "--chdir", dir, "--")
}

// bind returns the arguments of bwrap that make a place available under both of its paths.
func bind(how string, p place) []string {
	args := []string{how, p.Real, p.Real}
	if p.Path != p.Real {
		args = append(args, how, p.Real, p.Path)
	}
	return args
}

// fix returns the arguments of bwrap that make a path within a writable directory read-only. They also make the directories above
// the path mounts, so that these cannot be renamed or replaced.
func (r reach) fix(path string) (args []string) {
	for _, w := range r.Writable {
		if !below(path, w.Real) {
			continue
		}
		var between []string
		for dir := filepath.Dir(path); dir != w.Real; dir = filepath.Dir(dir) {
			between = append(between, dir)
		}
		names := []string{w.Real}
		if w.Path != w.Real {
			names = append(names, w.Path)
		}
		for _, name := range names {
			at := func(p string) string { return filepath.Join(name, p[len(w.Real):]) }
			for _, dir := range slices.Backward(between) {
				args = append(args, "--bind", dir, at(dir))
			}
			args = append(args, "--ro-bind", path, at(path))
		}
	}
	return args
}
