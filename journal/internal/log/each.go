package log

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/record"
	"github.com/stonelayer/stone/journal"
)

// Small is the maximum number of rows in a run that is read all at once; the rows of larger runs are read in two passes.
var Small int64 = 10_000

// EachStep implements [journal.Journal]. Steps are yielded in the order of their first rows. A step's other rows are located
// beforehand, because a step may end long after it started.
func (j *Journal) EachStep(ctx context.Context, run string) iter.Seq2[journal.Step, error] {
	return func(yield func(journal.Step, error) bool) {
		r, err := j.data.Run(ctx, run)
		if err == nil && r != nil {
			e := eachStep{Journal: j, ctx: ctx, run: r, yield: yield, second: record.NewIndex(j.stepsOf(r)), more: map[half][]uint32{}}
			if err = e.find(); err == nil {
				err = e.all()
			}
		}
		if err = j.data.Explain(err); err != nil && err != errEnough {
			yield(journal.Step{}, err)
		}
	}
}

type eachStep struct {
	*Journal
	ctx   context.Context
	run   *Run
	yield func(journal.Step, error) bool
	last  int64 // number of the last row

	second *record.Index     // number of each step's second row, usually its result; 0 if it has none
	more   map[half][]uint32 // numbers of each step's third and later rows
}

// steps calls f with the digest of each step that the row is about.
func (e *eachStep) steps(row *Row, f func(dag.ID)) error {
	switch {
	case row.isResult():
		f(id(row.Digest))
	case bytes.Contains(row.Head[:min(len(row.Head), 40)], []byte(`,"started":[`)): // written by intentRow; avoids decoding the head
		for digest := range ids(row.Content) {
			f(digest)
		}
	default:
		h, err := row.open()
		if err != nil {
			return e.damage(e.run.ID, row, err)
		}
		digest, err := dag.ParseID(h.Step)
		if err != nil {
			return e.damage(e.run.ID, row, err)
		}
		f(digest)
	}
	return nil
}

// find locates the rows of each step.
func (e *eachStep) find() error {
	for row, err := range e.data.Rows(e.ctx, e.run.Row, Selection{Steps: true, Heads: true}) {
		if err != nil {
			return err
		}
		e.last = row.Seq
		err = e.steps(row, func(digest dag.ID) {
			h := halfOf(digest)
			second, known := e.second.Get(h)
			switch {
			case !known:
				e.second.Put(h, 0)
			case second == 0:
				e.second.Put(h, uint32(row.Seq))
			default:
				e.more[h] = append(e.more[h], uint32(row.Seq))
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// all reads all rows again, and yields each step when it reads the step's first row.
func (e *eachStep) all() error {
	const most = 512
	rows := make([]*Row, 0, most)
	for row, err := range e.data.Rows(e.ctx, e.run.Row, Selection{Steps: true, Heads: true}) {
		if err != nil {
			return err
		}
		if row.Seq > e.last {
			break
		}
		if rows = append(rows, row); len(rows) == most {
			if err := e.some(rows); err != nil {
				return err
			}
			rows = rows[:0]
		}
	}
	return e.some(rows)
}

// read is a row with its decoded head.
type read struct {
	*Row
	head
	open bool
}

// some yields the steps whose first rows are among the given rows.
func (e *eachStep) some(rows []*Row) error {
	type one struct {
		digest dag.ID
		rows   []uint32
	}
	var steps []one
	here := make(map[uint32]*read, 2*len(rows))
	for _, row := range rows {
		here[uint32(row.Seq)] = &read{Row: row}
	}
	var far []int64
	for _, row := range rows {
		err := e.steps(row, func(digest dag.ID) {
			h, seq := halfOf(digest), uint32(row.Seq)
			second, _ := e.second.Get(h)
			if second == seq || slices.Contains(e.more[h], seq) {
				return
			}
			s := one{digest, []uint32{seq}}
			if second > 0 {
				s.rows = append(append(s.rows, second), e.more[h]...)
			}
			for _, n := range s.rows {
				if here[n] == nil {
					far = append(far, int64(n))
				}
			}
			steps = append(steps, s)
		})
		if err != nil {
			return err
		}
	}
	slices.Sort(far)
	for part := range slices.Chunk(slices.Compact(far), 256) {
		for row, err := range e.data.Rows(e.ctx, e.run.Row, Selection{Seqs: part, Heads: true}) {
			if err != nil {
				return err
			}
			here[uint32(row.Seq)] = &read{Row: row}
		}
	}
	for _, s := range steps {
		step, err := e.step(s.digest, s.rows, here)
		if err != nil {
			return err
		}
		if !e.yield(step, nil) {
			return errEnough
		}
	}
	return nil
}

// step builds a step from its rows.
func (e *eachStep) step(digest dag.ID, numbers []uint32, from map[uint32]*read) (s journal.Step, err error) {
	for _, n := range numbers {
		r := from[n]
		if r == nil {
			return s, e.damage(e.run.ID, &Row{Seq: int64(n)}, errLost)
		}
		if !r.open {
			if err = r.check(r.isIntent()); err == nil {
				r.head, err = r.Row.open()
			}
			if r.open = true; err != nil {
				return s, e.damage(e.run.ID, r.Row, err)
			}
		}
		err = e.fold(e.run.ID, r.Row, r.head, func(d dag.ID, path, kind, name string) *journal.Step {
			if d != digest {
				return nil
			}
			if s.Kind == "" && s.Path == "" {
				s.Path, s.Kind, s.Name = path, kind, name
			}
			return &s
		})
		if err != nil {
			return s, err
		}
		if r.isResult() {
			s.Meta = r.Record.Meta
		}
	}
	return s, nil
}

// EachNode implements [journal.Journal].
func (j *Journal) EachNode(ctx context.Context, run string) iter.Seq2[journal.NodeInfo, error] {
	return func(yield func(journal.NodeInfo, error) bool) {
		r, err := j.data.Run(ctx, run)
		switch {
		case err != nil:
		case r == nil:
			return
		case r.Rows <= Small:
			d, err := j.DAG(ctx, run)
			journal.NodesOf(d, err)(yield)
			return
		default:
			err = j.eachNode(ctx, r, yield)
		}
		if err = j.data.Explain(err); err != nil && err != errEnough {
			yield(journal.NodeInfo{}, err)
		}
	}
}

func (j *Journal) eachNode(ctx context.Context, r *Run, yield func(journal.NodeInfo, error) bool) error {
	wanted, err := j.reachable(ctx, r)
	if err != nil {
		return err
	}
	return j.recordsOf(ctx, j.data, r.ID, r.Row, Selection{Nodes: true}, func(row *Row, h head) error {
		for len(wanted) > 0 && int64(wanted[0]) < row.Seq {
			wanted = wanted[1:]
		}
		if len(wanted) == 0 || int64(wanted[0]) != row.Seq {
			return nil
		}
		if err := row.address(h); err != nil {
			return j.damage(r.ID, row, err)
		}
		if !yield(infoOf(row, h), nil) {
			return errEnough
		}
		return nil
	})
}

// reachable returns the numbers of the rows that contain the nodes of a run's last DAG, without duplicates.
func (j *Journal) reachable(ctx context.Context, r *Run) (rows []uint32, err error) {
	info, err := j.opened(r, true)
	if err != nil {
		return nil, err
	}
	index := record.NewIndex(j.stepsOf(r))
	var parents, ends []uint32 // parents of all nodes one after another, and where each node's parents end
	for row, err := range j.data.Rows(ctx, r.Row, Selection{Nodes: true, Heads: true}) {
		if err != nil {
			return nil, err
		}
		h := halfOf(id(row.Node))
		if _, again := index.Get(h); again {
			continue
		}
		for p := range ids(row.Parents) {
			i, known := index.Get(halfOf(p))
			if !known {
				return nil, j.damage(r.ID, row, fmt.Errorf("has the parent %.12s, which is not before it", p))
			}
			parents = append(parents, i)
		}
		index.Put(h, uint32(len(ends)))
		rows, ends = append(rows, uint32(row.Seq)), append(ends, uint32(len(parents)))
	}
	if len(info.Heads) == 0 {
		return rows, nil
	}
	wanted := make([]bool, len(ends))
	for _, head := range info.Heads {
		i, known := index.Get(halfOf(head))
		if !known {
			return nil, j.damage(r.ID, &Row{Node: head[:]}, errLost)
		}
		wanted[i] = true
	}
	for i := len(ends) - 1; i > 0; i-- {
		for _, p := range parents[ends[i-1]:ends[i]] {
			wanted[p] = wanted[p] || wanted[i]
		}
	}
	n := 0
	for i, seq := range rows {
		if wanted[i] {
			rows[n] = seq
			n++
		}
	}
	return rows[:n], nil
}

// stepsOf estimates the number of steps in a run. It returns 0 if the number is unknown.
func (j *Journal) stepsOf(r *Run) int {
	info, err := j.opened(r, false)
	if err != nil {
		return 0
	}
	return min(info.Steps, int(r.Rows))
}

func infoOf(row *Row, h head) journal.NodeInfo {
	rec := h.Record
	return journal.NodeInfo{ID: id(row.Node), Type: rec.Type, Parents: slices.Collect(ids(row.Parents)), Content: rec.Content, Meta: rec.Meta, Time: rec.Time}
}
