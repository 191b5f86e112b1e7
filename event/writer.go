package event

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"slices"
	"sync"
)

// A Writer is a [Watcher] that writes each event as a line of a trace file. It omits replayed responses, which belong to an
// earlier run. It may watch several runs at once.
type Writer struct {
	level slog.Leveler

	mu   sync.Mutex
	w    io.Writer
	torn bool // whether the last line is incomplete
	err  error
}

// NewWriter returns a Writer for events of at least the given level; nil means [slog.LevelInfo]. At level debug, lines include
// the contents of requests, responses and tool calls. Each line is one call of w.Write; calls never overlap.
func NewWriter(w io.Writer, level slog.Leveler) *Writer {
	if level == nil {
		level = slog.LevelInfo
	}
	return &Writer{w: w, level: level}
}

// Wants implements Watcher.
func (w *Writer) Wants(_ context.Context, level slog.Level) bool {
	return level > LevelDelta && level >= w.level.Level()
}

// Watch writes the event. If that fails, Err returns the error.
func (w *Writer) Watch(_ context.Context, e Event) {
	if r, ok := e.Data.(ModelResponse); ok && r.Replayed {
		return
	}
	line := append(e.Line(w.level.Level() <= slog.LevelDebug), '\n')
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.torn { // start a new line, so that this event is not lost too
		line = slices.Insert(line, 0, '\n')
	}
	n, err := w.w.Write(line)
	if err == nil && n < len(line) {
		err = io.ErrShortWrite
	}
	if n > 0 {
		w.torn = !bytes.HasSuffix(line[:min(n, len(line))], []byte{'\n'})
	}
	if w.err == nil {
		w.err = err
	}
}

// Err returns the first error that occurred while writing, or nil.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
