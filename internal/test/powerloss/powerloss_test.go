package powerloss_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/test/memdir"
	"github.com/stonelayer/stone/internal/test/powerloss"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/sqlite"
)

const (
	points   = 1000 // at which power is lost, at least
	resuming = 10   // every how many crashes the runs are resumed to their end
)

func TestPowerLoss(t *testing.T) {
	d := powerloss.NewDisk(nil, memdir.New(t))
	want := recorded(t, d, "FULL")
	if n := d.Moments(); n < points {
		t.Fatalf("the runs change the disk %d times, want %d at least", n, points)
	}
	for _, err := range crashes(t, d, "FULL", d.Moments()/points, want) {
		t.Error(err)
	}
}

// A test that finds no fault here is useless.
func TestNotBlind(t *testing.T) {
	for _, c := range []struct {
		name, level string
		lies        bool
	}{
		{"synchronous=OFF", "OFF", false},
		{"synchronous=NORMAL", "NORMAL", false},
		{"a disk that lies", "FULL", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := powerloss.NewDisk(nil, memdir.New(t))
			d.Lies = c.lies
			recorded(t, d, c.level)
			const every = 16
			found := crashes(t, d, c.level, every, nil)
			if len(found) == 0 {
				t.Fatalf("nothing is wrong after %d crashes", d.Moments()/every)
			}
			t.Logf("%d of %d crashes lose something, such as: %v", len(found), d.Moments()/every, found[0])
		})
	}
}

// crashes cuts the power at regular moments of d, and reports errors. With want it also
// resumes some runs to their end.
func crashes(t *testing.T, d *powerloss.Disk, level string, every int, want map[string]string) (found []error) {
	var mu sync.Mutex
	var group sync.WaitGroup
	moments := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		folder := memdir.New(t)
		group.Go(func() {
			for n := range moments {
				files, notes := d.Crash(n, rand.New(rand.NewPCG(0, uint64(n))))
				c := crash{files: files, notes: notes, level: level, folder: folder}
				err := c.check()
				if err == nil && want != nil && n%resuming == 0 {
					err = c.resume(want)
				}
				if err != nil {
					mu.Lock()
					found = append(found, fmt.Errorf("power lost in operation %d: %w", n, err))
					mu.Unlock()
				}
			}
		})
	}
	for n := 0; n < d.Moments(); n += every {
		moments <- n
	}
	close(moments)
	group.Wait()
	return found
}

// A crash is the rest of a disk, with the notes of that moment.
type crash struct {
	files  map[string][]byte
	notes  []any
	level  string
	folder string
}

// check opens the file like a process after the power has returned.
func (c crash) check() error {
	file, unmount := mount(powerloss.NewDisk(c.files, c.folder), c.level)
	defer unmount()
	db, err := sqlite.Open(file, sqlite.Options{})
	if err != nil {
		return err
	}
	return errors.Join(c.kept(db), sound(file), db.Close())
}

// kept compares the file with the notes: every acknowledged result and end of a run is
// recorded, every started step has an intent, every node can be read.
func (c crash) kept(db *sqlite.DB) error {
	type state struct {
		start, recorded bool
		node            dag.ID
	}
	steps := map[began]state{}
	for _, run := range runs {
		list, err := db.Steps(context.Background(), run)
		if err != nil {
			return err
		}
		for _, s := range list {
			steps[began{run, s.Kind + " " + s.Path}] = state{s.Attempts > 0, s.Recorded, s.Node}
		}
		if _, err := db.DAG(context.Background(), run); err != nil {
			return err
		}
	}
	done := map[string]bool{}
	for _, note := range c.notes {
		switch n := note.(type) {
		case resumed:
			delete(done, n.run)
		case ended:
			done[n.run] = true
		case began:
			if !steps[n].start {
				return fmt.Errorf("the file does not know of the work of %v", n)
			}
		case acked:
			if s := steps[began{n.run, n.step}]; !s.recorded || s.node != n.node {
				return fmt.Errorf("an acknowledged result is lost: of %v the file has %+v", n, s)
			}
		}
	}
	for run := range done {
		info, err := db.Find(context.Background(), run)
		if err != nil {
			return err
		}
		if info.State != journal.Done {
			return fmt.Errorf("the end of run %s is lost: it is %s", run, info.State)
		}
	}
	return nil
}

// sound asks SQLite whether the file is intact.
func sound(file string) error {
	db, err := sql.Open("sqlite", "file://"+file)
	if err != nil {
		return err
	}
	defer db.Close()
	var answer string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&answer); err != nil {
		return err
	}
	if answer != "ok" {
		return errors.New(answer)
	}
	return nil
}

// resume continues to the end, which must be the same as without a crash, and loses power
// once more on the way.
func (c crash) resume(want map[string]string) error {
	done := map[began]bool{}
	for _, note := range c.notes {
		if n, ok := note.(acked); ok {
			done[began{n.run, n.step}] = true
		}
	}
	d := powerloss.NewDisk(c.files, c.folder)
	for _, note := range c.notes {
		d.Note(note)
	}
	file, unmount := mount(d, c.level)
	defer unmount()
	again := make(chan began, 1)
	ids, err := work(file, func(note any) {
		d.Note(note)
		if n, ok := note.(began); ok && done[n] {
			select {
			case again <- n:
			default: // one is enough
			}
		}
	})
	if err != nil {
		return err
	}
	if len(again) > 0 {
		return fmt.Errorf("%v was acknowledged and is done again", <-again)
	}
	for _, run := range runs {
		if ids[run] != want[run] {
			return fmt.Errorf("run %s has the nodes\n%swant\n%s", run, ids[run], want[run])
		}
	}
	chance := rand.New(rand.NewPCG(uint64(len(c.notes)), uint64(d.Moments())))
	n := chance.IntN(d.Moments())
	c.files, c.notes = d.Crash(n, chance)
	if err := c.check(); err != nil {
		return fmt.Errorf("lost again in operation %d after it: %w", n, err)
	}
	return nil
}
