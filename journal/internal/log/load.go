package log

import (
	"context"
	"fmt"
	"maps"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
)

// loading reads the records of a run while the run already continues: the run needs
// nearly all of them, in about the same order, and reading them one by one costs several
// times as much. A caller that needs a step waits until it is found, or all is read.
type loading struct {
	stop context.CancelFunc
	over bool // err is final; under the lock of the run
	err  error
}

// batch is how many rows are read before waiting callers are told.
const batch = 64

// startLoading is called with the lock of the run.
func (j *Journal) startLoading(r *run) {
	ctx, stop := context.WithCancel(background)
	l := &loading{stop: stop}
	r.loading = l
	clear(r.attempts)
	maps.DeleteFunc(r.known, func(_ dag.ID, k *known) bool { return k.pending == nil })
	r.aside.stale.Store(!r.fresh)
	if r.fresh {
		l.over = true
		stop()
		return
	}
	go func() {
		defer stop()
		err := j.load(ctx, r)
		r.mu.Lock()
		defer r.mu.Unlock()
		l.over, l.err = true, err
		if err != nil && r.loading == l {
			r.ready = false // the next caller tries again
		}
		r.news.Broadcast()
	}()
}

// stopLoading stops the loading and returns when it has ended.
func (r *run) stopLoading() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.loading == nil {
		return
	}
	r.loading.stop()
	for !r.loading.over {
		r.news.Wait()
	}
}

// loaded waits until all records of the run are read.
func (r *run) loaded() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !r.loading.over {
		r.news.Wait()
	}
	return r.loading.err
}

// met adds a row to the known steps.
func (r *run) met(row *Row) {
	switch digest := id(row.Digest); {
	case row.isResult() && r.known[digest] == nil:
		r.known[digest] = &known{seq: row.Seq, row: row}
		delete(r.attempts, digest)
	case row.isIntent():
		for digest := range ids(row.Content) {
			r.attempts[digest]++
		}
	}
}

// load reads a run. It checks every row, and none may be missing.
func (j *Journal) load(ctx context.Context, r *run) error {
	before, err := j.data.Run(ctx, r.id)
	if err != nil || before == nil {
		return j.data.Explain(err)
	}
	var found []*Row
	tell := func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, row := range found {
			r.met(row)
		}
		found = found[:0]
		r.news.Broadcast()
	}
	nodes := map[dag.ID]bool{}
	var count, last int64
	for row, err := range j.data.Rows(ctx, before.Row, Selection{}) {
		if err != nil {
			return j.data.Explain(err)
		}
		if err := row.check(true); err != nil {
			return j.damage(r.id, row, err)
		}
		if count, last = count+1, row.Seq; row.Node != nil {
			nodes[id(row.Node)] = true
		}
		if found = append(found, row); len(found) == batch {
			tell()
		}
	}
	tell()
	after, err := j.data.Run(ctx, r.id) // a result of this Journal may have been written meanwhile
	if err != nil || after == nil {
		return j.data.Explain(err)
	}
	if count < before.Rows || count > after.Rows {
		why := fmt.Errorf("is not complete: it has %d rows and wrote %d", count, before.Rows)
		return &journal.DamageError{Where: j.data.Name(), Run: r.id, Reason: why.Error()}
	}
	j.out.using.Lock()
	defer j.out.using.Unlock()
	maps.Copy(r.nodes, nodes)
	if r.next = max(r.next, last); r.rows < 0 {
		r.rows = after.Rows
	}
	return nil
}
