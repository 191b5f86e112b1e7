package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A place is a path of a policy.
type place struct {
	Path string // path in the policy, cleaned
	Real string // path without symbolic links
	// through contains the links and directories on the way from Path to Real.
	through []string
}

// reach contains the paths of a policy, resolved.
type reach struct {
	Writable []place
	ReadOnly []place
	Fixed    []string // paths within writable directories that are read-only
	absent   []string // paths of protected names that do not exist
}

const maxLinks = 40

// resolve returns the place of an absolute path. It follows the symbolic links in the path one by one.
func resolve(path string) (place, error) {
	if !filepath.IsAbs(path) {
		return place{}, fmt.Errorf("sandbox: the path %q of the policy is not absolute", path)
	}
	p := place{Path: filepath.Clean(path), Real: "/"}
	links, rest := 0, strings.Split(p.Path[1:], "/")
	for len(rest) > 0 {
		name := rest[0]
		rest = rest[1:]
		if name == "" || name == "." {
			continue
		}
		next := filepath.Join(p.Real, name)
		info, err := os.Lstat(next)
		if err != nil {
			return p, fmt.Errorf("sandbox: the path %s of the policy: %w", p.Path, err)
		}
		p.through = append(p.through, next)
		if info.Mode()&os.ModeSymlink == 0 {
			p.Real = next
			continue
		}
		target, err := os.Readlink(next)
		if links++; err != nil || links > maxLinks {
			return p, fmt.Errorf("sandbox: the path %s of the policy: too many symbolic links", p.Path)
		}
		if filepath.IsAbs(target) {
			p.Real = "/"
		}
		rest = append(strings.Split(target, "/"), rest...)
	}
	return p, nil
}

// below reports whether path is within dir and not equal to dir.
func below(path, dir string) bool {
	return path != dir && strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// owner returns the writable place through which p leads, and reports whether there is one. A command could have replaced entries
// of this place with symbolic links.
func (p place) owner(writable []place) (place, bool) {
	for _, w := range writable {
		if slices.ContainsFunc(p.through, func(t string) bool { return below(t, w.Real) }) {
			return w, true
		}
	}
	return place{}, false
}

// redirected returns the error for a path of the policy that leads through the writable place w, where a command could redirect it.
func (p place) redirected(w place) error {
	return fmt.Errorf("sandbox: the path %s leads out of the writable directory %s to %s through a symbolic link: use %s itself, or a path without symbolic links", p.Path, w.Path, p.Real, p.Real)
}

// kernel contains the directories that are never writable, because they are interfaces to the kernel.
var kernel = []string{"/proc", "/sys"}

// resolve resolves the paths of the policy. It is called for each command, and returns an error if a path depends on entries that
// an earlier command could have changed.
func (p Policy) resolve(program string) (reach, error) {
	var all []place
	for _, path := range p.Writable {
		w, err := resolve(path)
		if err != nil {
			return reach{}, err
		}
		if slices.ContainsFunc(kernel, func(k string) bool { return w.Real == k || below(w.Real, k) }) {
			return reach{}, fmt.Errorf("sandbox: %s cannot be writable: it belongs to the kernel", w.Path)
		}
		all = append(all, w)
	}
	var r reach
	for _, w := range all {
		owner, nested := w.owner(all)
		switch {
		case nested && !below(w.Real, owner.Real):
			return reach{}, w.redirected(owner)
		case !nested && !slices.ContainsFunc(r.Writable, func(o place) bool { return o.Path == w.Path }):
			r.Writable = append(r.Writable, w)
		}
	}
	if err := r.read(p.ReadOnly, all); err != nil {
		return reach{}, err
	}
	if prog, err := resolve(program); err == nil {
		if _, inside := prog.owner(all); !inside {
			r.ReadOnly = append(r.ReadOnly, prog)
		}
	}
	return r, r.protect(all)
}

// read adds read-only paths either to ReadOnly or, within writable directories, to Fixed.
func (r *reach) read(paths []string, writable []place) error {
	for _, path := range paths {
		ro, err := resolve(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		} else if err != nil {
			return err
		}
		owner, nested := ro.owner(writable)
		switch {
		case nested && !below(ro.Real, owner.Real):
			return ro.redirected(owner)
		case slices.ContainsFunc(writable, func(w place) bool { return w.Real == ro.Real }):
		case nested:
			r.Fixed = append(r.Fixed, ro.Real)
		default:
			r.ReadOnly = append(r.ReadOnly, ro)
		}
	}
	return nil
}

// protect makes the protected names in writable directories read-only.
func (r *reach) protect(writable []place) error {
	for _, w := range writable {
		for _, name := range Protected() {
			path := filepath.Join(w.Real, name)
			if slices.ContainsFunc(writable, func(o place) bool { return o.Real == path || o.Path == path }) {
				continue
			}
			info, err := os.Lstat(path)
			switch {
			case errors.Is(err, os.ErrNotExist):
				r.absent = append(r.absent, path)
			case err != nil && !isFile(w.Real):
				return fmt.Errorf("sandbox: %w", err)
			case err == nil && info.Mode()&os.ModeSymlink != 0:
				return fmt.Errorf("sandbox: %s is a symbolic link and cannot be kept read-only: replace it, or list it in Writable", path)
			case err == nil:
				r.Fixed = append(r.Fixed, path)
			}
		}
	}
	slices.Sort(r.Fixed)
	r.Fixed = slices.Compact(r.Fixed)
	return nil
}

func isFile(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && !info.IsDir()
}

// appeared returns an error if a protected name exists that did not exist before the command ran.
func (r *reach) appeared() error {
	for _, path := range r.absent {
		if _, err := os.Lstat(path); err == nil {
			return fmt.Errorf("sandbox: the command has made %s, which is protected: look at it before another program uses it, then delete it or list it in Writable", path)
		}
	}
	return nil
}
