package fs

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stonelayer/stone/sandbox"
)

const maxLinks = 40

// refuses returns a function that returns why a name below the directory base is refused, or "" if it is allowed. Names that
// occur in the path of base are always allowed.
func (r Root) refuses(base string) func(name string) string {
	named := parts(base)
	return func(name string) string {
		is := func(other string) bool { return strings.EqualFold(name, other) } // some file systems ignore case
		matches := func(pattern string) bool {
			ok, err := filepath.Match(strings.ToLower(pattern), strings.ToLower(name))
			return ok && err == nil // change has checked the pattern
		}
		switch {
		case slices.ContainsFunc(named, is):
			return ""
		case slices.ContainsFunc(sandbox.Protected(), is) || slices.ContainsFunc(r.Refuse, is):
			return "must not be used: " + name + " is refused"
		case r.changes && slices.ContainsFunc(r.ReadOnly, matches):
			return "must not be changed: " + name + " is read-only"
		}
		return ""
	}
}

// parts returns the elements of a path, without empty elements and ".".
func parts(path string) []string {
	return slices.DeleteFunc(strings.Split(path, string(filepath.Separator)), func(p string) bool { return p == "." || p == "" })
}

// settle changes the place so that its root is the directory that contains the file and p.name is the name of the file in this
// directory. If directories along the path do not exist, p.name includes their names. A link at the end of the path is not
// followed, but it is an error if it leads to a refused name.
func (p *place) settle() error {
	end := walk{place: p, todo: parts(p.name), last: true}
	err := end.run()
	end.close()
	if err != nil {
		return err
	}
	w := walk{place: p, todo: parts(p.name)}
	defer w.close()
	if err := w.run(); err != nil {
		return err
	}
	p.name = cmp.Or(filepath.Join(w.todo...), ".")
	if n := len(w.dirs); n > 0 {
		err := p.Root.Close()
		p.Root, w.dirs = w.dirs[n-1], w.dirs[:n-1]
		return err
	}
	return nil
}

// A walk descends along a path and opens each directory after checking it, so no link can lead to a refused name, even if the
// link changes during the walk.
type walk struct {
	*place
	todo []string
	last bool // whether to follow a link at the end of the path

	dirs  []*os.Root // the opened directories along the path, below the place's root
	links int
}

func (w *walk) close() {
	for _, d := range w.dirs {
		d.Close()
	}
}

func (w *walk) here() *os.Root {
	if n := len(w.dirs); n > 0 {
		return w.dirs[n-1]
	}
	return w.Root
}

// run descends the path through all directories that exist. It returns an error if a name is refused.
func (w *walk) run() error {
	for len(w.todo) > 0 {
		on, err := w.step(w.todo[0])
		if err != nil {
			return err
		}
		if !on {
			break
		}
	}
	for _, name := range w.todo {
		if err := w.refusal(name); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) refusal(name string) error {
	if why := w.refused(name); why != "" {
		return fmt.Errorf("%s %s", w.shown, why)
	}
	return nil
}

// step descends by one name and reports whether the walk continues.
func (w *walk) step(name string) (on bool, err error) {
	if name == ".." { // ".." comes only from the target of a link
		n := len(w.dirs) - 1
		if n < 0 {
			return false, fmt.Errorf("%s escapes from the directory in which files may be used", w.shown)
		}
		w.todo, w.dirs, err = w.todo[1:], w.dirs[:n], w.dirs[n].Close()
		return true, err
	}
	if err := w.refusal(name); err != nil {
		return false, err
	}
	info, err := w.here().Lstat(name)
	final := len(w.todo) == 1
	switch {
	case err != nil: // the name does not exist; any other error is returned when the name is used
		return false, nil
	case info.Mode()&os.ModeSymlink != 0 && (!final || w.last):
		return w.follow(name)
	case !info.IsDir() || final:
		return false, nil
	}
	next, err := w.here().OpenRoot(name)
	if err != nil {
		return false, explain(w.shown, err)
	}
	w.todo, w.dirs = w.todo[1:], append(w.dirs, next)
	if now, err := next.Stat("."); err != nil || !os.SameFile(info, now) {
		return false, errors.Join(err, fmt.Errorf("%s has changed during the call: try again", w.shown))
	}
	return true, nil
}

// follow replaces a link in the path with its target. The walk stops at a link that it cannot follow, for example because the
// target is absolute; an error is then returned when the link is used.
func (w *walk) follow(name string) (on bool, err error) {
	target, err := w.here().Readlink(name)
	if w.links++; err != nil || w.links > maxLinks || filepath.IsAbs(target) {
		return false, nil
	}
	w.todo = append(parts(target), w.todo[1:]...)
	return true, nil
}
