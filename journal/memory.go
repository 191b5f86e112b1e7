package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/flight"
	"github.com/stonelayer/stone/internal/record"
	"github.com/stonelayer/stone/step"
)

// Memory is a Journal that lives as long as the process, for tests and for runs that are repeated within one program.
// The zero value is empty and ready. It may serve several runs and goroutines at once, and must not be copied.
//
// Memory does not use the log of the databases, although that would take 400 lines less: a step
// then costs 26 µs instead of 10, for bytes that nobody reads again.
type Memory struct{ memory }

// memory has the methods of an owed.Store, whose types programs cannot name.
type memory struct {
	mu       sync.Mutex
	runs     map[string]*memoryRun
	order    []*memoryRun             // the oldest first
	reusable map[dag.ID][]*memoryStep // by step.Key.Reuse, the oldest first
	spending memorySpending
	news     chan struct{} // closed at the next change; nil without a waiting caller
}

// memoryRun is a run. Started is zero without Begin.
type memoryRun struct {
	info      RunInfo
	held      bool
	tenure    context.Context // ends when the run is left
	leave     context.CancelCauseFunc
	outer     *memoryRun    // whose holder also has it, nil if it is held by itself
	steps     []*memoryStep // in the order in which they were first started
	index     map[dag.ID]*memoryStep
	places    map[dag.ID]*memoryStep // with a result, by step.Place; without loose ones
	questions []*Question
	dag       dag.DAG // the DAG of the end
	rows      []memoryRow
	owed      memoryOwed
}

type memoryStep struct {
	Step
	run    *memoryRun
	digest dag.ID
	reuse  dag.ID
	loose  bool
	record []byte    // JSON, so that no caller can change it; nil without a result
	node   *dag.Node // nil if it made none in this run
}

// Do implements [step.Recorder].
func (m *Memory) Do(ctx context.Context, key step.Key, work func(context.Context) (step.Record, error)) (step.Record, error) {
	found, attempt, err := m.find(ctx, key)
	if err != nil {
		return step.Record{}, err
	}
	if found != nil {
		rec, err := decode(found.record)
		rec.Path, rec.Differs = found.Path, found.digest != key.Digest
		return rec, err
	}
	if record.Lookup(ctx) {
		return step.Record{}, nil
	}
	rec, err := work(record.WithAttempt(ctx, attempt))
	if err != nil {
		m.attempted(ctx, key, err)
		return step.Record{}, err
	}
	raw, err := json.Marshal(rec)
	if err != nil {
		return step.Record{}, fmt.Errorf("record of %s: %w", key.Path, err)
	}
	if first := m.keep(ctx, key, rec, raw); first != nil {
		return decode(first)
	}
	return rec, nil
}

// attempted records that an attempt ended without a result.
func (m *Memory) attempted(ctx context.Context, key step.Key, cause error) {
	used, known := record.Ended(record.Declared(ctx), cause)
	m.mu.Lock()
	defer m.mu.Unlock()
	switch s := m.run(key.RunID).index[key.Digest]; {
	case s == nil:
	case !known:
		m.spending.flight.Lose(key.RunID, key.Digest, record.Declared(ctx))
	default:
		s.Failures++
		s.Settle(used)
		m.append(s, true, used)
		m.ended(s, used, cause)
	}
}

// find returns the step with a record, or the record of other work at its place. Without one, it notes
// that the step starts, and returns the number of the attempt.
func (m *Memory) find(ctx context.Context, key step.Key) (found *memoryStep, attempt int, err error) {
	declared := record.Declared(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.checkID(key.RunID); err != nil {
		return nil, 0, err
	}
	r := m.run(key.RunID)
	if s := r.index[key.Digest]; s != nil && s.record != nil {
		return s, 0, nil
	}
	if other := r.places[key.Place()]; other != nil && other.record != nil && key.Placed() {
		return other, 0, nil
	}
	if record.Lookup(ctx) {
		return nil, 0, nil
	}
	if r.info.State == Done {
		return nil, 0, fmt.Errorf("run %q, %s: %w", key.RunID, key.Path, ErrDone)
	}
	s := r.step(key)
	s.Started = time.Now()
	if from, raw := m.reused(ctx, r, key); from != nil {
		s.Step.take(from.Step)
		s.From, s.record = from.run.info.ID, raw
		if key.Reuse != (dag.ID{}) && from.Failure == "" {
			m.reusable[key.Reuse] = append(m.reusable[key.Reuse], s)
		}
		s.settle()
		m.append(s, true, budget.Usage{})
		return s, 0, nil
	}
	if claim, of := flight.Claimed(ctx), r.budgets(); len(of) > 0 && claim != (flight.Claim{}) {
		start := flight.Start{Run: key.RunID, Step: key.Digest, Of: of, Claim: claim, Again: s.Attempts > 0}
		if refused, _ := m.spending.flight.Admit(memorySums{&m.memory}, start, time.Now()); refused != nil {
			return nil, 0, refused
		}
	}
	if _, goesOn := record.Child(ctx); goesOn {
		return nil, s.Attempts, nil
	}
	s.Start(declared)
	m.append(s, false, budget.Usage{})
	return nil, s.Attempts, nil
}

// step returns a step of the run, and makes it if it does not exist.
func (r *memoryRun) step(key step.Key) *memoryStep {
	s := r.index[key.Digest]
	if s == nil {
		s = &memoryStep{Step: Step{Path: key.Path, Kind: key.Kind, Name: key.Name}, run: r, digest: key.Digest, reuse: key.Reuse, loose: key.Loose}
		r.index[key.Digest], r.steps = s, append(r.steps, s)
	}
	return s
}

// settle notes the place of a step that has a result.
func (s *memoryStep) settle() {
	if !s.loose {
		s.run.places[step.Place(s.Kind, s.Path)] = s
	}
}

// take gives a step the result of another one.
func (s *Step) take(from Step) {
	s.Recorded, s.Time, s.Ended, s.Type, s.Sum, s.Usage = true, from.Time, time.Now(), from.Type, from.Sum, budget.Usage{}
	s.Failure, s.Reason = from.Failure, from.Reason
}

// used returns the usage of a step with the record.
func (s *Step) used(rec step.Record) budget.Usage {
	if s.Declared == (budget.Amount{}) {
		return budget.Usage{}
	}
	return record.Usage(rec)
}

// reused returns the oldest result of another run that r may take, and the record for r.
func (m *Memory) reused(ctx context.Context, r *memoryRun, key step.Key) (*memoryStep, []byte) {
	if s := m.origin(record.OriginOf(ctx), key); s != nil {
		if rec, err := decode(s.record); err == nil {
			if raw, err := json.Marshal(record.As(rec.ReusedFrom(s.run.info.ID), s.Node)); err == nil && !rec.Unshared {
				return s, raw
			}
		}
	}
	if key.Reuse == (dag.ID{}) {
		return nil, nil
	}
	for _, s := range m.reusable[key.Reuse] {
		if s.run == r { // otherwise two samples would be one
			continue
		}
		if s.Time.Before(key.Fresh) {
			continue
		}
		if !key.Fresh.IsZero() || r.info.Started.IsZero() || r.info.Reuse == AnyRun || r.info.Reuse == s.run.info.ID {
			rec, err := decode(s.record)
			if err != nil {
				continue
			}
			if raw, err := json.Marshal(rec.ReusedFrom(s.run.info.ID)); err == nil {
				return s, raw
			}
		}
	}
	return nil, nil
}

// origin returns the step of another run from which a forked one takes a result, or nil.
func (m *Memory) origin(o record.Origin, key step.Key) *memoryStep {
	r := m.runs[o.Run]
	if r == nil {
		return nil
	}
	s := r.index[o.Digest]
	if s == nil && o.Placed {
		s = r.places[step.Place(key.Kind, key.Path)]
	}
	if s == nil || s.record == nil {
		return nil
	}
	return s
}

// keep stores a record, or returns the one that the step already has.
func (m *Memory) keep(ctx context.Context, key step.Key, rec step.Record, raw []byte) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.run(key.RunID).index[key.Digest]
	if s == nil { // the run was removed meanwhile
		return nil
	}
	if s.record != nil {
		return s.record
	}
	s.record, s.node = raw, rec.Node
	s.settle()
	used := s.used(rec)
	s.Recorded, s.Time, s.Ended, s.Type, s.Sum = true, rec.Time, time.Now(), rec.Type, rec.Sum
	s.Settle(used)
	if rec.Node != nil {
		s.Node = rec.Node.ID()
	}
	if rec.Failure != nil {
		s.Failure, s.Reason = string(rec.Failure.Kind), rec.Failure.Reason
	} else if key.Reuse != (dag.ID{}) && !rec.Unshared {
		m.reusable[key.Reuse] = append(m.reusable[key.Reuse], s)
	}
	m.append(s, true, used)
	if child, _ := record.Child(ctx); child { // the run elsewhere counts for the sums of a period
		m.spending.flight.End(s.run.info.ID, s.digest)
		return nil
	}
	m.ended(s, used, nil)
	return nil
}

// run returns a run, and makes it if it does not exist.
func (m *Memory) run(id string) *memoryRun {
	if m.runs == nil {
		m.runs, m.reusable = map[string]*memoryRun{}, map[dag.ID][]*memoryStep{}
	}
	r := m.runs[id]
	if r == nil {
		r = &memoryRun{info: RunInfo{ID: id}, index: map[dag.ID]*memoryStep{}, places: map[dag.ID]*memoryStep{}}
		m.runs[id], m.order = r, append(m.order, r)
	}
	return r
}

func decode(raw []byte) (step.Record, error) {
	var rec step.Record
	if err := json.Unmarshal(raw, &rec); err != nil {
		return rec, fmt.Errorf("stored record: %w", err)
	}
	rec.Replayed = true
	return rec, nil
}

// Steps implements [Reader].
func (m *Memory) Steps(_ context.Context, run string) ([]Step, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var steps []Step
	if r := m.runs[run]; r != nil {
		for _, s := range r.steps {
			steps = append(steps, s.Step)
		}
	}
	return steps, nil
}

// EachStep implements [Reader].
func (m *Memory) EachStep(ctx context.Context, run string) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		steps, err := m.Steps(ctx, run)
		for _, s := range steps {
			if s.Recorded {
				rec, err := m.Record(ctx, run, s.Path, s.Kind)
				if s.Meta = rec.Meta; err != nil {
					yield(s, err)
					return
				}
			}
			if !yield(s, nil) {
				return
			}
		}
		if err != nil {
			yield(Step{}, err)
		}
	}
}

// EachNode implements [Reader].
func (m *Memory) EachNode(ctx context.Context, run string) iter.Seq2[NodeInfo, error] {
	return NodesOf(m.DAG(ctx, run))
}

// Record implements [Reader].
func (m *Memory) Record(_ context.Context, run, path, kind string) (step.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.runs[run]; r != nil {
		for _, s := range slices.Backward(r.steps) {
			if s.Path == path && s.Kind == kind && s.record != nil {
				return decode(s.record)
			}
		}
	}
	return step.Record{}, fmt.Errorf("run %q, %s %s: %w", run, kind, path, ErrNoStep)
}

// DAG implements [Reader].
func (m *Memory) DAG(_ context.Context, run string) (dag.DAG, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.runs[run]
	if r == nil {
		return dag.DAG{}, nil
	}
	if r.dag.Len() > 0 {
		return r.dag, nil
	}
	var d dag.DAG
	for _, n := range r.made() {
		var err error
		if d, err = d.Append(n); err != nil {
			return dag.DAG{}, fmt.Errorf("nodes of run %q: %w", run, err)
		}
	}
	return d, nil
}

// made returns the nodes that steps made, and their ancestors.
func (r *memoryRun) made() (nodes []*dag.Node) {
	known := map[dag.ID]bool{}
	for _, s := range r.steps {
		if s.node == nil || known[s.node.ID()] {
			continue
		}
		for _, n := range append(record.Missing(s.node, func(id dag.ID) bool { return known[id] }), s.node) {
			known[n.ID()], nodes = true, append(nodes, n)
		}
	}
	return nodes
}
