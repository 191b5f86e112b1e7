package fs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/stonelayer/stone/agent"
)

// The default limits of a [Root], in bytes.
const (
	defaultMaxRead = 1 << 20
	defaultMaxFile = 16 << 20
)

// A Root is a directory whose files tools may use. The zero value is the program's current directory. Every call of a tool opens
// the directory anew, so the directory need not exist when the tools are made, and a Root need not be closed.
type Root struct {
	// Dir is the path of the directory; "" means ".". If it is a symbolic link, the link is followed.
	Dir string
	// DirFrom, if not nil, is called for each tool call and returns the directory to use instead of Dir. Use it for a directory
	// that the run itself creates. A resumed run must use the same directory, so derive the path from stone.In(ctx).RunID() and
	// not from properties of the process.
	DirFrom func(ctx context.Context) (string, error)
	// Only lists the directories below Dir that the tools may use, such as "src". Empty means all of Dir. A link from one of
	// these directories into another is not followed.
	Only []string
	// Refuse lists further names of files and directories, besides .git and .stone, that the tools neither read nor change. The
	// names are refused everywhere below Dir, regardless of case. The only exception is a name that occurs in the path of a
	// directory in Only: it is allowed within this directory.
	Refuse []string
	// ReadOnly lists patterns such as "*_test.go", in the syntax of path.Match. The tools may read files and directories whose
	// names match, but not create or change them. The patterns apply everywhere below Dir, with the same exception as in Refuse.
	// Resolve refuses matching names too, so a tool of your own that only reads needs a Root without ReadOnly.
	ReadOnly []string
	// MaxRead limits the number of bytes that a call of read_file returns, and MaxFile limits the size of a file that is written
	// or edited, in bytes. Zero means the default.
	MaxRead int
	MaxFile int64

	changes bool // whether a tool may change the file
}

func (r Root) maxRead() int   { return cmp.Or(r.MaxRead, defaultMaxRead) }
func (r Root) maxFile() int64 { return cmp.Or(r.MaxFile, defaultMaxFile) }

// A place is the file or directory to which a path from the model leads.
type place struct {
	*os.Root
	name  string // the name within Root
	shown string // the path that is shown to the model

	refused func(name string) (why string) // returns why the name is refused, or "" if it may be used
}

// Resolve finds the file at a path with the same checks as the tools of this package. Use it in tools of your own. It returns
// dir, the directory that contains the file, and name, the file's name in dir. Access the file with the methods of dir, which
// refuse links that lead out of dir, and close dir afterwards. The file may be a directory and need not exist. If directories
// along the path do not exist, name includes their names. Resolve does not limit the size of the file.
func (r Root) Resolve(ctx context.Context, path string) (dir *os.Root, name string, err error) {
	p, err := r.change(ctx, path)
	if err != nil {
		return nil, "", err
	}
	if info, err := p.Stat(p.name); err == nil && !info.IsDir() {
		if err := p.regular(info); err != nil {
			return nil, "", errors.Join(err, p.Close())
		}
	}
	return p.Root, p.name, nil
}

// change is like at, but also refuses names that match ReadOnly.
func (r Root) change(ctx context.Context, path string) (*place, error) {
	for _, pattern := range r.ReadOnly {
		if _, err := filepath.Match(pattern, ""); err != nil {
			return nil, fmt.Errorf("ReadOnly of the directory has the pattern %q: %w", pattern, err)
		}
	}
	r.changes = true
	return r.at(ctx, path)
}

// at returns the place of a path from the model. The caller must close the place.
func (r Root) at(ctx context.Context, path string) (*place, error) {
	if r.DirFrom != nil {
		dir, err := r.DirFrom(ctx)
		if err != nil {
			return nil, fmt.Errorf("the directory of the files is unknown: %w", err)
		}
		r.Dir = dir
	}
	name, err := r.local(path)
	if err != nil {
		return nil, err
	}
	base, err := r.base(name)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(cmp.Or(r.Dir, "."))
	if err != nil {
		return nil, fmt.Errorf("the directory of the files cannot be opened: %w", err)
	}
	p := &place{root, name, filepath.ToSlash(name), r.refuses(base)}
	if base != "." {
		// The directory becomes the root of the place, so that links cannot lead to another part of Dir.
		if err := p.enter(base); err != nil {
			return nil, errors.Join(err, root.Close())
		}
	}
	if err := p.settle(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// enter makes base, one of the directories in Only, the root of the place.
func (p *place) enter(base string) error {
	rel, err := filepath.Rel(base, p.name)
	if err != nil {
		return err
	}
	end := walk{place: p, todo: parts(base), last: true}
	defer end.close()
	if err := end.run(); err != nil {
		return err
	}
	root, err := end.here().OpenRoot(cmp.Or(filepath.Join(end.todo...), "."))
	if err != nil {
		return explain(base, err)
	}
	err = p.Root.Close()
	p.Root, p.name = root, rel
	return err
}

// local returns path relative to Dir, or an error if path leads out of Dir. It does not resolve symbolic links below Dir.
func (r Root) local(path string) (string, error) {
	name := filepath.Clean(cmp.Or(filepath.FromSlash(path), "."))
	if filepath.IsAbs(name) {
		dir, err := filepath.Abs(cmp.Or(r.Dir, "."))
		if err != nil {
			return "", err
		}
		rel, err := filepath.Rel(dir, name)
		if real, links := filepath.EvalSymlinks(dir); (err != nil || !filepath.IsLocal(rel)) && links == nil {
			rel, err = filepath.Rel(real, name)
		}
		if err == nil {
			name = rel
		}
	}
	if !filepath.IsLocal(name) {
		return "", fmt.Errorf(`%q leads out of the directory in which files may be used: name a path below it, as "a.txt"`, path)
	}
	return name, nil
}

// base returns the directory in Only that contains name, or "." if Only is empty.
func (r Root) base(name string) (string, error) {
	if len(r.Only) == 0 {
		return ".", nil
	}
	for _, only := range r.Only {
		only = filepath.Clean(only)
		if only == "." || name == only || strings.HasPrefix(name, only+string(filepath.Separator)) {
			return only, nil
		}
	}
	return "", fmt.Errorf("%q must not be used: only what lies in %s may", filepath.ToSlash(name), strings.Join(r.Only, ", "))
}

// regular returns an error unless the file is a regular file without additional hard links.
func (p *place) regular(info os.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsRegular():
	case mode.IsDir():
		return fmt.Errorf("%s is a directory, not a file", p.shown)
	case mode&os.ModeSymlink != 0:
		target, err := p.Readlink(p.name)
		if err != nil {
			return explain(p.shown, err)
		}
		return fmt.Errorf("%s is a symbolic link: name its target %q itself", p.shown, target)
	default:
		return fmt.Errorf("%s is not a regular file but a device, pipe or socket, which is never opened", p.shown)
	}
	if n := links(info); n > 1 {
		return fmt.Errorf("%s has %d names (hard links), of which some may lie outside the allowed directory, so it is neither read nor written; a copy of it under a new name can be", p.shown, n)
	}
	return nil
}

// open opens the file for reading.
func (p *place) open() (*os.File, os.FileInfo, error) {
	// The file is checked before opening, because opening can affect a device, and again afterwards, because the file may have
	// been replaced.
	info, err := p.Stat(p.name)
	if err != nil {
		return nil, nil, explain(p.shown, err)
	}
	if err := p.regular(info); err != nil {
		return nil, nil, err
	}
	f, err := p.OpenFile(p.name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, nil, explain(p.shown, err)
	}
	if info, err = f.Stat(); err == nil {
		err = p.regular(info)
	}
	if err != nil {
		f.Close()
		return nil, nil, explain(p.shown, err)
	}
	return f, info, nil
}

// explain returns the error that the model receives: it contains the path and the reason, but not the failed operation.
func explain(shown string, err error) error {
	if errors.Is(err, iofs.ErrNotExist) {
		return fmt.Errorf("%s does not exist", shown)
	}
	if of, ok := errors.AsType[*iofs.PathError](err); ok {
		return fmt.Errorf("%s: %w", shown, of.Err)
	}
	if of, ok := errors.AsType[*os.LinkError](err); ok {
		return fmt.Errorf("%s: %w", shown, of.Err)
	}
	return err
}

// result returns the result of a tool, with the path in the meta.
func (p *place) result(text string, meta map[string]any) agent.Result {
	if meta == nil {
		meta = map[string]any{}
	}
	meta["path"] = p.shown
	return agent.Result{Text: text, Meta: meta}
}

// with finds the place of the path in the input, and runs a tool or its preview there.
func with[I interface{ file() string }, T any](at func(context.Context, string) (*place, error), run func(context.Context, *place, I) (T, error)) func(context.Context, I) (T, error) {
	return func(ctx context.Context, in I) (out T, err error) {
		p, err := at(ctx, in.file())
		if err != nil {
			return out, err
		}
		defer p.Close()
		return run(ctx, p, in)
	}
}
