package log

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/journal"
)

// existing returns the row of a run. The error is journal.ErrNoRun if there is no such run.
func (j *Journal) existing(ctx context.Context, id string) (*Run, error) {
	found, err := j.data.Named(ctx, id, 1) // of all IDs with this prefix, the ID itself sorts first
	if err != nil {
		return nil, j.data.Explain(err)
	}
	if len(found) == 0 || found[0].ID != id {
		return nil, noRun(id)
	}
	return found[0], nil
}

func noRun(id string) error { return fmt.Errorf("run %q: %w", id, journal.ErrNoRun) }

// Node implements [journal.Journal].
func (j *Journal) Node(ctx context.Context, run, prefix string) (journal.NodeInfo, error) {
	none := fmt.Errorf("run %q, node %.12s: %w", run, prefix, journal.ErrNoNode)
	first, err := padded(prefix, "0")
	last, failed := padded(prefix, "f")
	if err != nil || failed != nil || prefix == "" {
		return journal.NodeInfo{}, none
	}
	const most = 6
	var found []journal.NodeInfo
	err = j.rows(ctx, run, Selection{Node: &[2]dag.ID{first, last}}, func(row *Row, h head) error {
		node := id(row.Node)
		if slices.ContainsFunc(found, func(n journal.NodeInfo) bool { return n.ID == node }) {
			return nil
		}
		found = append(found, infoOf(row, h))
		if len(found) == most {
			return errEnough
		}
		return nil
	})
	switch {
	case err != nil && !errors.Is(err, errEnough):
		return journal.NodeInfo{}, err
	case len(found) == 0:
		return journal.NodeInfo{}, none
	case len(found) > 1:
		several := &journal.AmbiguousError{Prefix: prefix, Run: run}
		for _, n := range found {
			several.Found = append(several.Found, n.ID.String())
		}
		return journal.NodeInfo{}, several
	}
	return found[0], nil
}

// padded returns the ID that begins with prefix and is filled up with digit.
func padded(prefix, digit string) (dag.ID, error) {
	return dag.ParseID(prefix + strings.Repeat(digit, max(2*len(dag.ID{})-len(prefix), 0)))
}

var errEnough = errors.New("enough rows were read")

// Follow yields several rows for a single record if several steps started together. A position therefore consists of a record's
// number and the index of a row within that record.
const (
	placeBits = 16
	maxPlaces = 1 << placeBits // maximum number of steps in a record
)

// follower reads the rows of a run after a position.
type follower struct {
	*Journal
	id    string
	run   int64     // number of the run
	after int64     // position of the last yielded row
	whole int64     // number of the last record that was yielded completely
	seen  lease     // lease of the run when it was last read
	since time.Time // when the lease last changed
}

// Follow implements [journal.Journal].
func (j *Journal) Follow(ctx context.Context, run string, after int64) iter.Seq2[journal.Row, error] {
	return func(yield func(journal.Row, error) bool) {
		fail := func(err error) { yield(journal.Row{}, cmp.Or(context.Cause(ctx), err)) }
		r, err := j.existing(ctx, run)
		if err != nil {
			fail(err)
			return
		}
		f := &follower{Journal: j, id: run, run: r.Row, after: max(after, 0)}
		for left := false; ; {
			news := j.out.news() // called before reading, so that no commit is missed
			rows, err := f.read(ctx)
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
			switch {
			case err != nil:
			case len(rows) > 0:
				left = false
			case left:
				return
			default:
				if left, err = f.left(ctx); err == nil && !left {
					err = f.await(ctx, news)
				}
			}
			if err != nil {
				fail(err)
				return
			}
		}
	}
}

// Changes implements [journal.Journal].
func (j *Journal) Changes(ctx context.Context) func(yield func() bool) {
	return func(yield func() bool) {
		for err := context.Cause(ctx); err == nil; {
			news := j.out.news() // called before the caller reads, so that no commit is missed
			if !yield() {
				return
			}
			err = j.await(ctx, news)
		}
	}
}

// Last implements [journal.Journal]. It reads only a few records, because it starts at the number of records, which is never
// higher than the newest record's number.
func (j *Journal) Last(ctx context.Context, run string) (int64, error) {
	r, err := j.existing(ctx, run)
	if err != nil {
		return 0, err
	}
	f := &follower{Journal: j, id: run, run: r.Row, whole: max(r.Rows-1, 0), after: max(r.Rows<<placeBits-1, 0)}
	for {
		rows, err := f.read(ctx)
		if err != nil || len(rows) == 0 {
			return f.after, err
		}
		f.after = rows[len(rows)-1].Seq
	}
}

// read returns the next rows. A whole batch is read before its first row is yielded, so that a slow caller does not keep a
// connection.
func (f *follower) read(ctx context.Context) (rows []journal.Row, err error) {
	const most = 256 // records
	s := Selection{After: max(f.after>>placeBits-1, f.whole), Steps: true, Heads: true, Most: most}
	err = f.recordsOf(ctx, f.data, f.id, f.run, s, func(record *Row, h head) error {
		for place, row := range followed(record, h) {
			if row.Seq = record.Seq<<placeBits | int64(place); row.Seq > f.after {
				rows = append(rows, row)
			}
		}
		f.whole = record.Seq
		return nil
	})
	return rows, err
}

// followed returns the rows that Follow yields for a record.
func followed(record *Row, h head) []journal.Row {
	at := time.UnixMilli(h.At)
	if h.Step == "" && !record.isResult() {
		rows := make([]journal.Row, 0, len(h.Started))
		for _, i := range h.Started {
			rows = append(rows, journal.Row{Path: i.Path, Kind: i.Kind, Name: i.Name, Time: at})
		}
		return rows
	}
	row := journal.Row{
		Path: cmp.Or(h.Path, record.Path), Kind: h.Kind, Name: h.Name, Time: at,
		Ended: true, From: h.From, Type: h.Record.Type, Node: id(record.Node), Usage: h.Usage,
	}
	if failure := h.Record.Failure; failure != nil {
		row.Failure, row.Reason = string(failure.Kind), failure.Reason
	}
	return []journal.Row{row}
}

// left reports whether the run no longer has a holder. As in Acquire, an owner in another process counts as gone once it has been
// silent for as long as its lease is valid.
func (f *follower) left(ctx context.Context) (bool, error) {
	row, now, err := f.lease(ctx, f.data, f.id)
	if err != nil {
		return false, f.data.Explain(err)
	}
	if row == nil || row.Row != f.run { // the run was removed, and may have been replaced by a run with the same ID
		return false, noRun(f.id)
	}
	if now != f.seen {
		f.seen, f.since = now, time.Now()
	}
	if now.free() || now.owner == f.owner {
		return now.free(), nil
	}
	return !lives(now.owner) || time.Since(f.since) > now.patience(), nil
}

// await waits until this Journal has committed, or another process may have. The first call starts listening for commits of other
// processes.
func (j *Journal) await(ctx context.Context, news <-chan struct{}) error {
	j.listening.Do(func() { j.data.Listen(j.out.tell) })
	timer := time.NewTimer(j.opts.Poll + rand.N(j.opts.Poll/8+1)) // random, so that processes do not poll in step
	defer timer.Stop()
	select {
	case <-news:
	case <-timer.C:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
