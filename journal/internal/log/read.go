package log

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/record"
	"github.com/stonelayer/stone/journal"
	"github.com/stonelayer/stone/step"
)

// rows reads and checks the selected records of a run, and calls f with each.
func (j *Journal) rows(ctx context.Context, run string, s Selection, f func(*Row, head) error) error {
	r, err := j.data.Run(ctx, run)
	if err != nil || r == nil {
		return j.data.Explain(err)
	}
	return j.recordsOf(ctx, j.data, run, r.Row, s, f)
}

// recordsOf is like rows, but for a run whose number is known.
func (j *Journal) recordsOf(ctx context.Context, from Reader, run string, number int64, s Selection, f func(*Row, head) error) error {
	for row, err := range from.Rows(ctx, number, s) {
		if err != nil {
			return j.data.Explain(err)
		}
		if err := row.check(!s.Heads || row.isIntent()); err != nil {
			return j.damage(run, row, err)
		}
		h, err := row.open()
		if err != nil {
			return j.damage(run, row, err)
		}
		if err := f(row, h); err != nil {
			return err
		}
	}
	return nil
}

// Steps implements [journal.Journal].
func (j *Journal) Steps(ctx context.Context, run string) ([]journal.Step, error) {
	var steps []journal.Step
	index := map[dag.ID]int{}
	step := func(digest dag.ID, path, kind, name string) *journal.Step {
		i, old := index[digest]
		if !old {
			i = len(steps)
			index[digest], steps = i, append(steps, journal.Step{Path: path, Kind: kind, Name: name})
		}
		return &steps[i]
	}
	err := j.rows(ctx, run, Selection{Steps: true, Heads: true}, func(row *Row, h head) error { return j.fold(run, row, h, step) })
	if err != nil {
		return nil, err
	}
	return steps, nil
}

// fold adds the information in a row to the steps that the row is about. It skips steps for which the function step returns nil.
func (j *Journal) fold(run string, row *Row, h head, step func(digest dag.ID, path, kind, name string) *journal.Step) error {
	at := time.UnixMilli(h.At)
	for _, i := range h.Started {
		s := step(i.digest, i.Path, i.Kind, i.Name)
		if s == nil {
			continue
		}
		var declared budget.Amount
		if i.Declared != nil {
			declared = *i.Declared
		}
		s.Started = at
		s.Start(declared)
	}
	if h.Step != "" {
		digest, err := dag.ParseID(h.Step)
		if err != nil {
			return j.damage(run, row, err)
		}
		if s := step(digest, h.Path, h.Kind, h.Name); s != nil {
			s.Failures++
			s.Settle(h.Usage)
		}
	}
	if row.isResult() {
		if s := step(id(row.Digest), row.Path, h.Kind, h.Name); s != nil {
			end(s, row, h, at)
		}
	}
	return nil
}

// end completes a step with its result. The result's path may differ from the path of an earlier attempt: when a body is repeated
// in a different order, equal steps are numbered differently.
func end(s *journal.Step, row *Row, h head, at time.Time) {
	rec := h.Record
	s.Path, s.Recorded, s.From, s.Time, s.Ended, s.Type, s.Node, s.Sum = row.Path, true, h.From, rec.Time, at, rec.Type, id(row.Node), rec.Sum
	if rec.Failure != nil {
		s.Failure, s.Reason = string(rec.Failure.Kind), rec.Failure.Reason
	}
	if s.Settle(h.Usage); s.Attempts == 0 {
		s.Started = at
	}
}

// Record implements [journal.Journal].
func (j *Journal) Record(ctx context.Context, run, path, kind string) (rec step.Record, err error) {
	found := false
	err = j.rows(ctx, run, Selection{Path: path}, func(_ *Row, h head) error {
		if h.Kind == kind { // if there are several, the last one counts
			rec, found = *h.Record, true
		}
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("run %q, %s %s: %w", run, kind, path, journal.ErrNoStep)
	}
	return rec, err
}

// DAG implements [journal.Journal].
func (j *Journal) DAG(ctx context.Context, run string) (dag.DAG, error) {
	r, err := j.data.Run(ctx, run)
	if err != nil || r == nil {
		return dag.DAG{}, j.data.Explain(err)
	}
	info, err := j.opened(r, true)
	if err != nil {
		return dag.DAG{}, err
	}
	in, out := io.Pipe()
	last := make(chan *Row, 1) // receives the last row that was read
	go func() {
		at, err := j.writeNodes(ctx, out, run)
		last <- at
		out.CloseWithError(err)
	}()
	d, err := dag.Read(in)
	in.Close()
	at := <-last
	var bad *dag.FormatError
	if errors.As(err, &bad) {
		return dag.DAG{}, j.damage(run, at, errors.New("is refused: "+bad.Reason))
	}
	if err != nil {
		return dag.DAG{}, j.data.Explain(errors.Unwrap(err))
	}
	return j.reached(run, d, info.Heads)
}

// reached returns a DAG with the run's nodes that belong to its last DAG, given the IDs of its heads.
func (j *Journal) reached(run string, d dag.DAG, ids []dag.ID) (dag.DAG, error) {
	if len(ids) == 0 {
		return d, nil
	}
	places := make(map[dag.ID]int, len(ids))
	for i, id := range ids {
		places[id] = i
	}
	heads := make([]*dag.Node, len(ids))
	for n := range d.Nodes() {
		if i, ok := places[n.ID()]; ok {
			heads[i] = n
		}
	}
	if i := slices.Index(heads, nil); i >= 0 {
		return dag.DAG{}, j.damage(run, &Row{Node: ids[i][:]}, errLost)
	}
	return record.Reached(heads)
}

// writeNodes writes the nodes of a run in the format that dag.Read reads. It returns the last row it has tried to write. If the
// reader refuses a node, this is the row of that node, because a pipe has no buffer.
func (j *Journal) writeNodes(ctx context.Context, w io.Writer, run string) (at *Row, err error) {
	err = j.rows(ctx, run, Selection{Nodes: true}, func(row *Row, h head) error {
		at = row
		parents := slices.AppendSeq([]dag.ID{}, ids(row.Parents))
		line, err := json.Marshal(struct {
			ID      dag.ID            `json:"id"`
			Type    string            `json:"type"`
			Parents []dag.ID          `json:"parents"`
			Content json.RawMessage   `json:"content"`
			Meta    map[string]string `json:"meta,omitempty"`
			Time    time.Time         `json:"time,omitzero"`
		}{id(row.Node), h.Record.Type, parents, h.Record.Content, h.Record.Meta, h.Record.Time})
		if err != nil {
			return j.damage(run, row, fmt.Errorf("cannot be read: %w", err))
		}
		_, err = w.Write(append(line, '\n'))
		return err
	})
	return at, err
}
