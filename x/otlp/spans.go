package otlp

import (
	"crypto/sha256"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/x/internal/spans"
)

// An emitter is a [spans.Emitter] that hands each span to emit when it has ended.
type emitter struct {
	emit func(*span)
	held *atomic.Int64 // bytes of spans in memory; nil does not count
}

// Start implements spans.Emitter. The id is a hash of the whole event, including its number and time, because turns and attempts
// of one ashlar share the ids in the file.
func (m emitter) Start(up spans.Span, name string, client bool, at time.Time, first event.Event) spans.Span {
	trace, id := sha256.Sum256([]byte("stone\x00"+first.Run)), sha256.Sum256(first.Line(true))
	sp := &span{TraceID: trace[:16], SpanID: id[:8], Name: name, Kind: internalKind, Start: since1970(at), emitter: m}
	sp.grow(spanSize)
	if client {
		sp.Kind = clientKind
	}
	if up, ok := up.(*span); ok {
		sp.Parent = up.SpanID
	}
	return sp
}

// SetName implements spans.Span.
func (sp *span) SetName(name string) { sp.Name = name }

// Set implements spans.Span.
func (sp *span) Set(attrs []slog.Attr) {
	if sp.full() {
		sp.DroppedAttrs += len(attrs)
		return
	}
	sp.grow(sp.Attrs.add(attrs))
}

// Happened implements spans.Span.
func (sp *span) Happened(name string, at time.Time, attrs []slog.Attr) {
	if len(sp.Events) == maxEvents || sp.full() {
		sp.Dropped++
		return
	}
	h := happening{Time: since1970(at), Name: name}
	sp.grow(h.Attrs.add(attrs) + len(name))
	sp.Events = append(sp.Events, h)
}

// grow adds to the span's bytes.
func (sp *span) grow(n int) {
	sp.size += n
	if sp.held != nil {
		sp.held.Add(int64(n))
	}
}

// full reports whether the spans in memory take more bytes than allowed.
func (sp *span) full() bool { return sp.held != nil && sp.held.Load() > maxHeld }

// End implements spans.Span.
func (sp *span) End(at time.Time, kind, reason string) {
	sp.Ended = since1970(at)
	if kind != "" {
		sp.Status = &status{statusError, cut(reason)}
	}
	sp.emit(sp)
}

// since1970 is 0 for earlier times and for the zero time.
func since1970(t time.Time) integer {
	if t.IsZero() {
		return 0
	}
	return integer(max(t.UnixNano(), 0))
}
