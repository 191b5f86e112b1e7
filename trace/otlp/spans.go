package otlp

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/stonelayer/stone/trace"
)

// spans makes spans of events and hands each to emit when it has ended.
type spans struct {
	emit func(*span) error
	runs map[string]*run // those with open spans, by the id of the trace
	now  nanoseconds     // of the last event with a time
}

// A run has the open spans of a trace.
type run struct {
	traceID string
	root    *span
	open    map[string]*span
	seq     int
	last    nanoseconds
}

// openers maps the events that start a span to the events that end it.
var openers = map[string]string{
	"run-start":          "run-end",
	"ashlar-start":       "ashlar-end",
	"lane-start":         "lane-end",
	"agent-ashlar-start": "agent-ashlar-end",
	"api-call":           "api-response",
}

var closers = map[string]bool{
	"run-end": true, "ashlar-end": true, "lane-end": true, "agent-ashlar-end": true, "api-response": true,
}

// wholes are the events that end an activity whose start has no event.
var wholes = map[string]bool{"tool-dispatch": true, "call-attempt": true}

// payloads are the events whose contents stay in the file.
var payloads = map[string]bool{"api-call-payload": true, "api-response-payload": true, "tool-dispatch-payload": true}

// add processes the next event of the file.
func (s *spans) add(e trace.Event) error {
	typ := e.Type()
	if payloads[typ] {
		return nil
	}
	at := s.time(e)
	r := s.run(e)
	err := s.place(r, e, typ, at)
	r.last = max(r.last, at)
	if len(r.open) == 0 {
		delete(s.runs, text(e, "trace-id"))
	}
	return err
}

func (s *spans) place(r *run, e trace.Event, typ string, at nanoseconds) error {
	key := keyOf(e, typ)
	switch {
	case openers[typ] != "":
		return s.begin(r, e, typ, key, at)
	case closers[typ]:
		return s.conclude(r, e, typ, key, at)
	case wholes[typ]:
		return s.whole(r, e, typ, at)
	}
	sp := r.around(e, key)
	if sp == nil {
		return s.whole(r, e, typ, at)
	}
	sp.happened(e, typ, at)
	if sp.End > 0 && tellsFailure(e, typ) {
		return s.end(r, sp, true, sp.End)
	}
	return nil
}

// conclude processes an event that ends a span.
func (s *spans) conclude(r *run, e trace.Event, typ, key string, at nanoseconds) error {
	sp := r.open[key]
	if sp == nil { // the file lacks its start
		return s.whole(r, e, typ, at)
	}
	sp.describe(e)
	if sp.closer != typ { // an agent ends before its leaf
		return nil
	}
	bad := e.Data["ok"] == false
	if bad && typ == "agent-ashlar-end" {
		sp.End = max(sp.Start, at) // the event with the reason follows
		return nil
	}
	if typ == "run-end" {
		delete(r.open, key)
		if err := s.abandon(r); err != nil {
			return err
		}
	}
	return s.end(r, sp, bad, at)
}

// begin starts a span, or adds the event to the span to which it belongs.
func (s *spans) begin(r *run, e trace.Event, typ, key string, at nanoseconds) error {
	if typ == "run-start" { // spans left open by a process that died; the run was then resumed
		if err := s.abandon(r); err != nil {
			return err
		}
	}
	old := r.open[key]
	if old != nil && old.closer != openers[typ] { // an agent starts after its leaf
		old.describe(e)
		return nil
	}
	if old != nil {
		if err := s.leave(r, old); err != nil {
			return err
		}
	}
	sp := r.span(e, typ, at)
	sp.key, sp.closer = key, openers[typ]
	r.open[key] = sp
	if typ == "run-start" {
		r.root = sp
	}
	return nil
}

// whole emits a span that has only one event.
func (s *spans) whole(r *run, e trace.Event, typ string, at nanoseconds) error {
	sp := r.span(e, typ, at-elapsed(e))
	if tellsFailure(e, typ) {
		sp.failure = failureOf(e)
	}
	bad := e.Data["ok"] == false || sp.failure.kind != ""
	return s.end(r, sp, bad, at)
}

// end emits a span. The span around it may fail for the same reason.
func (s *spans) end(r *run, sp *span, bad bool, at nanoseconds) error {
	sp.End = max(sp.Start, at)
	if bad {
		if sp.failure.kind == "" {
			sp.failure.kind = otherError
		} else if sp.up != nil {
			sp.up.failure = sp.failure
		}
		sp.Status = &status{statusError, cut(sp.failure.reason)}
		sp.Attrs.set(ErrorType, sp.failure.kind)
	}
	if r.open[sp.key] == sp {
		delete(r.open, sp.key)
	}
	if r.root == sp {
		r.root = nil
	}
	return s.emit(sp)
}

// leave ends a span whose end, or whose reason for it, is not in the file.
func (s *spans) leave(r *run, sp *span) error {
	if sp.End > 0 {
		return s.end(r, sp, true, sp.End)
	}
	sp.failure, sp.up = failure{unfinished, "the trace does not contain its end"}, nil
	return s.end(r, sp, true, r.last)
}

// abandon leaves all spans of a run, the innermost first.
func (s *spans) abandon(r *run) error {
	open := slices.SortedFunc(maps.Values(r.open), func(a, b *span) int { return b.seq - a.seq })
	for _, sp := range open {
		if err := s.leave(r, sp); err != nil {
			return err
		}
	}
	return nil
}

// finish leaves the spans that are open at the end of the file.
func (s *spans) finish() error {
	for _, id := range slices.Sorted(maps.Keys(s.runs)) {
		if err := s.abandon(s.runs[id]); err != nil {
			return err
		}
	}
	return nil
}

func (s *spans) run(e trace.Event) *run {
	id := text(e, "trace-id")
	r := s.runs[id]
	if r == nil {
		sum := sha256.Sum256([]byte("stone\x00" + id))
		r = &run{traceID: hex.EncodeToString(sum[:16]), open: map[string]*span{}}
		s.runs[id] = r
	}
	return r
}

// time returns the time of the event, or else the previous event's.
func (s *spans) time(e trace.Event) nanoseconds {
	const year2200 = 7_258_118_400_000
	if ms := e.Timestamp(); ms > 0 && ms < year2200 {
		s.now = nanoseconds(math.Round(ms*1000)) * 1000
	}
	return s.now
}

// around returns the open span in which an event happened, or nil.
func (r *run) around(e trace.Event, key string) *span {
	for _, k := range []string{key, text(e, "span-id"), text(e, "parent-span-id")} {
		if sp := r.open[k]; sp != nil {
			return sp
		}
	}
	return r.root
}

// span makes the span that starts with the event. Its id is a hash of the whole event,
// its time included, since turns and attempts of one ashlar share the ids in the file.
func (r *run) span(e trace.Event, typ string, at nanoseconds) *span {
	data, err := json.Marshal(e.Data) // sorts the keys
	if err != nil {
		data = []byte(typ) // data that was read from JSON always has JSON
	}
	sum := sha256.Sum256(append(data, e.Message...))
	r.seq++
	sp := &span{TraceID: r.traceID, SpanID: hex.EncodeToString(sum[:8]), Kind: internalKind, Start: max(at, 0), seq: r.seq}
	switch typ {
	case "run-start", "run-end": // the root
	case "api-call", "api-response", "tool-dispatch", "call-attempt":
		sp.up = r.around(e, text(e, "span-id")) // a part of its ashlar
	default:
		sp.up = r.around(e, text(e, "parent-span-id"))
	}
	if sp.up != nil {
		sp.Parent = sp.up.SpanID
	}
	sp.describe(e)
	return sp
}

// keyOf distinguishes turns of an ashlar from the ashlar.
func keyOf(e trace.Event, typ string) string {
	key := text(e, "span-id")
	switch typ {
	case "api-call", "api-response", "streaming-progress", "api-restart":
		if turn, ok := e.Data["turn-number"].(json.Number); ok {
			key += "\x00" + string(turn)
		}
	}
	return key
}

// elapsed returns the duration in the event, which is in milliseconds.
func elapsed(e trace.Event) nanoseconds {
	for _, key := range []string{"elapsed", "latency-ms"} {
		if n, ok := e.Data[key].(json.Number); ok {
			if ms, err := n.Float64(); err == nil && ms > 0 && ms < 1e12 {
				return nanoseconds(ms * 1e6)
			}
		}
	}
	return 0
}

// tellsFailure reports whether the event is a failure, or the end of an attempt or a call
// that failed.
func tellsFailure(e trace.Event, typ string) bool {
	switch typ {
	case "failure", "attempt-failed":
		return true
	case "call-attempt", "call-verdict":
		v := e.Data["failure"]
		return v != nil && v != ""
	}
	return false
}

// failureOf reads a failure from kind and reason, or from a field "failure" that is an
// object of those, a kind, or "kind: reason". The kind must be the same for equal
// failures, so that spans can be counted by it.
func failureOf(e trace.Event) failure {
	f := failure{text(e, "kind"), text(e, "reason")}
	switch v := e.Data["failure"].(type) {
	case string:
		kind, reason, _ := strings.Cut(v, ": ")
		f = failure{cmp.Or(f.kind, kind), cmp.Or(f.reason, reason)}
	case map[string]any:
		kind, _ := v["kind"].(string)
		reason, _ := v["reason"].(string)
		f = failure{cmp.Or(f.kind, kind), cmp.Or(f.reason, reason)}
	}
	f.kind = cmp.Or(f.kind, otherError)
	return f
}

func text(e trace.Event, key string) string {
	s, _ := e.Data[key].(string)
	return s
}
