// Package eventtest records streams of events in tests, and checks them.
//
// [Check] checks that the events of a run fulfil the promises of package event. Call it with the events of a [Recorder] to test
// code that sends events or passes them on:
//
//	var r eventtest.Recorder
//	stone.Run(ctx, p, stone.Config{Watch: &r})
//	if err := eventtest.Check(r.Events()); err != nil {
//		t.Error(err)
//	}
package eventtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/stonelayer/stone/event"
)

// A Recorder is a Watcher that keeps the events of one run. The zero Recorder wants all events. It is safe for concurrent use.
type Recorder struct {
	// Level is the lowest level that is wanted. Nil means event.LevelDelta.
	Level slog.Leveler

	mu     sync.Mutex
	events []event.Event
}

// Wants implements event.Watcher.
func (r *Recorder) Wants(_ context.Context, level slog.Level) bool {
	return level >= cmp.Or[slog.Leveler](r.Level, event.LevelDelta).Level()
}

// Watch implements event.Watcher.
func (r *Recorder) Watch(_ context.Context, e event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// Events returns the events so far.
func (r *Recorder) Events() []event.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// Check returns an error that lists the broken promises in the events of an ended run, as received by a watcher that wants every
// level:
//
//   - Numbers count from 1 without gaps, times do not decrease, and there is only one run.
//   - Each start has exactly one end, and the parent of a span has started before it.
//   - Another attempt at an answer starts only after the previous attempt was retracted, and no
//     delta follows the end or the retraction of an answer.
//   - When a step fails or is retried, all its answers are retracted.
func Check(events []event.Event) error {
	c := checker{open: map[string]bool{}, spans: map[string]bool{"": true}, voices: map[voice]state{}}
	for i, e := range events {
		if e.Seq != uint64(i+1) {
			c.wrong(e, "event %d has the number %d", i+1, e.Seq)
		}
		if e.Run != events[0].Run {
			c.wrong(e, "it is of the run %q, the first of %q", e.Run, events[0].Run)
		}
		if i > 0 && e.Time.Before(events[i-1].Time) {
			c.wrong(e, "it is older than the event before")
		}
		c.take(e)
	}
	for key := range c.open {
		c.errs = append(c.errs, fmt.Errorf("%s has no end", key))
	}
	return errors.Join(c.errs...)
}

type checker struct {
	open   map[string]bool // activities that have started but not ended
	spans  map[string]bool
	voices map[voice]state
	errs   []error
}

type voice struct {
	path, source string
	attempt      int
}

type state uint8

const (
	speaking state = iota + 1
	ended
	void
)

func (c *checker) wrong(e event.Event, format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("event %d, %s at %s: %s", e.Seq, e.Type(), e.Path, fmt.Sprintf(format, args...)))
}

func (c *checker) take(e event.Event) {
	switch d := e.Data.(type) {
	case event.RunStarted:
		c.start(e, "run")
	case event.RunEnded:
		c.end(e, "run")
	case event.StepStarted:
		c.start(e, d.Form)
	case event.StepDone:
		c.end(e, d.Form)
		if d.Form == "leaf" && !d.OK {
			c.silent(e)
		}
	case event.LaneStarted:
		c.start(e, "lane")
	case event.LaneEnded:
		c.end(e, "lane")
	case event.AgentStarted:
		c.start(e, "agent")
	case event.AgentEnded:
		c.end(e, "agent")
	case event.ModelRequest:
		c.start(e, "model")
	case event.ModelResponse:
		if !d.Replayed {
			c.end(e, "model")
		}
	case event.ToolStarted:
		c.start(e, fmt.Sprintf("tool %d of turn %d", d.Position, d.Turn))
	case event.ToolDone:
		delete(c.open, key(e, fmt.Sprintf("tool %d of turn %d", d.Position, d.Turn))) // a refused call has no start
	case event.AttemptFailed:
		c.silent(e)
	case event.Delta:
		c.delta(e, d)
	case event.Retracted:
		c.retracted(e, d)
	}
}

func key(e event.Event, what string) string { return what + " " + e.Path + " " + e.Span }

func (c *checker) start(e event.Event, what string) {
	if c.open[key(e, what)] {
		c.wrong(e, "it has started already")
	}
	if !c.spans[e.Parent] {
		c.wrong(e, "its parent %s has not started", e.Parent)
	}
	c.open[key(e, what)], c.spans[e.Span] = true, true
}

func (c *checker) end(e event.Event, what string) {
	if !c.open[key(e, what)] {
		c.wrong(e, "it has not started")
	}
	delete(c.open, key(e, what))
}

func (c *checker) delta(e event.Event, d event.Delta) {
	v := voice{e.Path, d.Source, d.Attempt}
	switch c.voices[v] {
	case ended:
		c.wrong(e, "the answer of %s has ended", d.Source)
	case void:
		c.wrong(e, "the answer of %s is retracted", d.Source)
	case 0:
		if before := (voice{e.Path, d.Source, d.Attempt - 1}); c.voices[before] == speaking || c.voices[before] == ended {
			c.wrong(e, "attempt %d of %s is not retracted", d.Attempt-1, d.Source)
		}
	}
	if c.voices[v] = speaking; d.End {
		c.voices[v] = ended
	}
}

func (c *checker) retracted(e event.Event, d event.Retracted) {
	found := false
	for v, s := range c.voices {
		if s != void && d.Covers(e.Path, v.path, v.source, v.attempt) {
			c.voices[v], found = void, true
		}
	}
	if !found {
		c.wrong(e, "nothing is retracted: %+v", d)
	}
}

// silent reports answers of a failed step that were not retracted.
func (c *checker) silent(e event.Event) {
	for v, s := range c.voices {
		if s != void && (event.Retracted{}).Covers(e.Path, v.path, v.source, v.attempt) {
			c.wrong(e, "attempt %d of %s at %s is not retracted", v.attempt, v.source, v.path)
		}
	}
}
