package trust

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stonelayer/stone/internal/test/need"
)

// A file is believed until it is replaced, others may write it, or it becomes a link; what is announced, at once.
func TestState(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	t.Setenv("HOME", home)
	t.Setenv("AppData", home)
	s, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "stone.db")
	want := func(what string, believed bool) {
		t.Helper()
		if got, err := s.Believed(file); err != nil || got != believed {
			t.Errorf("%s: believed %v, %v", what, got, err)
		}
	}
	write := func() { t.Helper(); check(os.WriteFile(file, []byte("rows"), 0o600)) }
	write()
	want("one that was there", false)
	check(os.Remove(file))
	check(s.Make(file))
	write()
	want("announced", true)
	check(s.Believe(file))
	want("made", true)
	check(os.WriteFile(file, []byte("more rows"), 0o600))
	want("written", true)
	check(os.Rename(file, file+"2"))
	want2 := filepath.Join(dir, "stone.db2")
	if _, err := s.Believed(file); err == nil {
		t.Error("a missing file is believed")
	}
	check(os.Symlink(want2, file))
	want("a link to it", false)
	check(os.Remove(file))
	check(os.Rename(want2, file))
	want("put back", true)
	check(os.Remove(file))
	write()
	want("another one of its name", false)
}

func TestForeign(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "project", ".stone", "stone.db-wal")
	git := filepath.Join(dir, ".git")
	for _, d := range []string{filepath.Dir(file), git} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if why := Foreign(file); why != "" {
		t.Errorf("one that is missing: %s", why)
	}
	for index, want := range map[string]bool{
		"DIRC\x00\x00\x00\x02…project/.stone/stone.db-wal\x00": true, "DIRC\x00\x00\x00\x02…project/.STONE/stone.db-WAL\x00": true,
		"DIRC\x00\x00\x00\x04 cut off": true, "DIRC\x00\x00\x00\x02…other/.stone/stone.db-wal\x00": false, "": false,
	} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(git, "index"), []byte(index), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := Foreign(file) != ""; got != want {
			t.Errorf("%q: %v", index, got)
		}
	}
}

// Version 4 of the index stores for each path only the part that differs from the path before it.
func TestForeignInIndex4(t *testing.T) {
	git := need.Program(t, "git")
	long := strings.Repeat("l", 150)
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			dir := t.TempDir()
			run := func(args ...string) {
				t.Helper()
				c := exec.Command(git, args...)
				c.Dir = dir
				if out, err := c.CombinedOutput(); err != nil {
					t.Fatalf("%v: %v: %s", args, err, out)
				}
			}
			run("init", "-q", "--object-format="+format)
			want := map[string]bool{
				".stone/stone.db-waa": true, ".stone/stone.db-wal": true, ".stone/stone.db-shm": false, ".stone/" + long: true,
				"b/.STONE/stone.db-journal": true, "z": true, "z-wal": false,
			}
			for file, tracked := range want {
				file = filepath.Join(dir, file)
				if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600)); err != nil {
					t.Fatal(err)
				}
				if tracked {
					run("add", "-f", file)
				}
			}
			run("update-index", "--index-version", "4")
			if data, err := os.ReadFile(filepath.Join(dir, ".git", "index")); err != nil || data[7] != 4 {
				t.Fatalf("no index of version 4: %v", err)
			}
			want["b/.stone/stone.db-journal"] = true // a name in another case may be the same file
			if err := os.MkdirAll(filepath.Join(dir, "b/.stone"), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "b/.stone/stone.db-journal"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			for file, tracked := range want {
				if why := Foreign(filepath.Join(dir, file)); (why != "") != tracked {
					t.Errorf("%s: %q", file, why)
				}
			}
		})
	}
}
