package worker

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/dag"
)

var leaf = stone.Func0("leaf", dag.NewType[int]("number"), func(context.Context) (int, error) { return 1, nil })

func TestFlags(t *testing.T) {
	for args, want := range map[string]string{
		"extra":                     "unexpected argument",
		"--slots 0":                 "must be positive",
		"--db /nowhere/at/all/s.db": "/nowhere/at/all",
		"--nonsense":                "nonsense",
	} {
		var out bytes.Buffer
		if err := mainOf(t.Context(), strings.Fields(args), &out, []stone.Ashlar{leaf}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v", args, err)
		}
	}
	var out bytes.Buffer
	if err := mainOf(t.Context(), []string{"--help"}, &out, nil); !errors.Is(err, flag.ErrHelp) || !strings.Contains(out.String(), "-pool") {
		t.Errorf("got %v and %s", err, out.String())
	}
}

// A worker waits for a server that does not answer yet, and ends when it is told to.
func TestNoServer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	db := filepath.Join(t.TempDir(), "s.db")
	if err := mainOf(ctx, []string{"--temporal", "127.0.0.1:1", "--db", db}, &bytes.Buffer{}, []stone.Ashlar{leaf}); err != nil {
		t.Error(err)
	}
}
