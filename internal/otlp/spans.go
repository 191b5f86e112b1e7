package otlp

import (
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"time"

	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/spans"
)

// An emitter is a [spans.Emitter] that hands each span to emit when it has ended.
type emitter struct{ emit func(*span) }

// Start implements spans.Emitter. The id is a hash of the whole event, its number and time included,
// since turns and attempts of one ashlar share the ids in the file.
func (m emitter) Start(up spans.Span, name string, client bool, at time.Time, first event.Event) spans.Span {
	trace, id := sha256.Sum256([]byte("stone\x00"+first.Run)), sha256.Sum256(first.Line(true))
	sp := &span{TraceID: hex.EncodeToString(trace[:16]), SpanID: hex.EncodeToString(id[:8]), Name: name, Kind: internalKind, Start: since1970(at), emit: m.emit}
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
func (sp *span) Set(attrs []slog.Attr) { sp.Attrs.add(attrs) }

// Happened implements spans.Span.
func (sp *span) Happened(name string, at time.Time, attrs []slog.Attr) {
	if len(sp.Events) == maxEvents {
		sp.Dropped++
		return
	}
	h := happening{Time: since1970(at), Name: name}
	h.Attrs.add(attrs)
	sp.Events = append(sp.Events, h)
}

// End implements spans.Span.
func (sp *span) End(at time.Time, kind, reason string) {
	sp.Ended = since1970(at)
	if kind != "" {
		sp.Status = &status{statusError, cut(reason)}
	}
	sp.emit(sp)
}

// since1970 is 0 for times before, and for no time.
func since1970(t time.Time) nanoseconds {
	if t.IsZero() {
		return 0
	}
	return nanoseconds(max(t.UnixNano(), 0))
}
