package log

import (
	"bytes"
	"context"
	"fmt"

	"github.com/stonelayer/stone/journal"
)

// isCompressed ends the outcome of a run that Compress has compressed. A run that is resumed gets another outcome.
const isCompressed = `,"compressed":true}`

// Bounds of the records that a transaction of Compress changes, since other runs wait for it.
var (
	mostRows  = 1000
	mostBytes = 4 << 20 // of contents; the last one may exceed it
)

// Compress compresses the contents of runs that a query selects, that are done, failed or canceled, and that it has not
// compressed before, the newest first. It calls each with the bytes that the contents of a run had in the database, and
// have now. A content stays as it is if compression saves less than an eighth. Readers see no difference. The records of
// a run are changed in several transactions; when Compress is interrupted, a later one does the rest. It holds no run: it
// leaves one that is resumed or removed meanwhile.
func (j *Journal) Compress(ctx context.Context, q journal.Query, each func(run string, before, after int64)) error {
	var p packer
	for r, err := range j.data.Runs(ctx, selected(q)) {
		if err != nil {
			return j.data.Explain(err)
		}
		ended := isOver(journal.State(r.State)) || r.State == string(journal.Canceled)
		if !ended || bytes.HasSuffix(r.Outcome, []byte(isCompressed)) {
			continue
		}
		info, err := j.opened(r, false)
		if err != nil || isRemoving(info.Outcome) || !q.Selects(info) {
			continue
		}
		c := compressing{Journal: j, packer: &p, run: r}
		if err := c.all(ctx); err != nil {
			return j.data.Explain(err)
		}
		if !c.left {
			each(r.ID, c.before, c.after)
		}
	}
	return nil
}

// compressing is the state of compressing a run.
type compressing struct {
	*Journal
	packer      *packer
	run         *Run   // as it was listed
	rows        []*Row // to be written together
	first, last int    // places of those that have changed, and one more
	left        bool   // the run was resumed or removed meanwhile

	before, after int64 // bytes of contents
}

func (c *compressing) all(ctx context.Context) error {
	size := 0
	for row, err := range c.data.Rows(ctx, c.run.Row, Selection{}) {
		if err != nil {
			return err
		}
		size += len(row.Content)
		if err := c.add(row); err != nil {
			return err
		}
		if len(c.rows) < mostRows && size < mostBytes {
			continue
		}
		if err := c.write(false); err != nil || c.left {
			return err
		}
		size = 0
	}
	return c.write(true)
}

// add packs a row. Rows that are packed already, and damaged ones, stay as they are.
func (c *compressing) add(row *Row) error {
	c.rows = append(c.rows, row)
	c.before += int64(len(row.Content))
	if !row.isIntent() && row.sealed(true) {
		short, err := c.packer.pack(row.Content)
		if err != nil {
			return err
		}
		if short != nil {
			if row.Content = short; c.last == 0 {
				c.first = len(c.rows) - 1
			}
			c.last = len(c.rows)
		}
	}
	c.after += int64(len(row.Content))
	return nil
}

// write replaces rows, unless the run has another outcome now: until then, nothing else changes them. They are removed and
// inserted again, since SQLite joins the pages of shorter rows only when two thirds of them are empty.
func (c *compressing) write(end bool) error {
	rows := c.rows[c.first:c.last]
	c.rows, c.first, c.last = c.rows[:0:0], 0, 0
	if len(rows) == 0 && !end {
		return nil
	}
	return c.out.write(&write{also: c.run.ID, do: func(t *transaction) error {
		now, err := t.Run(background, c.run.ID)
		if err != nil {
			return err
		}
		if c.left = now == nil || now.Row != c.run.Row || !bytes.Equal(now.Outcome, c.run.Outcome); c.left {
			return nil
		}
		if len(rows) > 0 {
			n, err := t.Delete(now.Row, rows[0].Seq, rows[len(rows)-1].Seq)
			if err == nil && n != int64(len(rows)) {
				err = fmt.Errorf("run %q in %s has other records than were read: compress it again", now.ID, t.j.data.Name())
			}
			if err == nil {
				err = t.Append(rows)
			}
			if err != nil {
				return err
			}
		}
		if !end {
			return nil
		}
		now.Outcome = append(bytes.TrimSuffix(now.Outcome, []byte("}")), isCompressed...)
		now.seal()
		return t.Put(now)
	}})
}
