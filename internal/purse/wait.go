package purse

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/limit"
)

// Patience is how long a step waits for a budget that does not change. Tests set it.
var Patience = time.Minute

// Lines has the steps of a process that wait for budgets. Its zero value is empty and ready.
type Lines struct {
	mu sync.Mutex
	of map[budget.Shared]*line // by the budgets without their limits
}

// A line has the steps that wait for a budget, in the order in which they are paid. The first one asks again and again.
type line struct {
	steps []*waiter
	last  budget.Balance
	since time.Time // it is so
}

type waiter struct {
	rank   limit.Rank
	quote  budget.Quote
	shared budget.Shared
	since  time.Time
	turn   chan struct{} // it asks
}

// Wait calls do until it succeeds or waiting is in vain: while a budget refuses a step that it could pay if the
// reservations of others come back, up to a minute after its last change. The steps that wait for
// a budget form a line: a step for which a person waits comes first, then the higher priority, then the earlier arrival.
// The first in the line calls do from time to time, the others once they can be paid. A step that fits passes one that does not.
func (l *Lines) Wait(ctx context.Context, do func() error) error {
	var w *waiter
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := do()
		spent, refused := errors.AsType[*budget.ExhaustedError](err)
		refused = refused && spent.Later
		if w != nil && (!refused || counted(w.shared) != counted(spent.Shared.Shared)) {
			l.leave(w, err == nil)
			w = nil
		}
		if !refused {
			return err
		}
		if w == nil {
			w = l.enter(ctx, spent.Shared.Shared)
		}
		first, over := l.told(w, *spent.Shared)
		if over {
			l.leave(w, false)
			return err
		}
		var again <-chan time.Time // of the first one
		if first {
			again = time.After(pause + rand.N(pause/4))
		}
		select {
		case <-again:
		case <-w.turn:
			pause = 10 * time.Millisecond
		case <-ctx.Done():
			l.leave(w, false)
			return budget.Costly(context.Cause(ctx), budget.Usage{}) // nothing was sent
		}
	}
}

// enter puts a step into the line of a budget.
func (l *Lines) enter(ctx context.Context, of budget.Shared) *waiter {
	w := &waiter{rank: limit.RankOf(ctx), quote: Claimed(ctx).Quote, shared: of, since: time.Now(), turn: make(chan struct{}, 1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[budget.Shared]*line{}
	}
	in := l.of[counted(of)]
	if in == nil {
		in = new(line)
		l.of[counted(of)] = in
	}
	at, _ := slices.BinarySearchFunc(in.steps, w, func(o, w *waiter) int { // behind its equals
		if o.before(w) {
			return -1
		}
		return 1
	})
	in.steps = slices.Insert(in.steps, at, w)
	return w
}

// before reports whether a step that waits comes before a new one.
func (w *waiter) before(fresh *waiter) bool {
	if w.rank.Interactive != fresh.rank.Interactive {
		return w.rank.Interactive
	}
	return w.rank.Priority >= fresh.rank.Priority
}

// leave takes a step out of its line. After a paid one two others ask, so a returned reservation reaches many soon.
func (l *Lines) leave(w *waiter, paid bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	in := l.of[counted(w.shared)]
	in.steps = slices.DeleteFunc(in.steps, func(o *waiter) bool { return o == w })
	if len(in.steps) == 0 {
		delete(l.of, counted(w.shared))
		return
	}
	in.steps[0].wake()
	if paid && len(in.steps) > 1 {
		in.steps[1].wake()
	}
}

// told notes the state of a budget that has refused a step. It wakes the others that have something to learn: what can be
// paid, what can never be paid, and who has waited for long enough. It reports whether the step is the first in
// its line, and whether its own waiting is over.
func (l *Lines) told(w *waiter, now budget.Balance) (first, over bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	in := l.of[counted(w.shared)]
	changed := in.since.IsZero() || now.Used != in.last.Used || now.Held != in.last.Held
	if changed {
		in.last, in.since = now, time.Now()
	}
	late := func(o *waiter) bool {
		return time.Since(in.since) > Patience && time.Since(o.since) > Patience
	}
	first, over = in.steps[0] == w, late(w)
	for _, o := range in.steps {
		if o == w || !first && !changed {
			continue
		}
		if now.Shared = o.shared; late(o) {
			o.wake()
			continue
		}
		spent, refused := errors.AsType[*budget.ExhaustedError](now.Pays(o.quote))
		if !refused || !spent.Later {
			o.wake()
		}
		if !refused {
			now.Held = now.Held.Add(o.quote.Most)
		}
	}
	return first, over
}

// Returned wakes those who wait: a reservation may have come back.
func (l *Lines) Returned() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, in := range l.of {
		in.steps[0].wake()
	}
}

// wake has a step ask, if it is not about to do so.
func (w *waiter) wake() {
	select {
	case w.turn <- struct{}{}:
	default:
	}
}
