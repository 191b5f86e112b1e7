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

// append adds a row to the run of a step.
func (m *Memory) append(s *memoryStep, ended bool, used budget.Usage) {
	row := memoryRow{step: s, at: time.Now(), ended: ended, used: used}
	if ended && s.Failure != "" {
		own := s.Step
		row.failed = &own
	}
	s.run.rows = append(s.run.rows, row)
	m.tell()
}

// tell wakes the callers that wait for a change. Its caller holds m.mu.
func (m *Memory) tell() {
	if m.news != nil {
		close(m.news)
		m.news = nil
	}
}

// Changes implements [Inspector].
func (m *Memory) Changes(ctx context.Context) func(yield func() bool) {
	return func(yield func() bool) {
		for ctx.Err() == nil {
			m.mu.Lock()
			if m.news == nil {
				m.news = make(chan struct{})
			}
			news := m.news // before the caller reads, so that no change is missed
			m.mu.Unlock()
			if !yield() {
				return
			}
			select {
			case <-news:
			case <-ctx.Done():
			}
		}
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
		m.mu.Lock()
		r := m.runs[run]
		m.mu.Unlock()
		for range m.Changes(ctx) {
			for more := true; more; {
				rows, held, err := m.rows(run, r, after)
				if err != nil {
					yield(Row{}, err)
					return
				}
				for _, row := range rows {
					if after = row.Seq; !yield(row, nil) {
						return
					}
				}
				if more = len(rows) > 0; !more && !held {
					return
				}
			}
		}
		yield(Row{}, context.Cause(ctx))
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

// rows returns the next rows of a run after a position, and whether it is held. Another run with
// its id is not the same.
func (m *Memory) rows(run string, r *memoryRun, after int64) (rows []Row, held bool, err error) {
	const most = 256
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.runs[run] != r || !r.visible() {
		return nil, false, fmt.Errorf("run %q: %w", run, ErrNoRun)
	}
	for i := max(after, 0); i < int64(len(r.rows)) && len(rows) < most; i++ {
		rows = append(rows, r.rows[i].row(i+1))
	}
	return rows, r.held, nil
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
	for _, n := range found {
		return infoOf(n), nil
	}
	return NodeInfo{}, fmt.Errorf("run %q, node %.12s: %w", run, prefix, ErrNoNode)
}
