package trust

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestStore(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	t.Setenv("HOME", home)
	project := t.TempDir()
	a, b := filepath.Join(project, "a"), filepath.Join(project, "b")
	write := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(a, "1")
	write(b, "2")
	s, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	want := func(files []string, changed ...string) {
		t.Helper()
		got, _, err := s.Changed(project, files)
		if err != nil || !slices.Equal(got, changed) {
			t.Errorf("changed: %q, %v; want %q", got, err, changed)
		}
	}
	add := func(files ...string) {
		t.Helper()
		if err := s.Add(project, files); err != nil {
			t.Fatal(err)
		}
	}
	want([]string{a, b}, "a", "b")
	add(a)
	want([]string{a})
	want([]string{a, b}, "b")
	add(b)
	want([]string{a, b})
	write(a, "3")
	want([]string{a, b}, "a")
	write(a, "1")
	want([]string{a, b})

	// A link to the project is the project; its name elsewhere is not.
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(project, link); err != nil {
		t.Fatal(err)
	}
	if got, known, err := s.Changed(link, []string{filepath.Join(link, "a")}); len(got) > 0 || !known || err != nil {
		t.Errorf("by a link: %q, %v, %v", got, known, err)
	}
	other := t.TempDir()
	write(filepath.Join(other, "a"), "1")
	if got, known, _ := s.Changed(other, []string{filepath.Join(other, "a")}); len(got) != 1 || known {
		t.Errorf("another project with the same file: %q, %v", got, known)
	}

	info, err := os.Stat(s.file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if all, err := s.All(); err != nil || len(all) != 1 {
		t.Errorf("%q, %v", all, err)
	}
	if was, err := s.Remove(project); !was || err != nil {
		t.Errorf("%v, %v", was, err)
	}
	if was, err := s.Remove(project); was || err != nil {
		t.Errorf("%v, %v", was, err)
	}
	want([]string{a}, "a")

	// A store that has null instead of projects is empty.
	write(s.file, "null")
	if err := s.Add(project, []string{a}); err != nil {
		t.Error(err)
	}

	// An unreadable store trusts nothing.
	write(s.file, "{")
	if _, _, err := s.Changed(project, []string{a}); err == nil || !strings.Contains(err.Error(), "trust.json") {
		t.Errorf("%v", err)
	}
	if _, _, err := s.Changed(project, []string{filepath.Join(project, "gone")}); err == nil {
		t.Error("a missing file is trusted")
	}
}
