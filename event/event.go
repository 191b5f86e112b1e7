package event

import (
	"context"
	"log/slog"
	"time"
)

// An Event reports that something has happened in a run, such as the start of a step.
type Event struct {
	Run string // the id of the run
	// Request is the id of the external request that the run answers, or "".
	Request string
	Seq     uint64    // the event's number in the run, counted from 1 without gaps
	Time    time.Time // the time of the event, from the run's clock

	// Path is the address of the step, lane or attempt, such as "review/loop[2]/lane[17]/draft~2". Name is the ashlar's name.
	Path, Name string
	// Span identifies one execution of the ashlar, and Parent the execution that encloses it. At the root of the run, Parent is
	// the span outside the run, or empty. Spans of runs are globally unique.
	Span, Parent string

	Data Data
}

// LevelDelta is the level for pieces of answers and their retraction. It is below slog.LevelDebug.
const LevelDelta = slog.LevelDebug - 4

// A Watcher receives the events of a run. See the package comment for their order and for
// the rules of a watcher.
//
// The context is the one that was passed to the run. A Watcher that serves several runs at once must allow concurrent calls.
type Watcher interface {
	// Wants reports whether the watcher wants events of the given level. It is called often, from several goroutines at once, and
	// its result may change.
	Wants(ctx context.Context, level slog.Level) bool
	// Watch is called with each event whose level is wanted. It must not modify data to which the event refers.
	Watch(ctx context.Context, e Event)
}

// Func returns a Watcher that calls watch with every event of at least the given level.
func Func(level slog.Leveler, watch func(Event)) Watcher { return funcWatcher{level, watch} }

type funcWatcher struct {
	level slog.Leveler
	watch func(Event)
}

func (f funcWatcher) Wants(_ context.Context, level slog.Level) bool { return level >= f.level.Level() }
func (f funcWatcher) Watch(_ context.Context, e Event)               { f.watch(e) }

// All returns a Watcher that passes each event on to the watchers that want its level, in this order. Nil watchers are left out;
// if none remain, All returns nil. A watcher that wants fewer levels than the others sees gaps in Seq.
func All(watchers ...Watcher) Watcher {
	var all several
	for _, w := range watchers {
		all = append(all, flat(w)...)
	}
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return all
}

func flat(w Watcher) []Watcher {
	switch w := w.(type) {
	case nil:
		return nil
	case several:
		return w
	}
	return []Watcher{w}
}

type several []Watcher

func (all several) Wants(ctx context.Context, level slog.Level) bool {
	for _, w := range all {
		if w.Wants(ctx, level) {
			return true
		}
	}
	return false
}

func (all several) Watch(ctx context.Context, e Event) {
	for _, w := range all {
		if w.Wants(ctx, e.Level()) {
			w.Watch(ctx, e)
		}
	}
}
