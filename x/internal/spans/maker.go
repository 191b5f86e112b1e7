package spans

import (
	"cmp"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stonelayer/stone/event"
)

// An Emitter starts spans.
type Emitter interface {
	// Start starts a span with the name below up, which is nil at a root. First is the event with which it starts, and at is the
	// time.
	Start(up Span, name string, client bool, at time.Time, first event.Event) Span
}

// A Span is a span that has started.
type Span interface {
	SetName(name string)
	// Set sets attributes: strings, booleans, int64, float64, lists of strings and anything else that encoding/json can write. If
	// a key is set twice, the last value counts.
	Set(attrs []slog.Attr)
	Happened(name string, at time.Time, attrs []slog.Attr)
	// End ends the span. A kind means that it failed.
	End(at time.Time, kind, reason string)
}

// A Maker turns events into spans. Only one goroutine may use it at a time.
type Maker struct {
	// Messages puts the texts of models and tools into attributes.
	Messages bool

	out  Emitter
	runs map[string]*run // those with open spans, by their ids
	now  time.Time       // of the last event with a time
}

// New returns a Maker that starts its spans with the emitter.
func New(out Emitter) *Maker { return &Maker{out: out, runs: map[string]*run{}} }

// A run holds the open spans of a run.
type run struct {
	*Maker
	conversation string

	root *span
	open map[string]*span
	seq  int
	last time.Time
}

type span struct {
	Span
	key          string // unique among the open spans of its run
	up           *span  // the open span around it; nil for a root
	of           activity
	seq          int       // number among the spans of its run
	start        time.Time // of the span
	ended        time.Time // of an agent that waits for the reason of its failure
	kind, reason string    // of the last failure
	genAI        bool      // its attributes have conventional names
}

// An activity has a span: a run, a step, a lane, a model request or a tool call.
type activity int

const (
	none activity = iota
	aRun
	aStep
	aLane
	anAgent
	aTurn
	aTool
	anAttempt
)

// starts returns the activity that starts with the event.
func starts(d event.Data) activity {
	switch d.(type) {
	case event.RunStarted:
		return aRun
	case event.StepStarted:
		return aStep
	case event.LaneStarted:
		return aLane
	case event.AgentStarted:
		return anAgent
	case event.ModelRequest:
		return aTurn
	case event.ToolStarted:
		return aTool
	}
	return none
}

// ends returns the activity that ends with the event, whether it succeeded, and how long it lasted.
func ends(d event.Data) (of activity, ok bool, lasted time.Duration) {
	switch d := d.(type) {
	case event.RunEnded:
		return aRun, d.OK, d.Elapsed
	case event.StepDone:
		return aStep, d.OK, d.Elapsed
	case event.LaneEnded:
		return aLane, d.OK, d.Elapsed
	case event.AgentEnded:
		return anAgent, d.OK, d.Elapsed
	case event.ModelResponse:
		return aTurn, d.OK, d.Elapsed
	case event.ToolDone:
		return aTool, d.OK, d.Elapsed
	case event.CallAttempt:
		return anAttempt, d.Failure == "", d.Latency
	}
	return none, true, 0
}

// Add processes the next event.
func (m *Maker) Add(e event.Event) {
	switch d := e.Data.(type) {
	case event.Delta, event.Retracted:
		return
	case event.ModelResponse:
		if d.Replayed { // the span is in the trace of an earlier run
			return
		}
	}
	if !e.Time.IsZero() {
		m.now = e.Time
	}
	r := m.runs[e.Run]
	if r == nil {
		r = &run{Maker: m, open: map[string]*span{}}
		m.runs[e.Run] = r
	}
	r.take(e, m.now)
	if m.now.After(r.last) {
		r.last = m.now
	}
	if len(r.open) == 0 {
		delete(m.runs, e.Run)
	}
}

// Finish ends all open spans: no more events follow.
func (m *Maker) Finish() {
	for _, id := range slices.Sorted(maps.Keys(m.runs)) {
		m.runs[id].abandon()
	}
	clear(m.runs)
}

func (r *run) take(e event.Event, at time.Time) {
	if of := starts(e.Data); of != none {
		r.begin(e, of, at)
		return
	}
	if of, ok, lasted := ends(e.Data); of != none {
		r.conclude(e, of, ok, at, lasted)
		return
	}
	sp := r.around(keyOf(e), e.Span+agentKey, e.Span, e.Parent)
	kind, reason := failure(e.Data)
	if sp == nil {
		sp = r.span(e, none, at)
		sp.fail(kind, reason)
		r.end(sp, kind == "", at)
		return
	}
	sp.fail(kind, reason)
	sp.Happened(cmp.Or(e.Type(), "event"), at, attributes(e, false, nil))
	if kind != "" && !sp.ended.IsZero() {
		r.end(sp, false, sp.ended)
	}
}

// begin starts a span, or adds the event to the span to which it belongs.
func (r *run) begin(e event.Event, of activity, at time.Time) {
	if started, ok := e.Data.(event.RunStarted); ok { // spans left open by a process that died; the run was then resumed
		r.abandon()
		r.conversation = started.Conversation
	}
	key := keyOf(e)
	old := r.open[key]
	if old != nil && old.of == aRun && of == anAgent { // the pipeline is an agent
		key += agentKey
		old = r.open[key]
	}
	if old != nil && old.of != of { // an agent starts after its leaf
		r.describe(old, e)
		return
	}
	if old != nil {
		r.leave(old)
	}
	sp := r.span(e, of, at)
	sp.key = key
	r.open[key] = sp
	if of == aRun {
		r.root = sp
	}
}

// conclude processes an event that ends a span. Without its start, it is the whole span.
func (r *run) conclude(e event.Event, of activity, ok bool, at time.Time, lasted time.Duration) {
	sp := r.open[keyOf(e)]
	if of == anAgent && sp != nil && sp.of == aRun {
		sp = r.open[keyOf(e)+agentKey]
	}
	if of == aRun { // a body that was abandoned may still work
		if sp != nil && sp.of == aRun {
			delete(r.open, sp.key)
		} else {
			sp = nil
		}
		r.abandon()
	}
	switch {
	case sp == nil:
		sp = r.span(e, of, at.Add(-max(lasted, 0)))
		sp.fail(failure(e.Data))
	case sp.of != of: // an agent ends before its leaf
		r.describe(sp, e)
		return
	default:
		r.describe(sp, e)
		if of == anAgent && !ok {
			sp.ended = at // the event with the reason follows
			return
		}
	}
	r.end(sp, ok, at)
}

// end ends a span. The span around it may fail for the same reason.
func (r *run) end(sp *span, ok bool, at time.Time) {
	if at.Before(sp.start) {
		at = sp.start
	}
	kind, reason := "", ""
	if !ok {
		if sp.up != nil {
			sp.up.fail(sp.kind, sp.reason)
		}
		kind, reason = cmp.Or(sp.kind, otherError), sp.reason
		sp.Set([]slog.Attr{slog.String(ErrorType, kind)})
	}
	if r.open[sp.key] == sp {
		delete(r.open, sp.key)
	}
	if r.root == sp {
		r.root = nil
	}
	sp.End(at, kind, reason)
}

// leave ends a span whose end, or the reason for it, is missing.
func (r *run) leave(sp *span) {
	if !sp.ended.IsZero() {
		r.end(sp, false, sp.ended)
		return
	}
	sp.kind, sp.reason, sp.up = unfinished, "the trace does not contain its end", nil
	r.end(sp, false, r.last)
}

// abandon leaves all spans of a run, the innermost first.
func (r *run) abandon() {
	for _, sp := range slices.SortedFunc(maps.Values(r.open), func(a, b *span) int { return b.seq - a.seq }) {
		r.leave(sp)
	}
}

// around returns the first of those spans that is open, else the root, or nil.
func (r *run) around(keys ...string) *span {
	for _, k := range keys {
		if sp := r.open[k]; sp != nil {
			return sp
		}
	}
	return r.root
}

// span starts the span of an activity.
func (r *run) span(e event.Event, of activity, at time.Time) *span {
	r.seq++
	sp := &span{of: of, seq: r.seq, start: at}
	switch of {
	case aRun:
	case aTurn, aTool, anAttempt: // a part of its ashlar
		sp.up = r.around(e.Span+agentKey, e.Span)
	case anAgent:
		sp.up = r.around(e.Span, e.Parent)
	default:
		sp.up = r.around(e.Parent)
	}
	var up Span
	if sp.up != nil {
		up = sp.up.Span
	}
	name, _ := title(e)
	sp.Span = r.out.Start(up, name, of == aTurn, at, e)
	r.describe(sp, e)
	return sp
}

// agentKey distinguishes the span of an agent from the span of its run.
const agentKey = "\x00agent"

// describe adds the data of the event and its run to the span.
func (r *run) describe(sp *span, e event.Event) {
	var more []slog.Attr
	if request, ok := e.Data.(event.ModelRequest); ok {
		more = asked(request)
	}
	if r.Messages {
		more = append(more, contents(e.Data)...)
	}
	if r.conversation != "" && slices.Contains([]activity{aRun, anAgent, aTurn}, sp.of) {
		more = append(more, slog.String(Conversation, r.conversation))
	}
	sp.describe(e, more...)
}

// keyOf distinguishes turns and tool calls of an ashlar from the ashlar.
func keyOf(e event.Event) string {
	turn := -1
	switch d := e.Data.(type) {
	case event.ModelRequest:
		turn = d.Turn
	case event.ModelResponse:
		turn = d.Turn
	case event.ModelRestarted:
		turn = d.Turn
	case event.Progress:
		turn = d.Turn
	case event.ToolStarted:
		return toolKey(e, d.ToolCall)
	case event.ToolDone:
		return toolKey(e, d.ToolCall)
	}
	if turn < 0 {
		return e.Span
	}
	return fmt.Sprintf("%s\x00%s\x00%d", e.Span, e.Path, turn)
}

func toolKey(e event.Event, c event.ToolCall) string {
	return fmt.Sprintf("%s\x00%s\x00%d\x00%d", e.Span, e.Path, c.Turn, c.Position)
}

// failure returns an event's failure: a kind, the same for equal failures, and a reason. A failed call has "kind" or "kind:
// reason".
func failure(d event.Data) (kind, reason string) {
	switch d := d.(type) {
	case event.StepFailed:
		return cmp.Or(d.Kind, otherError), d.Reason
	case event.AttemptFailed:
		return cmp.Or(d.Kind, otherError), d.Reason
	case event.CallAttempt:
		kind, reason, _ = strings.Cut(d.Failure, ": ")
	case event.CallVerdict:
		kind, reason, _ = strings.Cut(d.Failure, ": ")
	}
	return kind, reason
}

// fail keeps a failure, unless the kind is empty.
func (sp *span) fail(kind, reason string) {
	if kind != "" {
		sp.kind, sp.reason = kind, reason
	}
}
