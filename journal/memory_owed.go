package journal

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stonelayer/stone/internal/owed"
)

// memoryOwed is what a run in Memory has beside its records.
type memoryOwed struct {
	batches   []owed.Batch
	receivers []owed.Receiver
	notices   []owed.Notice
}

// Batches implements [owed.Store].
func (m *memory) Batches(_ context.Context, run string) ([]owed.Batch, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.runs[run]; r != nil {
		return slices.Clone(r.owed.batches), nil
	}
	return nil, nil
}

// PutBatch implements [owed.Store].
func (m *memory) PutBatch(_ context.Context, run string, b owed.Batch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.runs[run]
	if r == nil || !r.held {
		return notHeld(run)
	}
	b.Keys, b.Lost = slices.Clone(b.Keys), slices.Clone(b.Lost)
	i := slices.IndexFunc(r.owed.batches, func(o owed.Batch) bool { return o.Number == b.Number })
	if i < 0 {
		i, r.owed.batches = len(r.owed.batches), append(r.owed.batches, b)
	}
	r.owed.batches[i] = b
	return nil
}

// Receivers implements [owed.Store].
func (m *memory) Receivers(_ context.Context, run string) ([]owed.Receiver, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.runs[run]; r != nil {
		return slices.Clone(r.owed.receivers), nil
	}
	return nil, nil
}

// PutReceiver implements [owed.Store].
func (m *memory) PutReceiver(_ context.Context, run string, to owed.Receiver) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.runs[run]
	if !r.visible() {
		return fmt.Errorf("run %q: %w", run, ErrNoRun)
	}
	i := slices.IndexFunc(r.owed.receivers, func(o owed.Receiver) bool { return o.Name == to.Name })
	switch {
	case i >= 0:
		r.owed.receivers[i] = to
	case len(r.owed.receivers) >= owed.MostReceivers:
		return owed.ErrFull
	default:
		r.owed.receivers = append(r.owed.receivers, to)
		slices.SortFunc(r.owed.receivers, func(a, b owed.Receiver) int { return cmp.Compare(a.Name, b.Name) })
	}
	if !r.held && r.info.State.stopped() {
		r.owe(owed.Notice{Receiver: to.Bound, Name: to.Name, Event: owed.Stopped(string(r.info.State), r.info.Ended), At: time.Now()})
	}
	return nil
}

// DropReceiver implements [owed.Store].
func (m *memory) DropReceiver(_ context.Context, run, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.runs[run]; r != nil {
		r.owed.receivers = slices.DeleteFunc(r.owed.receivers, func(o owed.Receiver) bool { return o.Name == name })
		r.owed.notices = slices.DeleteFunc(r.owed.notices, func(n owed.Notice) bool { return n.Name == name })
	}
	return nil
}

// stopped reports whether receivers are told that a run has ended in this state, or waits.
func (s State) stopped() bool {
	return s == Done || s == Failed || s == Canceled || s == Refused || s == Waiting
}

// stops notes what is owed for the end of a run.
func (r *memoryRun) stops() {
	o := r.info.Outcome
	if !o.State.stopped() {
		return
	}
	for _, to := range r.owed.receivers {
		r.owe(owed.Notice{Receiver: to.Bound, Name: to.Name, Event: owed.Stopped(string(o.State), o.Ended), At: o.Ended})
	}
	for _, name := range r.info.Notify {
		if o.State != Waiting {
			r.owe(owed.Notice{Receiver: name, Event: owed.Stopped(string(o.State), o.Ended), At: o.Ended})
			continue
		}
		for _, q := range r.questions {
			if q.Open() {
				r.owe(owed.Notice{Receiver: name, Event: owed.Asked(q.Path, q.Problem, q.Asked), At: o.Ended})
			}
		}
	}
}

// owe notes a notice, unless it is noted already.
func (r *memoryRun) owe(n owed.Notice) {
	n.Run, n.Next = r.info.ID, n.At
	if !slices.ContainsFunc(r.owed.notices, func(o owed.Notice) bool { return o.Receiver == n.Receiver && o.Name == n.Name && o.Event == n.Event }) {
		r.owed.notices = append(r.owed.notices, n)
	}
}

// Due implements [owed.Store].
func (m *memory) Due(_ context.Context, at time.Time, but []string, most int) (due []owed.Notice, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.order {
		for _, n := range r.owed.notices {
			if !n.Next.IsZero() && (!n.Next.After(at) || n.Next.After(at.Add(owed.LongestPause))) && !slices.Contains(but, n.Receiver) {
				due = append(due, n)
			}
		}
	}
	slices.SortStableFunc(due, func(a, b owed.Notice) int { return a.Next.Compare(b.Next) })
	return due[:min(most, len(due))], nil
}

// PutNotice implements [owed.Store].
func (m *memory) PutNotice(_ context.Context, n owed.Notice, tries int) (bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.runs[n.Run]; r != nil {
		for i, o := range r.owed.notices {
			if o.Receiver == n.Receiver && o.Name == n.Name && o.Event == n.Event && o.Tries == tries && !o.Next.IsZero() {
				r.owed.notices[i] = n
				return true, nil
			}
		}
	}
	return false, nil
}
