package log

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/canon"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/journal/internal/outline"
)

// A Verifier is a [Database] that can check its own structure: pages, indexes and tables, and whether there are rows that belong
// to no run.
type Verifier interface {
	// Verify calls found with a description of each fault, such as "has no index nodes".
	Verify(ctx context.Context, found func(fault string)) error
}

// Check reads the whole journal and calls found for each damaged or missing record. It returns the number of runs and of records.
// It verifies that the checksums of records, questions, outlines and run descriptions match, that no record is missing, that each
// node's ID is the hash of its content, parents and type, and that its parents come before it. The journal may be in use at the
// same time. Check does not cover the spending of accounts, which has no checksum.
func (j *Journal) Check(ctx context.Context, found func(*journal.DamageError)) (runs, records int, err error) {
	c := &checker{Journal: j, found: found}
	if v, ok := j.data.(Verifier); ok {
		err = v.Verify(ctx, func(fault string) { c.report("", fault) })
	}
	if err = c.unreadable(ctx, "", err); err != nil {
		return 0, 0, err
	}
	for r, err := range j.data.Runs(ctx, RunSelection{All: true}) {
		if err == nil {
			err = c.unreadable(ctx, r.ID, c.run(ctx, r))
		} else {
			err = c.unreadable(ctx, "", err)
		}
		if err != nil {
			return c.runs, c.records, err
		}
	}
	return c.runs, c.records, nil
}

// Probe commits an empty transaction and returns the version of the tables. It fails if the database cannot be written, or stays
// locked for longer than Options.Retry.
func (j *Journal) Probe(context.Context) (schema int, err error) {
	return j.opts.Schema, j.out.write(&write{do: func(*transaction) error { return nil }})
}

type checker struct {
	*Journal
	found         func(*journal.DamageError)
	runs, records int
}

func (c *checker) report(run, reason string) {
	c.found(&journal.DamageError{Where: c.data.Name(), Run: run, Reason: reason})
}

// unreadable handles an error: if rows could not be read, it reports damage; any other error is returned.
func (c *checker) unreadable(ctx context.Context, run string, err error) error {
	if err == nil || ctx.Err() != nil || c.data.Passing(err) || errors.Is(err, journal.ErrUnavailable) || errors.Is(err, journal.ErrClosed) {
		return cmp.Or(context.Cause(ctx), c.data.Explain(err))
	}
	c.report(run, "cannot be read: "+strings.Join(strings.Fields(err.Error()), " "))
	return nil
}

// run checks a run from the list of all runs, and all its records.
func (c *checker) run(ctx context.Context, listed *Run) error {
	name := listed.ID
	before, err := c.data.Run(ctx, name)
	if err != nil {
		return err
	}
	if before == nil {
		for r, err := range c.data.Runs(ctx, RunSelection{All: true, Before: listed.Row + 1, Most: 1}) {
			if err == nil && r.Row == listed.Row { // the run was not removed in the meantime
				c.report(name, "is not found by its id")
			}
			return err
		}
		return nil
	}
	if before.Info != nil || before.Rows > 0 {
		c.runs++
	}
	info, err := c.opened(before, true)
	if err != nil {
		c.report(name, errChanged.Error())
	} else {
		if err := c.columns(ctx, before, info); err != nil {
			return err
		}
	}
	if isRemoving(info.Outcome) {
		c.report(name, interrupted)
		return nil
	}
	count, err := c.rowsOf(ctx, before, info)
	c.records += count
	if err != nil {
		return err
	}
	after, err := c.data.Run(ctx, name)
	if err != nil || after == nil || after.Row != before.Row { // the run was removed in the meantime
		return err
	}
	low, high := before.Rows, after.Rows
	if int64(count) < low && after.Tail == before.Tail || int64(count) > high { // a resumed run deletes its old outcome's records
		c.report(name, fmt.Sprintf("is not complete: it has %d rows and wrote %d", count, low))
	}
	return c.beside(ctx, before)
}

// columns checks the fields by which lists select a run. These fields have no checksum.
func (c *checker) columns(ctx context.Context, r *Run, info journal.RunInfo) error {
	if r.Info == nil {
		return nil
	}
	if r.Pipeline != Column(info.Pipeline) || r.Started != millis(info.Started) || r.Ended != millis(info.Ended) {
		c.report(r.ID, "has other columns than facts: lists do not find it by pipeline or time")
	}
	if len(info.Labels) == 0 {
		return nil
	}
	for same, err := range c.data.Runs(ctx, RunSelection{Labels: info.Labels, Before: r.Row + 1, Most: 1}) {
		if err != nil || same.Row == r.Row {
			return err
		}
	}
	c.report(r.ID, "is not found by its labels")
	return nil
}

// rowsOf checks all records of a run and returns their number.
func (c *checker) rowsOf(ctx context.Context, r *Run, info journal.RunInfo) (count int, err error) {
	nodes := map[half]bool{}
	heads := map[dag.ID]bool{}
	for _, id := range info.Heads {
		heads[id] = true
	}
	for _, aside := range []bool{false, true} {
		for row, err := range c.data.Rows(ctx, r.Row, Selection{Aside: aside}) {
			if err != nil {
				return count, err
			}
			if !aside {
				count++
			}
			if err := c.row(row, nodes); err != nil {
				c.found(c.damage(r.ID, row, err).(*journal.DamageError))
			}
			if row.Node != nil {
				nodes[halfOf(id(row.Node))] = true
				delete(heads, id(row.Node))
			}
		}
	}
	for id := range heads {
		c.found(c.damage(r.ID, &Row{Node: id[:]}, errLost).(*journal.DamageError))
	}
	return count, nil
}

// row checks a record. The parents of its node must be among nodes.
func (c *checker) row(row *Row, nodes map[half]bool) error {
	if err := row.check(true); err != nil {
		return err
	}
	h, err := row.open()
	if err != nil || row.Node == nil {
		return err
	}
	if err := row.address(h); err != nil {
		return err
	}
	for p := range ids(row.Parents) {
		if !nodes[halfOf(p)] {
			return fmt.Errorf("has the parent %.12s, which is not before it", p)
		}
	}
	return nil
}

// address checks that the ID of a node is the hash of its content, parents and type.
func (r *Row) address(h head) error {
	text, err := canon.Append(nil, struct {
		Content json.RawMessage `json:"content"`
		Parents []dag.ID        `json:"parents"`
		Type    string          `json:"type"`
	}{h.Record.Content, slices.AppendSeq([]dag.ID{}, ids(r.Parents)), h.Record.Type})
	if err != nil {
		return fmt.Errorf("cannot be read: %w", err)
	}
	if sum := sha256.Sum256(text); sum != id(r.Node) {
		return fmt.Errorf("has the address %.12s, but its content, type and parents give %.12s", id(r.Node), dag.ID(sum))
	}
	return nil
}

// beside checks the data that a run has in addition to its records: its questions and its outline.
func (c *checker) beside(ctx context.Context, r *Run) error {
	for q, err := range c.data.Questions(ctx, QuestionSelection{Run: r.Row}) {
		if err != nil {
			return err
		}
		if _, err := c.asked(q, r.ID); err != nil {
			c.found(err.(*journal.DamageError))
		}
	}
	for _, table := range []Beside{Batches, Receivers} {
		if _, err := notes[json.RawMessage](ctx, c.Journal, c.data, table, r.ID, r.Row); err != nil {
			damage, ok := errors.AsType[*journal.DamageError](err)
			if !ok {
				return err
			}
			c.found(damage)
		}
	}
	store := blockStore{c.data, r.Row}
	tree, err := outline.Open(ctx, store)
	if err == nil && tree.At > 0 {
		err = tree.Check(ctx)
	}
	switch {
	case errors.Is(err, outline.ErrForm):
		c.report(r.ID, "has a damaged outline, which readers make again from the records")
	case errors.Is(err, outline.ErrMoved): // the run has continued in the meantime
	default:
		return err
	}
	return nil
}
