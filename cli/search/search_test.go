package search

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stonelayer/stone/cli/internal/library"
)

// One process builds an index at a time; others may search it meanwhile.
func TestOneBuilds(t *testing.T) {
	c := library.Config{File: filepath.Join(t.TempDir(), "index.db"), Make: true}
	first, err := open(c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(c); err == nil || !strings.Contains(err.Error(), "another process builds the index") {
		t.Errorf("a second process: %v", err)
	}
	reader, err := open(library.Config{File: c.File})
	if err == nil {
		err = reader.Close()
	}
	if err != nil {
		t.Errorf("a search: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	next, err := open(c)
	if err == nil {
		err = next.Close()
	}
	if err != nil {
		t.Errorf("after the first: %v", err)
	}
}
