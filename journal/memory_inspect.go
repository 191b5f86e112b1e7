package journal

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
)

// memoryRow is a Row without the fields that the step has.
type memoryRow struct {
	step   *memoryStep
	at     time.Time
	ended  bool
	failed *Step        // of a step that failed; its failure may be forgotten later
	used   budget.Usage // by the attempt
}

func (r *memoryRun) append(s *memoryStep, ended bool, used budget.Usage) {
	row := memoryRow{step: s, at: time.Now(), ended: ended, used: used}
	if ended && s.Failure != "" {
		own := s.Step
		row.failed = &own
	}
	r.rows = append(r.rows, row)
	r.tell()
}

// tell wakes the followers of the run.
func (r *memoryRun) tell() {
	if r.news != nil {
		close(r.news)
		r.news = nil
	}
}

func (r memoryRow) row(seq int64) Row {
	s := r.step.Step
	row := Row{Seq: seq, Path: s.Path, Kind: s.Kind, Name: s.Name, Time: r.at, Ended: r.ended}
	if !r.ended {
		return row
	}
	if r.failed != nil {
		s = *r.failed
	}
	row.From, row.Type, row.Node, row.Failure, row.Reason, row.Usage = s.From, s.Type, s.Node, s.Failure, s.Reason, r.used
	return row
}

// Follow implements [Inspector].
func (m *Memory) Follow(ctx context.Context, run string, after int64) iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		for {
			rows, news, err := m.rows(run, after)
			if err == nil && len(rows) == 0 && news != nil {
				select {
				case <-news:
					continue
				case <-ctx.Done():
					err = context.Cause(ctx)
				}
			}
			if err != nil {
				yield(Row{}, err)
				return
			}
			for _, row := range rows {
				if after = row.Seq; !yield(row, nil) {
					return
				}
			}
			if len(rows) == 0 {
				return
			}
		}
	}
}

// Last implements [Inspector].
func (m *Memory) Last(_ context.Context, run string) (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.runs[run]
	if !r.visible() {
		return 0, fmt.Errorf("run %q: %w", run, ErrNoRun)
	}
	return int64(len(r.rows)), nil
}

// rows returns the rows after a position. If there are none and the run is held, news is
// closed when there may be more.
func (m *Memory) rows(run string, after int64) (rows []Row, news <-chan struct{}, err error) {
	const most = 256
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.runs[run]
	if !r.visible() {
		return nil, nil, fmt.Errorf("run %q: %w", run, ErrNoRun)
	}
	for i := max(after, 0); i < int64(len(r.rows)) && len(rows) < most; i++ {
		rows = append(rows, r.rows[i].row(i+1))
	}
	if len(rows) == 0 && r.held {
		if r.news == nil {
			r.news = make(chan struct{})
		}
		news = r.news
	}
	return rows, news, nil
}

// Outline implements [Inspector].
func (m *Memory) Outline(_ context.Context, run string) (Outline, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.runs[run]
	if !r.visible() {
		return nil, fmt.Errorf("run %q: %w", run, ErrNoRun)
	}
	steps := make([]Step, len(r.steps))
	for i, s := range r.steps {
		steps[i] = s.Step
	}
	return OutlineOf(steps), nil
}

// Node implements [Inspector].
func (m *Memory) Node(_ context.Context, run, prefix string) (NodeInfo, error) {
	found := map[dag.ID]*dag.Node{}
	m.mu.Lock()
	if r := m.runs[run]; r != nil && prefix != "" {
		for _, n := range append(r.made(), slices.Collect(r.dag.Nodes())...) {
			if strings.HasPrefix(n.ID().String(), prefix) {
				found[n.ID()] = n
			}
		}
	}
	m.mu.Unlock()
	if len(found) > 1 {
		several := &AmbiguousError{Prefix: prefix, Run: run}
		for id := range found {
			several.Found = append(several.Found, id.String())
		}
		slices.Sort(several.Found)
		return NodeInfo{}, several
	}
	for id, n := range found {
		info := NodeInfo{ID: id, Type: n.Type(), Content: n.Content(), Meta: n.Meta(), Time: n.Time()}
		for _, p := range n.Parents() {
			info.Parents = append(info.Parents, p.ID())
		}
		return info, nil
	}
	return NodeInfo{}, fmt.Errorf("run %q, node %.12s: %w", run, prefix, ErrNoNode)
}
