//go:build unix

package fs_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stonelayer/stone/tool/fs"
)

// What programs outside would run is refused, by every way to it.
func TestRefused(t *testing.T) {
	for _, path := range []string{".git/config", ".git", ".git/new", "sub/.git/config", ".GIT/config", ".stone/stone.edn", ".stone", "new/.git/config",
		"link", "dir/config", "deep", "chain/config", "around/config", "keys/k", "./sub/../.git/config"} {
		dir := files(t, map[string]string{".git/config": "kept", "sub/.git/config": "kept", ".stone/stone.edn": "kept", "keys/k": "kept", "free": "kept"})
		for name, target := range map[string]string{"link": ".git/config", "dir": ".git", "deep": "sub/.git", "chain": "dir", "around": "sub/../.git"} {
			if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		for name, run := range ways(fs.Root{Dir: dir, Refuse: []string{"keys"}}) {
			isLink := !strings.ContainsAny(path, "/.")
			if isLink && (name == "delete_file" || name == "write_file" || name == "edit_file") {
				continue // which never follow a last link
			}
			if got, err := run(t, path); err == nil || !strings.Contains(err.Error(), "refused") {
				t.Errorf("%s %s: got %q, error %v", name, path, got, err)
			}
		}
		for _, file := range []string{".git/config", "sub/.git/config", ".stone/stone.edn", "keys/k"} {
			if got := content(t, filepath.Join(dir, file)); got != "kept" {
				t.Errorf("%s: %s is %q", path, file, got)
			}
		}
	}
}

// What is read-only is read by every tool, and changed by none, whichever way leads to it.
func TestReadOnly(t *testing.T) {
	for _, path := range []string{"a_test.go", "A_Test.go", "sub/b_test.go", "go.mod", "new_test.go", "sub/new_test.go", "new/x_test.go", "keep/f", "keep/new",
		"./sub/../a_test.go", "dir/b_test.go", "up/a_test.go"} {
		dir := files(t, map[string]string{"a_test.go": "secret", "A_Test.go": "secret", "sub/b_test.go": "secret", "go.mod": "secret", "keep/f": "secret", "free.go": "secret"})
		for name, target := range map[string]string{"dir": "sub", "up": "."} {
			if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		root := fs.Root{Dir: dir, ReadOnly: []string{"*_test.go", "go.mod", "keep"}}
		for name, run := range ways(root) {
			got, err := run(t, path)
			switch name {
			default:
				if err == nil || !strings.Contains(err.Error(), "is read-only") {
					t.Errorf("%s %s: got %q, error %v", name, path, got, err)
				}
			case "read_file", "file_exists", "list_directory":
				if err != nil && strings.Contains(err.Error(), "read-only") {
					t.Errorf("%s %s: %v", name, path, err)
				}
			}
		}
		for _, file := range []string{"a_test.go", "sub/b_test.go", "go.mod", "keep/f"} {
			if got := content(t, filepath.Join(dir, file)); got != "secret" {
				t.Errorf("%s: %s is %q", path, file, got)
			}
		}
	}
	dir := files(t, map[string]string{"free.go": "secret"})
	if _, err := call(t, fs.Write(fs.Root{Dir: dir, ReadOnly: []string{"*_test.go"}}), "path", "test.go", "content", "x"); err != nil {
		t.Error(err)
	}
	if _, err := call(t, fs.Write(fs.Root{Dir: dir, ReadOnly: []string{"[", "x"}}), "path", "x.go", "content", "x"); err == nil || !strings.Contains(err.Error(), `pattern "["`) {
		t.Errorf("a bad pattern: %v", err)
	}
}

func TestRefusedUnlessNamed(t *testing.T) {
	dir := files(t, map[string]string{".git/config": "text", "sub/.stone/x": "x", "gitignore": "g"})
	if err := errors.Join(os.Symlink("../.git", filepath.Join(dir, "sub/out")), os.Symlink(".git", filepath.Join(dir, "src"))); err != nil {
		t.Fatal(err)
	}
	root := fs.Root{Dir: dir, Only: []string{".git", "sub", "src"}}
	got, err := call(t, fs.Read(root), "path", ".git/config")
	want(t, "named", got, err, "text")
	got, err = call(t, fs.Read(root), "path", "sub/.stone/x")
	want(t, "another one", got, err, "!.stone is refused")
	got, err = call(t, fs.Read(root), "path", "src/config")
	want(t, "a link in place of a directory", got, err, "!.git is refused")
	got, err = call(t, fs.Write(root), "path", ".git/hooks/new", "content", "x")
	want(t, "write named", got, err, "wrote 1 bytes to .git/hooks/new")
}

// A directory that is turned into a link while a file is written leads nowhere else.
func TestRefusedWhileTurned(t *testing.T) {
	dir := files(t, map[string]string{".git/config": "kept", "real/f": "f", "real/sub/f": "f"})
	if err := os.Symlink("real", filepath.Join(dir, "d")); err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan error)
	go func() {
		for targets, i := []string{"real", ".git"}, 0; ; i++ {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			temp := filepath.Join(dir, "temp")
			if err := errors.Join(os.Symlink(targets[i%2], temp), os.Rename(temp, filepath.Join(dir, "d"))); err != nil {
				done <- err
				return
			}
		}
	}()
	written := 0
	for range 500 {
		if _, err := call(t, fs.Write(fs.Root{Dir: dir}), "path", "d/sub/new", "content", "x"); err == nil {
			written++
		}
	}
	close(stop)
	if err := <-done; err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, ".git"))
	if err != nil || len(entries) != 1 {
		t.Errorf("in .git are %v, %v", entries, err)
	}
	if written == 0 {
		t.Error("no file could be written")
	}
}
