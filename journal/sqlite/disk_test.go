//go:build linux

package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stonelayer/stone"
	"github.com/stonelayer/stone/internal/test/memdir"
	"github.com/stonelayer/stone/journal"
)

// On a full disk the run fails with a clear error, no acknowledged step is lost, and the
// result is kept and recorded once there is space.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	remove := memdir.Disk(t, dir, 1<<20)
	t.Cleanup(func() {
		if err := remove(); err != nil {
			t.Error(err)
		}
	})
	file, filler := filepath.Join(dir, "stone.db"), filepath.Join(dir, "filler")
	db, err := Open(file, Options{Retry: 100 * time.Millisecond, RetryResults: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}()
	calls := map[string]int{}
	big := strings.Repeat("x", 100_000)
	p := stone.Seq("all",
		stone.Func0("first", draft, func(context.Context) (string, error) { calls["first"]++; return "kept", nil }),
		stone.Func0("second", joined, func(context.Context) (string, error) {
			calls["second"]++
			if err := fill(filler); err != nil {
				return "", err
			}
			return big, nil
		}))
	run := func() (stone.Result, error) {
		return stone.Run(t.Context(), p, stone.Config{RunID: "r", Recorder: journal.Keep(db, journal.Options{})})
	}
	_, err = run()
	if err == nil || !strings.Contains(err.Error(), "has no space left: free some space on its disk") {
		t.Fatalf("Run on a full disk: %v, want an error about the full disk", err)
	}
	steps, err := db.Steps(t.Context(), "r")
	if err != nil || len(steps) != 2 || !steps[0].Recorded || steps[1].Recorded {
		t.Errorf("on the full disk: %+v, %v; want the first step recorded", steps, err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	result, err := run()
	for deadline := time.Now().Add(10 * time.Second); err != nil && time.Now().Before(deadline); {
		result, err = run()
	}
	if err != nil || result.Node.Text() != big || calls["first"] != 1 || calls["second"] != 1 {
		t.Errorf("with space again: %v, calls %v; want the result without another call", err, calls)
	}
}

// A file that is opened on a full disk lacks the room for its shared memory.
func TestOpenOnFullDisk(t *testing.T) {
	dir := t.TempDir()
	remove := memdir.Disk(t, dir, 1<<20)
	t.Cleanup(func() {
		if err := remove(); err != nil {
			t.Error(err)
		}
	})
	file := filepath.Join(dir, "stone.db")
	db, err := Open(file, Options{})
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := fill(filepath.Join(dir, "filler")); err != nil {
		t.Fatal(err)
	}
	db, err = Open(file, Options{Retry: 100 * time.Millisecond})
	if err == nil {
		_, err = db.Steps(t.Context(), "r")
		err = errors.Join(err, db.Close())
	}
	if err == nil || !strings.Contains(err.Error(), "has no space left: free some space on its disk") {
		t.Errorf("on a full disk: %v, want an error about the full disk", err)
	}
}

// fill writes a file until the disk is full.
func fill(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}
