package search

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stonelayer/stone/retrieve/sqlite"
)

// A file that was replaced stays open for the search that uses it, and is closed after that.
func TestReplacedIndex(t *testing.T) {
	file := filepath.Join(t.TempDir(), "index.db")
	build := func() {
		t.Helper()
		s, err := sqlite.Open(file)
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	build()
	o := &opener{index: file}
	first, leave, err := o.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file, file+".old"); err != nil {
		t.Fatal(err)
	}
	build()
	second, leaveSecond, err := o.open(t.Context())
	if err != nil || second == first {
		t.Fatalf("the new file is not opened: %v", err)
	}
	if _, err := first.State(t.Context()); err != nil {
		t.Errorf("while it is used: %v", err)
	}
	if err := leave(); err != nil {
		t.Error(err)
	}
	if _, err := first.State(t.Context()); err == nil {
		t.Error("the old file is still open")
	}
	if err := leaveSecond(); err != nil {
		t.Error(err)
	}
	if _, err := second.State(t.Context()); err != nil {
		t.Errorf("the new file between searches: %v", err)
	}
	if err := o.close(); err != nil {
		t.Error(err)
	}
	if _, err := second.State(t.Context()); err == nil {
		t.Error("the file is open after the end")
	}
}
