package event

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// A Stream numbers the events of one run and passes them to the run's watcher. A nil Stream has no watcher and drops all events.
// Package stone makes one for each run.
type Stream struct {
	ctx   context.Context
	run   string
	asked string // the id of the request
	now   func() time.Time
	slots []*slot

	mu  sync.Mutex // locked while an event is passed on
	seq uint64
}

// A slot holds a watcher and records whether it has panicked.
type slot struct {
	Watcher
	panicked atomic.Pointer[Custom]
	told     bool
}

// NewStream returns a Stream that passes the events of a run to w. Request is the id of the request that the run answers, or "".
// If w is nil, NewStream returns nil.
func NewStream(ctx context.Context, run, request string, now func() time.Time, w Watcher) *Stream {
	watchers := flat(w)
	if len(watchers) == 0 {
		return nil
	}
	s := &Stream{ctx: ctx, run: run, asked: request, now: now}
	for _, w := range watchers {
		s.slots = append(s.slots, &slot{Watcher: w})
	}
	return s
}

// Wants reports whether the watcher wants events of the given level.
func (s *Stream) Wants(level slog.Level) bool {
	if s == nil {
		return false
	}
	for _, w := range s.slots {
		if w.wants(s.ctx, level) {
			return true
		}
	}
	return false
}

// Send sets the event's run, number and, if missing, time, and passes the event on if its level is wanted. It returns when every
// watcher has received the event.
func (s *Stream) Send(e Event) {
	if !s.Wants(e.Level()) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pass(e)
}

func (s *Stream) pass(e Event) {
	s.seq++
	if e.Run, e.Request, e.Seq = s.run, s.asked, s.seq; e.Time.IsZero() {
		e.Time = s.now()
	}
	level := e.Level()
	for _, w := range s.slots {
		if w.wants(s.ctx, level) {
			w.watch(s.ctx, e)
		}
	}
	for _, w := range s.slots {
		if p := w.panicked.Load(); p != nil && !w.told {
			w.told = true
			s.pass(Event{Path: e.Path, Name: e.Name, Span: e.Span, Parent: e.Parent, Data: *p})
		}
	}
}

func (w *slot) wants(ctx context.Context, level slog.Level) (wants bool) {
	if w.panicked.Load() != nil {
		return false
	}
	defer func() {
		if p := recover(); p != nil {
			w.broke(p)
			wants = false
		}
	}()
	return w.Wants(ctx, level)
}

func (w *slot) watch(ctx context.Context, e Event) {
	defer func() {
		if p := recover(); p != nil {
			w.broke(p)
		}
	}()
	w.Watch(ctx, e)
}

func (w *slot) broke(with any) {
	w.panicked.CompareAndSwap(nil, &Custom{"watcher-panicked", slog.LevelError, []slog.Attr{
		slog.String("watcher", fmt.Sprintf("%T", w.Watcher)),
		slog.String("error", fmt.Sprint(with)), slog.String("stack", string(debug.Stack())),
	}})
}
