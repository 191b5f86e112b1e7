package sqlite_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stonelayer/stone/x/retrieve"
	"github.com/stonelayer/stone/x/retrieve/internal/storetest"
	"github.com/stonelayer/stone/x/retrieve/sqlite"
)

func TestStore(t *testing.T) {
	storetest.Test(t, func(t *testing.T) func() (*retrieve.Store, error) {
		file := filepath.Join(t.TempDir(), "a folder?#%.db")
		return func() (*retrieve.Store, error) { return sqlite.Open(file) }
	})
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "index.db")
	if _, err := sqlite.Read(file); !errors.Is(err, sqlite.ErrNone) {
		t.Errorf("%v", err)
	}
	s, err := sqlite.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if s, err = sqlite.Read(file); err != nil {
		t.Fatal(err)
	}
	s.Close()
	change := func(file, statement string) {
		db, err := sql.Open("sqlite", file)
		if err == nil {
			_, err = db.Exec(statement)
		}
		if err != nil {
			t.Fatal(err)
		}
		db.Close()
	}
	change(file, "PRAGMA user_version = 9")
	foreign := filepath.Join(dir, "foreign.db")
	change(foreign, "CREATE TABLE t (a)")
	text := filepath.Join(dir, "text.db")
	os.WriteFile(text, []byte(strings.Repeat("no database ", 100)), 0o600)
	for file, want := range map[string]string{file: "schema 9", foreign: "another program", text: "not a database", filepath.Join(dir, "none", "x.db"): "unable to open", dir: "unable to open"} {
		if _, err := sqlite.Open(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", file, err, want)
		}
	}
}
