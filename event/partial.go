package event

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"sync"

	"github.com/stonelayer/stone/schema"
)

// A Partial is the part of a streamed JSON answer that has arrived so far. Even a complete answer may still be rejected.
type Partial[T any] struct {
	// Path, Source and Attempt identify the answer, as in Delta.
	Path, Source string
	Attempt      int
	// Value is the part of the JSON value that has arrived. Its last string may be cut off, and missing parts have their zero
	// value. Later values of the same answer extend this value. The receiver may keep and change it.
	Value T
	// Complete reports whether the whole value has arrived.
	Complete bool
	// Retracted is the reason why the answer is void; Value is then zero. It is "" for a valid answer.
	Retracted string
}

// Partials returns a watcher that calls fn with the partial values of the named step's answers. The step is an agent or a call;
// "" selects all steps. If T is json.RawMessage, the values are JSON.
//
//	stone.Run(ctx, p, stone.Config{Watch: event.Partials("report", func(p event.Partial[Report]) {
//		show(p.Value.Title, p.Value.Findings)
//	})})
//
// The watcher calls fn each time a value's text has grown by a sixteenth, and when the value is complete, so decoding takes time
// linear in the length of the answer. Values that do not fit T are skipped, as are answers that are not JSON or are longer than 4
// MiB. If an answer is retracted, the watcher calls fn once. Within a run, calls are never concurrent.
func Partials[T any](step string, fn func(Partial[T])) Watcher {
	w := &partials[T]{step: step, fn: fn, answers: map[answer]*partial{}}
	_, raw := any(w.fn).(func(Partial[json.RawMessage]))
	if s, err := schema.For[T](); err == nil && !raw {
		w.wrapped = !s.Object()
	}
	return w
}

type partials[T any] struct {
	step    string
	fn      func(Partial[T])
	wrapped bool // whether models return the answer as the property "value" of an object

	mu      sync.Mutex // one watcher can watch several runs
	answers map[answer]*partial
}

// answer identifies an answer.
type answer struct {
	run, path, source string
	attempt           int
}

type partial struct {
	prefix
	due   int // the length of the text at which fn is called again
	last  int // the size of the value at the last call of fn
	shown bool
}

// Wants implements Watcher.
func (w *partials[T]) Wants(_ context.Context, level slog.Level) bool {
	return level == LevelDelta || level == slog.LevelInfo
}

// Watch implements Watcher.
func (w *partials[T]) Watch(_ context.Context, e Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch d := e.Data.(type) {
	case Delta:
		if d.Kind == Text && (w.step == "" || w.step == e.Name) {
			w.hear(answer{e.Run, e.Path, d.Source, d.Attempt}, d.Text)
		}
	case Retracted:
		w.end(e.Run, func(a answer) bool { return d.Covers(e.Path, a.path, a.source, a.attempt) }, cmp.Or(d.Reason, "retracted"))
	case RunEnded:
		w.end(e.Run, func(answer) bool { return true }, "")
	}
}

// hear adds a piece to its answer and calls fn if the value has grown enough.
func (w *partials[T]) hear(a answer, piece string) {
	p := w.answers[a]
	if p == nil {
		p = new(partial)
		w.answers[a] = p
	}
	if p.state >= complete {
		return
	}
	p.add(piece)
	over := p.state >= complete
	if size := p.size(); p.state != broken && (over || len(p.text) >= p.due && size > p.last) {
		p.due, p.last = len(p.text)+max(1, len(p.text)/16), size
		if v, ok := w.decode(&p.prefix); ok {
			p.shown = true
			w.fn(Partial[T]{Path: a.path, Source: a.source, Attempt: a.attempt, Value: v, Complete: over})
		}
	}
	if over {
		p.text = nil // only a retraction may follow
	}
}

// decode decodes the value. It omits a cut-off string that T does not accept.
func (w *partials[T]) decode(p *prefix) (v T, ok bool) {
	for _, strings := range []bool{true, false} {
		data := p.value(strings)
		if w.wrapped && len(data) > 0 && data[0] == '{' {
			var in struct{ Value json.RawMessage }
			if json.Unmarshal(data, &in) == nil {
				data = in.Value
			}
		}
		if len(data) == 0 {
			continue
		}
		v = *new(T)
		if json.Unmarshal(data, &v) == nil {
			return v, true
		}
	}
	return v, false
}

// end removes answers from memory. If reason is not empty, their values are retracted.
func (w *partials[T]) end(run string, ends func(answer) bool, reason string) {
	for a, p := range w.answers {
		if a.run != run || !ends(a) {
			continue
		}
		delete(w.answers, a)
		if p.shown && reason != "" {
			w.fn(Partial[T]{Path: a.path, Source: a.source, Attempt: a.attempt, Retracted: reason})
		}
	}
}
