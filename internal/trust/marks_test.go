package trust

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// store returns a store in a directory of its own.
func store(t *testing.T) *Store {
	t.Helper()
	home := t.TempDir()
	for _, name := range []string{"XDG_CONFIG_HOME", "HOME", "AppData"} {
		t.Setenv(name, home)
	}
	s, err := Open()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A marked file is not believed once others may write it, or its directory, and is again when they may not. What others may read, and
// the other bits of a mode, say nothing about that.
func TestModes(t *testing.T) {
	s := store(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "stone.db")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := s.Believe(file); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name      string
		path      string
		mode, was os.FileMode
		believed  bool
	}{
		{"the group writes the file", file, 0o620, 0o600, false},
		{"all write the file", file, 0o602, 0o600, false},
		{"all read the file", file, 0o644, 0o600, true},
		{"the file has the group's bit", file, 0o600 | os.ModeSetgid, 0o600, true},
		{"all write the directory", dir, 0o702, 0o700, false},
		{"the group writes the directory", dir, 0o770, 0o700, true},
		{"all read the directory", dir, 0o755, 0o700, true},
		{"files of the directory are its group's", dir, 0o700 | os.ModeSetgid, 0o700, true},
	} {
		if err := os.Chmod(row.path, row.mode); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(row.path); err != nil || info.Mode()&(os.ModePerm|os.ModeSetgid) != row.mode {
			continue // of a system without such modes
		}
		if got, err := s.Believed(file); err != nil || got != row.believed {
			t.Errorf("%s: believed %v, %v", row.name, got, err)
		}
		if err := os.Chmod(row.path, row.was); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Believed(file); err != nil || !got {
			t.Errorf("%s no longer: believed %v, %v", row.name, got, err)
		}
	}
}

// A file that is a link and was marked is not believed once the link leads elsewhere, or nowhere.
func TestStateLink(t *testing.T) {
	s := store(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "stone.db")
	at := func(to string) {
		t.Helper()
		_ = os.Remove(file)
		if err := os.Symlink(to, file); err != nil {
			t.Fatal(err)
		}
	}
	want := func(what string, believed bool) {
		t.Helper()
		if got, err := s.Believed(file); err != nil || got != believed {
			t.Errorf("%s: believed %v, %v", what, got, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "one"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(filepath.Join(dir, "one"), filepath.Join(dir, "two")); err != nil {
		t.Fatal(err)
	}
	at("one")
	if err := s.Believe(file); err != nil {
		t.Fatal(err)
	}
	want("marked", true)
	at("two")
	want("another name of the same file", false)
	at("none")
	want("of no file", false)
	if err := s.Believe(file); err != nil {
		t.Fatal(err)
	}
	want("of no file, marked", true)
	at("nothing")
	want("of another one that is missing", false)
	if why := Foreign(file); why != "is a link" {
		t.Errorf("foreign: %q", why)
	}
	if why := Foreign(dir); why != "is no regular file" {
		t.Errorf("a directory: %q", why)
	}
	at("one")
	want("led back, not marked since", false)
}

// A repository may keep its index in two files.
func TestForeignInSharedIndex(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "stone.db-wal")
	for name, text := range map[string]string{"stone.db-wal": "", ".git/index": "DIRC\x00\x00\x00\x02", ".git/sharedindex.1234": "DIRC\x00\x00\x00\x02…stone.db-wal\x00"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if why := Foreign(file); why == "" {
		t.Error("a file of the shared index is the project's own")
	}
	if err := os.Rename(filepath.Join(dir, ".git/sharedindex.1234"), filepath.Join(dir, ".git/other")); err != nil {
		t.Fatal(err)
	}
	if why := Foreign(file); why != "" {
		t.Errorf("without the shared index: %s", why)
	}
}

// Tokens and accepted tools belong to one server in one project, and an accepted definition is no longer refused.
func TestServersApart(t *testing.T) {
	s := store(t)
	one, two := t.TempDir(), t.TempDir()
	for _, of := range [][2]string{{one, "a"}, {one, "b"}, {two, "a"}} {
		if got, err := s.Tokens(of[0], of[1]); err != nil || got != nil {
			t.Errorf("%s before: %s, %v", of[1], got, err)
		}
		if err := s.SetTokens(of[0], of[1], []byte(`"`+filepath.Base(of[0])+of[1]+`"`)); err != nil {
			t.Fatal(err)
		}
	}
	for _, of := range [][2]string{{one, "a"}, {one, "b"}, {two, "a"}} {
		if got, err := s.Tokens(of[0], of[1]); err != nil || string(got) != `"`+filepath.Base(of[0])+of[1]+"\"\n" {
			t.Errorf("%s: %s, %v", of[1], got, err)
		}
	}
	refused := map[string]Refused{"read": {json.RawMessage(`2`), "more"}, "write": {json.RawMessage(`3`), "new"}}
	if err := s.Refuse(one, "a", refused); err != nil {
		t.Fatal(err)
	}
	if err := s.Accept(one, "a", map[string]json.RawMessage{"read": json.RawMessage(`4`)}); err != nil {
		t.Fatal(err)
	}
	got, err := s.Tools(one, "a")
	if _, still := got.Refused["read"]; err != nil || still || len(got.Refused) != 1 || string(got.Accepted["read"]) != "4" {
		t.Errorf("accepted %s, refused %v, %v", got.Accepted, got.Refused, err)
	}
}
