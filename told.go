package stone

import (
	"errors"
	"sync"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/kind"
)

// settler is a recorder that may queue records, see step.Recorder.
type settler interface {
	Settled(run string) (wait func(now bool) error)
}

// settled returns nil if everything is durable that the run has recorded.
func (r *run) settled() (wait func(now bool) error) {
	if r.settles == nil {
		return nil
	}
	return r.settles.Settled(r.id)
}

// telling holds events back until everything is durable that was recorded before them: nobody is told of a result that a
// crash can still take back.
type telling struct {
	mu     sync.Mutex // locked while an event is passed on
	held   []event.Event
	passed int  // how many held events were passed on, or dropped
	waits  bool // a goroutine waits for the recorder
	over   bool
}

func (r *run) tell(e event.Event) {
	if r.settles == nil {
		r.stream.Send(e)
		return
	}
	t := &r.telling
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.settled() == nil {
		r.pass(t.passed + len(t.held))
		r.stream.Send(e)
		return
	}
	e.Time = r.now()
	if t.held = append(t.held, e); !t.waits {
		t.waits = true
		go r.await()
	}
}

// pass passes held events on up to a number. The caller has locked them.
func (r *run) pass(last int) {
	t := &r.telling
	for ; t.passed < last && len(t.held) > 0; t.passed++ {
		r.stream.Send(t.held[0])
		t.held = t.held[1:]
	}
}

// await passes events on when they are durable.
func (r *run) await() {
	t := &r.telling
	t.mu.Lock()
	defer t.mu.Unlock()
	for len(t.held) > 0 && !t.over {
		last := t.passed + len(t.held)
		if wait := r.settled(); wait != nil {
			t.mu.Unlock()
			err := wait(false)
			t.mu.Lock()
			if err != nil { // the run stops, and says so
				r.drop(last)
			}
		}
		r.pass(last)
	}
	t.waits = false
}

// drop discards events up to a number whose records were lost. The caller has locked them.
func (r *run) drop(last int) {
	t := &r.telling
	for ; t.passed < last && len(t.held) > 0; t.passed++ {
		e := t.held[0]
		t.held = t.held[1:]
		if end, ok := e.Data.(event.RunEnded); ok {
			end.OK = false
			e.Data = end
			r.stream.Send(e)
		}
	}
}

// passDurable passes on the held events that are durable, before work that may have effects.
func (r *run) passDurable() {
	t := &r.telling
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.held) > 0 && r.settled() == nil {
		r.pass(t.passed + len(t.held))
	}
}

// told releases the held events at the end of a run. Before is the error of the run, err its error after the end was
// recorded. They are equal if the end could be recorded.
func (r *run) told(before, err error) {
	if r.settles == nil {
		return
	}
	t := &r.telling
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	last := t.passed + len(t.held)
	if errors.Is(err, kind.Recorder) || (before == nil) != (err == nil) || err != nil && before.Error() != err.Error() {
		r.drop(last)
	}
	r.pass(last)
}
