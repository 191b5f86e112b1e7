package otlp

import (
	"crypto/sha256"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/x/internal/spans"
)

// An emitter is a [spans.Emitter] that passes each ended span to emit.
type emitter struct {
	emit func(*span)
	held *atomic.Int64 // size in bytes of all spans in memory; if nil, the size is not counted
}

// Start implements spans.Emitter. The span ID is a hash of the whole event, including its number and time, because the turns and
// attempts of an ashlar have the same IDs in the file.
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

// grow adds n bytes to the size of the span.
func (sp *span) grow(n int) {
	sp.size += n
	if sp.held != nil {
		sp.held.Add(int64(n))
	}
}

// full reports whether the spans in memory exceed the size limit.
func (sp *span) full() bool { return sp.held != nil && sp.held.Load() > maxHeld }

// End implements spans.Span.
func (sp *span) End(at time.Time, kind, reason string) {
	sp.Ended = since1970(at)
	if kind != "" {
		sp.Status = &status{statusError, cut(reason)}
	}
	sp.emit(sp)
}

// since1970 returns the nanoseconds since 1970, or 0 for earlier times and for the zero time.
func since1970(t time.Time) integer {
	if t.IsZero() {
		return 0
	}
	return integer(max(t.UnixNano(), 0))
}
