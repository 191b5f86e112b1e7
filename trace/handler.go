package trace

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// LevelFatal is the slog level of an event that ends the process.
const LevelFatal = slog.LevelError + 4

// A Handler is a [slog.Handler] that writes each record as a line of a trace
// file. The record's message is the event's type, its time the timestamp, its
// attributes go into the data by their keys, and groups become objects there.
//
// Durations are written as milliseconds, errors as their text, []byte and
// [json.RawMessage] as the JSON they contain (or else as a string). An attribute named
// "event" or "timestamp" would hide the record's own and is written with "attr-" before
// its name. A key given twice is written twice; readers take the last.
//
// A Handler may be used by several goroutines at once.
type Handler struct {
	lines *slog.JSONHandler
	out   *lineWriter
	scope []scope // from WithAttrs and WithGroup, outermost first
}

// A scope is one call of WithGroup (group is set) or WithAttrs.
type scope struct {
	group string
	attrs []slog.Attr
}

// NewHandler returns a handler that writes to w the records of at least the
// given level; nil is [slog.LevelInfo]. Each line is one call of w.Write, and
// there is never more than one at a time.
func NewHandler(w io.Writer, level slog.Leveler) *Handler {
	out := &lineWriter{w: w}
	lines := slog.NewJSONHandler(out, &slog.HandlerOptions{Level: level, ReplaceAttr: replaceAttr})
	return &Handler{lines: lines, out: out}
}

// Enabled reports whether records of this level are written.
func (h *Handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.lines.Enabled(ctx, level)
}

// Handle writes one record. Loggers drop the error it returns; [Handler.Err] keeps it.
func (h *Handler) Handle(ctx context.Context, r slog.Record) error {
	data := make([]slog.Attr, 0, r.NumAttrs()+2)
	data = append(data, slog.Any("event", ownText(r.Message)))
	if !r.Time.IsZero() {
		data = append(data, slog.Any("timestamp", ownNumber(float64(r.Time.UnixMicro())/1000)))
	}
	data = append(data, h.attrs(r)...)

	// The zero time keeps the envelope free of slog's own "time".
	line := slog.NewRecord(time.Time{}, r.Level, r.Message, 0)
	line.AddAttrs(slog.String("topic", "stone"), slog.GroupAttrs("data", data...))
	return h.lines.Handle(ctx, line)
}

// attrs returns the record's attributes inside the handler's scopes.
func (h *Handler) attrs(r slog.Record) []slog.Attr {
	attrs := make([]slog.Attr, 0, r.NumAttrs())
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, a)
		return true
	})
	for _, s := range slices.Backward(h.scope) {
		if s.group != "" {
			attrs = []slog.Attr{slog.GroupAttrs(s.group, attrs...)}
		} else {
			attrs = slices.Concat(s.attrs, attrs)
		}
	}
	return attrs
}

// WithAttrs returns a handler whose records have these attributes too.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if len(attrs) == 0 {
		return h
	}
	return h.with(scope{attrs: slices.Clone(attrs)})
}

// WithGroup returns a handler that puts all later attributes, also of records,
// into an object of this name.
func (h *Handler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return h.with(scope{group: name})
}

func (h *Handler) with(s scope) *Handler {
	inner := *h
	inner.scope = append(slices.Clip(h.scope), s)
	return &inner
}

// Err returns the first error of the writer, or nil. Handlers derived from one another
// share it.
func (h *Handler) Err() error {
	h.out.mu.Lock()
	defer h.out.mu.Unlock()
	return h.out.err
}

// The record's own event and timestamp have these types, to distinguish them from
// attributes of the same names.
type (
	ownText   string
	ownNumber float64
)

// replaceAttr turns slog's envelope and values into the form of a trace file.
func replaceAttr(groups []string, a slog.Attr) slog.Attr {
	switch {
	case len(groups) == 0 && a.Key == slog.LevelKey:
		level, _ := a.Value.Any().(slog.Level)
		return slog.String("level", levelName(level))
	case len(groups) == 0 && a.Key == slog.MessageKey:
		a.Key = "message"
		return a
	}
	switch v := a.Value.Any().(type) {
	case ownText, ownNumber:
		return a
	case time.Duration:
		a.Value = slog.Float64Value(float64(v) / float64(time.Millisecond))
	case []byte:
		a.Value = rawJSON(v)
	case json.RawMessage:
		a.Value = rawJSON(v)
	case error:
		// The struct hides a MarshalJSON that the error may have.
		a.Value = slog.AnyValue(struct{ error }{v})
	}
	if len(groups) == 1 && (a.Key == "event" || a.Key == "timestamp") {
		a.Key = "attr-" + a.Key
	}
	return a
}

func rawJSON(b []byte) slog.Value {
	if json.Valid(b) {
		return slog.AnyValue(json.RawMessage(b))
	}
	return slog.StringValue(string(b))
}

func levelName(l slog.Level) string {
	switch {
	case l < slog.LevelInfo:
		return "debug"
	case l < slog.LevelWarn:
		return "info"
	case l < slog.LevelError:
		return "warning"
	case l < LevelFatal:
		return "error"
	}
	return "fatal"
}

// A lineWriter keeps the first error. After a partly written line it starts a new one, so
// that the next line is not lost too.
type lineWriter struct {
	w    io.Writer
	torn bool // the last line has no end

	mu  sync.Mutex // guards err; slog serialises the writes
	err error
}

func (l *lineWriter) Write(line []byte) (int, error) {
	if l.torn {
		line = slices.Concat([]byte{'\n'}, line)
	}
	n, err := l.w.Write(line)
	if err == nil && n < len(line) {
		err = io.ErrShortWrite
	}
	if n > 0 {
		l.torn = !bytes.HasSuffix(line[:min(n, len(line))], []byte{'\n'})
	}
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.err == nil {
			l.err = err
		}
	}
	return n, err
}
