package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A clone is a working copy that shares the objects of a git repository, but not its configuration and its remotes. A program
// that works in the clone does not change the repository.
type clone struct {
	dir     string // path without symbolic links
	objects string // directory of the repository's objects
	base    string // commit on which the clone is based
}

// newClone returns a clone of the commit HEAD. To repair an answer, it returns a clone of the answer's base commit with the
// answer's edits applied.
func newClone(ctx context.Context, repo string, before *answer) (_ *clone, err error) {
	c := &clone{}
	if c.dir, err = os.MkdirTemp("", "stone-harness-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.remove()
		}
	}()
	if c.dir, err = filepath.EvalSymlinks(c.dir); err != nil {
		return nil, err
	}
	head, err := git(ctx, repo, nil, "rev-parse", "--path-format=absolute", "HEAD^{commit}", "--git-path", "objects", "--git-common-dir")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSpace(head), "\n")
	if len(lines) != 3 {
		return nil, fmt.Errorf("git rev-parse: %d lines: want 3", len(lines))
	}
	c.base, c.objects = lines[0], lines[1]
	if before != nil && before.Base != "" {
		c.base = before.Base
	}
	if _, err = git(ctx, c.dir, nil, "clone", "--quiet", "--shared", "--no-checkout", "--template=", "--", lines[2], c.dir); err != nil {
		return nil, err
	}
	if _, err = git(ctx, c.dir, nil, "checkout", "--quiet", "--detach", c.base, "--"); err != nil {
		return nil, err
	}
	if before != nil && before.Diff != "" {
		_, err = git(ctx, c.dir, []byte(before.Diff), "apply", "--whitespace=nowarn", "-")
	}
	return c, err
}

func (c *clone) remove() { _ = os.RemoveAll(c.dir) }

// diff returns the differences between the clone's files and its base commit. Files that git ignores are omitted.
func (c *clone) diff(ctx context.Context) (string, error) {
	if _, err := git(ctx, c.dir, nil, "add", "--all"); err != nil {
		return "", err
	}
	return git(ctx, c.dir, nil, "diff", "--cached", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames",
		"--ignore-submodules=all", "--src-prefix=a/", "--dst-prefix=b/", c.base, "--")
}

// git runs git without hooks, and without environment variables that refer to another repository.
func git(ctx context.Context, dir string, input []byte, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false"}, args...)...)
	cmd.Dir, cmd.Stdin = dir, bytes.NewReader(input)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GIT_") })
	out, stderr := &bounded{}, &bounded{}
	cmd.Stdout, cmd.Stderr = out, stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", fmt.Errorf("git %s: %w: %s", args[0], errors.Join(err, out.err), strings.TrimSpace(stderr.String()))
	}
	return out.String(), out.err
}

// bounded is a buffer that keeps at most maxAnswer bytes.
type bounded struct {
	bytes.Buffer
	err error
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > maxAnswer {
		b.err = fmt.Errorf("more than %d bytes", maxAnswer)
		return 0, b.err
	}
	return b.Buffer.Write(p)
}
