//go:build unix

package killtest

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stonelayer/stone/internal/test/memdir"
)

// pause starts a process and waits until it has done a number of pieces of work. There
// the process waits for proceed.
func (v *victim) pause(pieces int) *process {
	v.Helper()
	p := v.start("", fmt.Sprint(childPause, "=", pieces))
	v.reach(p, pieces)
	return p
}

func (v *victim) proceed() {
	v.Helper()
	if err := os.WriteFile(filepath.Join(v.folder, "go"), nil, 0o600); err != nil {
		v.Fatal(err)
	}
}

// A run that is told to stop finishes its running steps, so that none is repeated:
// neither in leaves, lanes, turns nor tool calls.
func TestTerminate(t *testing.T) {
	want := undisturbed(t)
	for _, pieces := range []int{3, 12, 20, 66, 70} {
		t.Run(fmt.Sprint("after ", pieces), func(t *testing.T) {
			t.Parallel()
			v := newVictim(t)
			p := v.pause(pieces)
			if err := p.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond) // it has to hear of it
			v.proceed()
			v.refused(p)
			v.check(want)
			v.compare(v.finish(), want, 0)
		})
	}
}

// lock keeps all other processes from writing.
func (v *victim) lock() (undo func()) {
	v.Helper()
	db, err := sql.Open("sqlite", v.database()+"?_txlock=immediate&_pragma=busy_timeout(60000)")
	if err != nil {
		v.Fatal(err)
	}
	tx, err := db.Begin()
	if err != nil {
		v.Fatal(err)
	}
	return func() {
		if err := errors.Join(tx.Rollback(), db.Close()); err != nil {
			v.Error(err)
		}
	}
}

// fill uses up the disk of the database, which small made.
func (v *victim) fill() (undo func()) { return v.fillUp(smallDisk) }

// fillUp uses up a disk of a size that has the database.
func (v *victim) fillUp(size int) (undo func()) {
	v.Helper()
	name := filepath.Join(filepath.Dir(v.database()), "filling")
	if err := os.WriteFile(name, make([]byte, size+1), 0o600); !errors.Is(err, syscall.ENOSPC) {
		v.Fatalf("the disk is not full: %v", err)
	}
	return func() {
		if err := os.Remove(name); err != nil {
			v.Error(err)
		}
	}
}

const smallDisk = 4 << 20

// small puts the database onto a small disk.
func (v *victim) small() { v.disk(smallDisk) }

// disk puts the database onto a disk of a size.
func (v *victim) disk(size int) {
	v.Helper()
	folder := filepath.Dir(v.database())
	remove := memdir.Disk(v, folder, size)
	v.Cleanup(func() {
		if err := remove(); err != nil {
			v.Error(err)
		}
	})
}

// A run waits for a database that cannot be written for less than the time of Retry.
// After that it ends, and its running steps are lost with its process.
func TestBlocked(t *testing.T) {
	want := undisturbed(t)
	for _, c := range []struct {
		name    string
		prepare func(*victim)
		block   func(*victim) (undo func())
		says    string
	}{
		{"locked", func(*victim) {}, (*victim).lock, "is locked: end the program that holds it, or try again later"},
		{"disk full", (*victim).small, (*victim).fill, "has no space left: free some space on its disk"},
	} {
		t.Run(c.name+" for a moment", func(t *testing.T) {
			t.Parallel()
			v := newVictim(t)
			c.prepare(v)
			p := v.pause(12)
			undo := c.block(v)
			v.proceed()
			time.Sleep(retry / 5)
			undo()
			if !v.end(p) {
				t.Fatal("the process was killed by somebody else")
			}
			v.compare(v.trace(p, 0), want, 0)
		})
		t.Run(c.name+" for long", func(t *testing.T) {
			t.Parallel()
			v := newVictim(t)
			c.prepare(v)
			p := v.pause(12)
			undo := c.block(v)
			v.proceed()
			v.refused(p, v.database(), c.says)
			undo()
			v.check(want)
			v.compare(v.finish(), want, 1)
		})
	}
}

// interrupted is a run whose process was killed about halfway.
func interrupted(t *testing.T) *victim {
	t.Helper()
	v := newVictim(t)
	if v.end(v.start("after work 40")) {
		t.Fatal("the run ended before it was killed")
	}
	return v
}

// idle checks that a process ends with an error and does no work.
func (v *victim) idle(p *process, parts ...string) {
	v.Helper()
	before := v.lines()
	v.refused(p, parts...)
	if after := v.lines(); !maps.Equal(before, after) {
		v.Errorf("work was done: the lines were %v and are %v", before, after)
	}
}

func TestReadOnly(t *testing.T) {
	want := undisturbed(t)
	v := interrupted(t)
	var env []string
	if os.Geteuid() == 0 { // who may write everything
		env = []string{childUser + "=65534"}
		for name, mode := range map[string]os.FileMode{filepath.Dir(v.folder): 0o755, v.folder: 0o755, filepath.Join(v.folder, "lines"): 0o666, filepath.Join(v.folder, "answers"): 0o666, filepath.Join(v.folder, "acks"): 0o666} {
			if err := os.Chmod(name, mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	change := func(folder, file os.FileMode) {
		t.Helper()
		for name, mode := range map[string]os.FileMode{v.database(): file, v.database() + "-wal": file, v.database() + "-shm": file, filepath.Dir(v.database()): folder} {
			if err := os.Chmod(name, mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	change(0o555, 0o444)
	v.idle(v.start("", env...), v.database(), "cannot be written: check the permissions of the file and of its directory")
	change(0o755, 0o644)
	v.check(want)
	v.compare(v.finish(), want, v.kills)
}

func TestCorrupt(t *testing.T) {
	want := undisturbed(t)
	v := interrupted(t)
	v.check(want) // closing it, that empties the log into the file
	whole, err := os.ReadFile(v.database())
	if err != nil {
		t.Fatal(err)
	}
	rubbish := bytes.Repeat([]byte("rubbish "), len(whole)/16)
	if err := os.WriteFile(v.database(), append(whole[:len(whole)-len(rubbish):len(whole)-len(rubbish)], rubbish...), 0o600); err != nil {
		t.Fatal(err)
	}
	v.idle(v.start(""), v.database(), "is damaged: restore a copy")
	for _, log := range []string{"-wal", "-shm"} {
		if err := os.Remove(v.database() + log); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(v.database(), whole, 0o600); err != nil {
		t.Fatal(err)
	}
	v.check(want)
	v.compare(v.finish(), want, v.kills)
}

// Of two processes that resume one run, one does it, and the other reports the holder.
func TestTwoProcesses(t *testing.T) {
	want := undisturbed(t)
	v := interrupted(t)
	first, second := v.start(""), v.start("")
	firstErr, secondErr := first.Wait(), second.Wait()
	winner, loser := first, second
	if firstErr != nil {
		winner, loser = second, first
	}
	if (firstErr == nil) == (secondErr == nil) {
		// The second may have waited until the first was done, and had nothing to do.
		if firstErr != nil || first.out.String() != second.out.String() {
			t.Fatalf("both ended with %v and %v: %s%s", firstErr, secondErr, &first.errs, &second.errs)
		}
	} else if text := loser.errs.String(); !strings.Contains(text, fmt.Sprintf("process %d on", winner.Process.Pid)) {
		t.Errorf("the loser says %q, want the process %d in it", text, winner.Process.Pid)
	}
	v.compare(v.trace(winner, 0), want, v.kills)
}
