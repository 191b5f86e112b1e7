package journal

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stonelayer/stone/ask"
	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/internal/bounds"
	"github.com/stonelayer/stone/internal/record"
)

// inMemory is the name of a Memory, as a store and as an owner.
const inMemory = "memory"

func (m *Memory) held(id string) error {
	return &HeldError{Where: inMemory, Run: id, Owner: "another run of it in this process"}
}

// Acquire implements [Holder]. Only this process can hold a run.
func (m *Memory) Acquire(_ context.Context, id string) (RunInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.checkID(id); err != nil {
		return RunInfo{}, err
	}
	r := m.run(id)
	if r.held {
		return RunInfo{}, m.held(id)
	}
	r.held, r.outer = true, m.around(id)
	r.tenure, r.leave = context.WithCancelCause(context.Background())
	if r.info.Started.IsZero() {
		return RunInfo{}, nil
	}
	return r.known(), nil
}

// checkID refuses a new run whose id is too long.
func (m *Memory) checkID(id string) error {
	if m.runs[id] != nil {
		return nil
	}
	return bounds.CheckID(id)
}

// around returns the held run whose inner run has the id, or nil.
func (m *Memory) around(id string) *memoryRun {
	for i := strings.LastIndexByte(id, '/'); i > 0; i = strings.LastIndexByte(id[:i], '/') {
		if r := m.runs[id[:i]]; r != nil && r.held {
			return cmp.Or(r.outer, r)
		}
	}
	return nil
}

// known returns the info as others see it.
func (r *memoryRun) known() RunInfo {
	info := r.info
	switch {
	case r.held:
		info.Owner = inMemory
	case info.State == "" || info.State == Running:
		info.State = Interrupted
	case info.State == Waiting && !r.asks():
		info.State = Answered
	}
	return info
}

// asks reports whether a run has an open question.
func (r *memoryRun) asks() bool {
	return slices.ContainsFunc(r.questions, func(q *Question) bool { return q.Open() })
}

// visible reports whether the run was started or has a step or a question.
func (r *memoryRun) visible() bool {
	return r != nil && (!r.info.Started.IsZero() || len(r.steps) > 0 || len(r.questions) > 0)
}

// Begin implements [Holder].
func (m *Memory) Begin(_ context.Context, info RunInfo, input dag.DAG) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.run(info.ID)
	if err := bounds.CheckRun(info.Pipeline, info.Labels); err != nil {
		return err
	}
	if input.Len() > 0 {
		if err := m.keepInput(r, info, input); err != nil {
			return err
		}
	}
	if r.info.State == Failed {
		for _, s := range r.steps {
			if s.Failure != "" && slices.Contains(r.info.Retry, s.Path) {
				s.Step = Step{Path: s.Path, Kind: s.Kind, Name: s.Name, Attempts: s.Attempts, Failures: s.Failures + 1, Started: s.Started, Usage: s.Usage, Declared: s.Declared, Possible: s.Possible}
				s.record = nil
			}
		}
	}
	m.spending.flight.Leave(info.ID, false)
	r.info, r.dag = info, dag.DAG{}
	r.info.Owner, r.info.Outcome = "", Outcome{State: Running, Steps: info.Steps, Usage: info.Usage}
	m.tell()
	return nil
}

// keepInput records the input of a run, unless it has that input already.
func (m *Memory) keepInput(r *memoryRun, info RunInfo, input dag.DAG) error {
	key, rec, err := InputStep(info, input)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(rec)
	if err != nil {
		return fmt.Errorf("record of %s: %w", key.Path, err)
	}
	s := r.step(key)
	if s.record == nil {
		now := time.Now()
		s.record, s.Recorded, s.Time, s.Started, s.Ended, s.Sum = raw, true, rec.Time, now, now, rec.Sum
		m.append(s, true, budget.Usage{})
	}
	return nil
}

// End implements [Holder].
func (m *Memory) End(_ context.Context, id string, o Outcome) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.runs[id]
	if r == nil || !r.held {
		return notHeld(id)
	}
	// What lost attempts may have cost is known now.
	now, then := o.Usage.Possible, r.info.Usage.Possible
	m.spend(r, budget.Amount{Roundtrips: now.Attempts - then.Attempts, Tokens: now.Tokens - then.Tokens, USD: now.USD - then.USD})
	if o.State != Refused {
		r.dag, o.Heads = o.DAG, record.HeadsOf(o.DAG)
	}
	o.DAG = dag.DAG{}
	r.info.Outcome = o
	r.stops()
	m.release(r, o.State == Waiting)
	return nil
}

// Release implements [Holder].
func (m *Memory) Release(id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.runs[id]; r != nil {
		m.release(r, false)
	}
	return nil
}

// release leaves a run. It waits if it may be about to make batches of its requests.
func (m *Memory) release(r *memoryRun, waits bool) {
	for _, left := range append(m.within(r), r) {
		m.spending.flight.Leave(left.info.ID, waits && left == r)
		if left.held {
			left.leave(notHeld(left.info.ID))
		}
		left.held, left.outer = false, nil
		if !left.visible() {
			m.forget(left)
		}
	}
	m.tell()
}

// Held implements [Holder].
func (m *Memory) Held(id string) context.Context {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.runs[id]; r != nil && r.tenure != nil {
		return r.tenure
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(notHeld(id))
	return ctx
}

func notHeld(id string) error {
	return fmt.Errorf("run %q in %s is not held by this journal: acquire it first, as journal.Keep does", id, inMemory)
}

// within returns the inner runs of a run.
func (m *Memory) within(outer *memoryRun) (inner []*memoryRun) {
	if !outer.held {
		return nil
	}
	for _, r := range m.order {
		if r.outer == outer {
			inner = append(inner, r)
		}
	}
	return inner
}

func (m *Memory) forget(r *memoryRun) {
	delete(m.runs, r.info.ID)
	m.tell()
	m.order = slices.DeleteFunc(m.order, func(o *memoryRun) bool { return o == r })
	for _, s := range r.steps {
		m.reusable[s.reuse] = slices.DeleteFunc(m.reusable[s.reuse], func(o *memoryStep) bool { return o == s })
	}
}

// Find implements [Archive].
func (m *Memory) Find(_ context.Context, prefix string) (RunInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.runs[prefix]; r.visible() {
		return r.known(), nil
	}
	var found []string
	for _, r := range m.order {
		if r.visible() && strings.HasPrefix(r.info.ID, prefix) {
			found = append(found, r.info.ID)
		}
	}
	switch {
	case len(found) == 0 || prefix == "":
		return RunInfo{}, fmt.Errorf("run %q: %w", prefix, ErrNoRun)
	case len(found) > 1:
		return RunInfo{}, &AmbiguousError{Prefix: prefix, Found: found}
	}
	return m.runs[found[0]].known(), nil
}

// Runs implements [Archive].
func (m *Memory) Runs(_ context.Context, q Query) ([]RunInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	older := q.Before == ""
	var page []RunInfo
	for _, r := range slices.Backward(m.order) {
		info := r.known()
		if older && r.visible() && len(page) < cmp.Or(q.Limit, DefaultLimit) && q.Selects(info) && (!q.Asking || r.asks()) {
			info.Shape = nil
			page = append(page, info)
		}
		older = older || info.ID == q.Before
	}
	if !older {
		return nil, fmt.Errorf("run %q: %w", q.Before, ErrNoRun)
	}
	return page, nil
}

// Remove implements [Archive].
func (m *Memory) Remove(ctx context.Context, id string) error {
	if err := m.remove(id); err != nil {
		return err
	}
	return RemoveChildren(ctx, m, id)
}

func (m *Memory) remove(id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.runs[id]
	switch {
	case r == nil:
		return fmt.Errorf("run %q: %w", id, ErrNoRun)
	case r.held:
		return m.held(id)
	}
	m.forget(r)
	return nil
}

// Settled implements [Holder].
func (m *Memory) Settled(string) func(bool) error { return nil }

// Ask implements [Interviewer].
func (m *Memory) Ask(_ context.Context, q Question) (Question, error) {
	if q.Problem != "" {
		if err := context.Cause(m.Held(q.Run)); err != nil {
			return Question{}, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.checkID(q.Run); err != nil {
		return Question{}, err
	}
	if err := bounds.CheckQuestion(q.Path, q); err != nil {
		return Question{}, err
	}
	r := m.run(q.Run)
	kept := r.question(q.Path)
	if kept == nil {
		q.take(ask.Answer{}, time.Time{})
		kept = &q
		r.questions = append(r.questions, kept)
	} else if q.Problem != "" {
		q.Asked = kept.Asked
		q.take(ask.Answer{}, time.Time{})
		*kept = q
	}
	m.tell()
	return *kept, nil
}

func (r *memoryRun) question(path string) *Question {
	for _, q := range r.questions {
		if q.Path == path {
			return q
		}
	}
	return nil
}

// Answer implements [Interviewer].
func (m *Memory) Answer(_ context.Context, run, path string, a ask.Answer) error {
	if err := bounds.CheckResponse(a.Response); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.runs[run]; r != nil {
		if q := r.question(path); q != nil && q.Open() {
			if a.To != "" && a.To != q.Version {
				return fmt.Errorf("run %q, question at %s: %w", run, path, ErrAsksOther)
			}
			q.take(a, time.Now())
			m.tell()
			return nil
		}
	}
	return fmt.Errorf("run %q, question at %s: %w", run, path, ErrNoQuestion)
}

// Questions implements [Interviewer].
func (m *Memory) Questions(_ context.Context, run string) ([]Question, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var questions []Question
	if r := m.runs[run]; r != nil {
		for _, q := range r.questions {
			questions = append(questions, *q)
		}
	}
	return questions, nil
}
