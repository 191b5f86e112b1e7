package journaltest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
)

// TestReaders reads a large, unfinished run with 32 concurrent readers and with every method that reads. No reader may have to
// wait for something that another reader holds, because then a store with few connections would deadlock. The smaller the store's
// pool, the sooner this test detects it.
func TestReaders(t *testing.T, store func() (open func() journal.Journal)) {
	open := store()
	j := tested{open(), open}
	const lanes = 1500 // this results in more than 4,096 records
	held, reached := make(chan struct{}), make(chan struct{})
	var once sync.Once
	ended := make(chan error, 1)
	go func() {
		_, err := run(t, j, wide(lanes, func(i int) bool {
			if i == lanes-1 {
				once.Do(func() { close(reached) })
				<-held
			}
			return false
		}), journal.Options{})
		ended <- err
	}()
	select {
	case <-reached:
	case err := <-ended:
		t.Fatalf("the run ended: %v", err)
	}
	_, err := j.Ask(t.Context(), journal.Question{Run: "run", Path: "p", Name: "p", Asked: moment})
	must(t, err)
	must(t, err)

	other := j.open()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // only a deadlock takes that long, even if other tests are running
	defer cancel()
	var readers sync.WaitGroup
	for i := range 32 {
		readers.Go(func() {
			for k := range 4 {
				read := reading[(i+4*k)%len(reading)]
				if err := read.do(ctx, other); err != nil {
					t.Errorf("%s: %v", read.name, err)
				}
			}
		})
	}
	readers.Wait()
	close(held)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// reading contains every method of a journal that reads.
var reading = []struct {
	name string
	do   func(context.Context, journal.Journal) error
}{
	{"Outline", func(ctx context.Context, j journal.Journal) error {
		o, err := j.Outline(ctx, "run")
		if err != nil {
			return err
		}
		l, err := o.Level(ctx, "all/each", journal.Page{Limit: 1000})
		if err == nil && len(l.Branches) != 1000 {
			err = fmt.Errorf("%d branches", len(l.Branches))
		}
		if err == nil {
			_, err = o.Places(ctx)
		}
		return err
	}},
	{"Steps", func(ctx context.Context, j journal.Journal) error {
		steps, err := j.Steps(ctx, "run")
		if err == nil && len(steps) < 2900 {
			err = fmt.Errorf("%d steps", len(steps))
		}
		return err
	}},
	{"Record", func(ctx context.Context, j journal.Journal) error {
		if _, err := j.Record(ctx, "run", "all/each[7]/work", "leaf"); !errors.Is(err, journal.ErrNoStep) { // the step may not be recorded yet
			return err
		}
		return nil
	}},
	{"DAG", func(ctx context.Context, j journal.Journal) error {
		d, err := j.DAG(ctx, "run")
		if err == nil && d.Len() < 1400 {
			err = fmt.Errorf("%d nodes", d.Len())
		}
		return err
	}},
	{"Follow", func(ctx context.Context, j journal.Journal) error {
		rows := 0
		for _, err := range j.Follow(ctx, "run", 0) {
			if rows++; err != nil || rows == 2900 {
				return err
			}
			if rows == 300 { // reads with another method while following
				if _, err := j.Find(ctx, "run"); err != nil {
					return err
				}
			}
		}
		return fmt.Errorf("%d rows", rows)
	}},
	{"Changes", func(ctx context.Context, j journal.Journal) error {
		for range j.Changes(ctx) {
			_, err := j.Find(ctx, "run")
			return err
		}
		return ctx.Err()
	}},
	{"Last", func(ctx context.Context, j journal.Journal) error { _, err := j.Last(ctx, "run"); return err }},
	{"Node", func(ctx context.Context, j journal.Journal) error {
		if _, err := j.Node(ctx, "run", dag.ID{7}.String()); !errors.Is(err, journal.ErrNoNode) {
			return fmt.Errorf("unknown node: %v", err)
		}
		return nil
	}},
	{"Find", func(ctx context.Context, j journal.Journal) error { _, err := j.Find(ctx, "ru"); return err }},
	{"Runs", func(ctx context.Context, j journal.Journal) error {
		found, err := j.Runs(ctx, journal.Query{})
		if err == nil && len(found) != 1 {
			err = fmt.Errorf("%d runs", len(found))
		}
		return err
	}},
	{"Resumable", func(ctx context.Context, j journal.Journal) error { _, err := journal.Resumable(ctx, j); return err }},
	{"OpenQuestions", func(ctx context.Context, j journal.Journal) error {
		_, err := openQuestions(ctx, j)
		return err
	}},
	{"Questions", func(ctx context.Context, j journal.Journal) error { _, err := j.Questions(ctx, "run"); return err }},
}

// sameOneByOne compares the methods that yield the parts of a run one at a time with those that return all of them.
func sameOneByOne(t *testing.T, j journal.Journal, run string) {
	t.Helper()
	want, err := j.Steps(t.Context(), run)
	must(t, err)
	var got []journal.Step
	for s, err := range j.EachStep(t.Context(), run) {
		must(t, err)
		if s.Recorded {
			rec, err := j.Record(t.Context(), run, s.Path, s.Kind)
			if must(t, err); rec.Sum == s.Sum && !maps.Equal(rec.Meta, s.Meta) {
				t.Errorf("step %s has the meta %v, want %v", s.Path, s.Meta, rec.Meta)
			}
		}
		s.Meta = nil
		got = append(got, s)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("steps one by one (-want +got):\n%s", diff)
	}
	d, err := j.DAG(t.Context(), run)
	must(t, err)
	nodes := map[dag.ID]journal.NodeInfo{}
	for n, err := range j.EachNode(t.Context(), run) {
		must(t, err)
		for _, p := range n.Parents {
			if _, before := nodes[p]; !before {
				t.Errorf("node %.12s comes before its parent", n.ID)
			}
		}
		nodes[n.ID] = n
	}
	for n := range journal.NodesOf(d, nil) {
		if diff := cmp.Diff(n, nodes[n.ID], cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("node %.12s (-want +got):\n%s", n.ID, diff)
		}
	}
	if len(nodes) != d.Len() {
		t.Errorf("%d nodes one by one, want %d", len(nodes), d.Len())
	}
}
