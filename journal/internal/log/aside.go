package log

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// A process that was suspended or cut off from the database may lose its run while a step is running. It can no longer write
// records for the run, but the step's result has been paid for. So it puts the result aside, in separate rows, and increments the
// run's beat. The changed beat tells the new holder to look for results put aside before it runs a step.

// putAside puts aside a result that this Journal can no longer record, and returns the reason, why. If several results of a step
// are put aside, the first one counts. Failures are not put aside. The write is retried as long as for other results, because the
// result may have been paid for.
func (j *Journal) putAside(r *run, result *result, why error) error {
	if result.failed {
		return why
	}
	err := j.out.write(j.asideWrite(r, result))
	if err != nil && !errors.Is(why, err) {
		return fmt.Errorf("%w; the result of %s is lost: %w", why, result.Path, err)
	}
	return why
}

func (j *Journal) asideWrite(r *run, result *result) *write {
	return &write{also: r.id, stays: true, paid: true, do: func(t *transaction) error {
		run, err := t.Run(background, r.id)
		if err != nil || run == nil {
			return err
		}
		for row, err := range t.Rows(background, run.Row, Selection{Path: result.Path}) {
			if err != nil || id(row.Digest) == id(result.Digest) {
				return err
			}
		}
		last := int64(Aside)
		for row, err := range t.Rows(background, run.Row, Selection{Aside: true, Heads: true}) {
			if err != nil {
				return err
			}
			last = row.Seq
		}
		h, err := result.open()
		if err != nil {
			return refused{err}
		}
		row, err := detached(result.Row, h)
		if err != nil {
			return refused{err}
		}
		row.Run, row.Seq = run.Row, last+1
		if err := t.Append([]*Row{row}); err != nil {
			return err
		}
		return t.Advance([]*Beat{{Run: run.Row, Owner: run.Owner, Rows: -1}})
	}}
}

// aside holds the results put aside for a run.
type aside struct {
	stale atomic.Bool // the database may contain results that are not in found
	mu    sync.Mutex
	found map[dag.ID]step.Record
}

// fromAside looks for a result put aside for the step. It records and returns that result, or returns a zero Record if there is
// none. It ignores damaged results.
func (j *Journal) fromAside(ctx context.Context, r *run, key step.Key) (step.Record, error) {
	rec, ok, err := j.lookAside(r, key.Digest)
	if !ok || err != nil {
		return step.Record{}, err
	}
	own, err := newResult(ctx, key, rec, "", j.now())
	if err != nil {
		return step.Record{}, err
	}
	return j.keep(ctx, r, key, own, rec, false)
}

func (j *Journal) lookAside(r *run, digest dag.ID) (rec step.Record, ok bool, err error) {
	a := &r.aside
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stale.Swap(false) {
		found := map[dag.ID]step.Record{}
		err := j.rows(background, r.id, Selection{Aside: true}, func(_ *Row, h head) error {
			digest, err := dag.ParseID(h.Step)
			if _, second := found[digest]; err == nil && !second {
				found[digest] = *h.Record
			}
			return nil
		})
		if err != nil && !errors.As(err, new(*journal.DamageError)) {
			a.stale.Store(true)
			return rec, false, err
		}
		a.found = found
	}
	rec, ok = a.found[digest]
	return rec, ok, nil
}

// clearAside removes the results put aside for a run.
func (t *transaction) clearAside(row int64) error {
	_, err := t.Delete(row, Aside, 2*Aside-1)
	return err
}
