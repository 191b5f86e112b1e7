package killtest

import (
	"bytes"
	"database/sql"
	"fmt"
	"maps"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

// until waits until the run has done so many pieces of work.
func (v *victim) until(pieces int) {
	v.Helper()
	for deadline := time.Now().Add(20 * time.Second); len(v.lines()) < pieces; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			v.Fatalf("the run has not done %d pieces of work after 20 s", pieces)
		}
	}
}

// A run that is told to end lets what is under way come to its end, so that nothing
// is repeated: neither in leaves, lanes, turns nor tool calls.
func TestTerminate(t *testing.T) {
	want := undisturbed(t)
	for _, pieces := range []int{3, 12, 20, 66, 70} {
		t.Run(fmt.Sprint("after ", pieces), func(t *testing.T) {
			t.Parallel()
			v := newVictim(t)
			p := v.start("")
			v.until(pieces)
			if err := p.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			v.refused(p)
			v.check(want)
			v.compare(v.finish(), want, 0)
		})
	}
}

// lock keeps everybody else from writing.
func (v *victim) lock() (unlock func()) {
	v.Helper()
	db, err := sql.Open("sqlite", v.database()+"?_txlock=immediate&_pragma=busy_timeout(5000)")
	if err != nil {
		v.Fatal(err)
	}
	tx, err := db.Begin()
	if err != nil {
		v.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(); err != nil {
			v.Error(err)
		}
		if err := db.Close(); err != nil {
			v.Error(err)
		}
	}
}

func TestLocked(t *testing.T) {
	want := undisturbed(t)
	t.Run("for a moment", func(t *testing.T) {
		t.Parallel()
		v := newVictim(t)
		p := v.start("")
		v.until(15)
		unlock := v.lock()
		time.Sleep(retry / 5)
		unlock()
		if !v.end(p) {
			t.Fatal("the process was killed by somebody else")
		}
		v.compare(v.trace(p, 0), want, 0)
	})
	t.Run("for long", func(t *testing.T) {
		t.Parallel()
		v := newVictim(t)
		p := v.start("")
		v.until(15)
		unlock := v.lock()
		v.refused(p, v.database(), "is locked: end the program that holds it, or try again later")
		unlock()
		v.check(want)
		v.compare(v.finish(), want, 1) // what was under way is lost with its process
	})
}

// interrupted is a run whose process was killed about half-way.
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
		parent := v.folder[:strings.LastIndexByte(v.folder, '/')]
		if err := os.Chmod(parent, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	change := func(folder, file os.FileMode) {
		t.Helper()
		for name, mode := range map[string]os.FileMode{v.database(): file, v.database() + "-wal": file, v.folder: folder} {
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

// Two processes that resume one run: one does it, the other says who has it.
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
	} else if text := loser.errs.String(); !strings.Contains(text, fmt.Sprintf("/%d/", winner.Process.Pid)) {
		t.Errorf("the loser says %q, want the process %d in it", text, winner.Process.Pid)
	}
	v.compare(v.trace(winner, 0), want, v.kills)
}
