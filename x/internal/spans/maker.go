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
	// Start starts a span with the given name as a child of up, or a root span if up is nil. The span begins at the time at, with the event first.
	Start(up Span, name string, client bool, at time.Time, first event.Event) Span
}

// A Span is a started span.
type Span interface {
	SetName(name string)
	// Set sets attributes: strings, booleans, int64, float64, lists of strings and anything else that encoding/json can write. If
	// a key is set twice, the last value is used.
	Set(attrs []slog.Attr)
	Happened(name string, at time.Time, attrs []slog.Attr)
	// End ends the span. If kind is not empty, the span has failed with this kind and reason.
	End(at time.Time, kind, reason string)
}

// A Maker converts events to spans. It must be used by only one goroutine at a time.
type Maker struct {
	// Messages adds attributes with the texts that models and tools have received and returned.
	Messages bool

	out  Emitter
	runs map[string]*run // runs with open spans, by run ID
	now  time.Time       // time of the last event that has one
}

// New returns a Maker that starts spans with the given emitter.
func New(out Emitter) *Maker { return &Maker{out: out, runs: map[string]*run{}} }

// A run contains the open spans of one run.
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
	key          string // key of the span, unique among the open spans of its run
	up           *span  // enclosing open span; nil for a root span
	of           activity
	seq          int       // number of the span in its run
	start        time.Time // start of the span
	ended        time.Time // end of a failed agent whose failure reason is not known yet
	kind, reason string    // kind and reason of the last failure
	genAI        bool      // attributes have conventional names
}

// An activity is something that has a span: a run, a step, a lane, a model request or a tool call.
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

// starts returns the activity that starts with the event, or none.
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

// ends returns the activity that ends with the event, whether it succeeded, and its duration.
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

// Finish ends all open spans. It must be called after the last event.
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

// begin starts a span, or adds the event to an open span that it belongs to.
func (r *run) begin(e event.Event, of activity, at time.Time) {
	if started, ok := e.Data.(event.RunStarted); ok { // the run was resumed: end the spans that a dead process has left open
		r.abandon()
		r.conversation = started.Conversation
	}
	key := keyOf(e)
	old := r.open[key]
	if old != nil && old.of == aRun && of == anAgent { // the pipeline itself is an agent
		key += agentKey
		old = r.open[key]
	}
	if old != nil && old.of != of { // the leaf of an agent starts first, and shares its span with the agent
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

// conclude processes an event that ends a span. If the start is missing, the event alone becomes a span.
func (r *run) conclude(e event.Event, of activity, ok bool, at time.Time, lasted time.Duration) {
	sp := r.open[keyOf(e)]
	if of == anAgent && sp != nil && sp.of == aRun {
		sp = r.open[keyOf(e)+agentKey]
	}
	if of == aRun { // an abandoned body may still be working
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
	case sp.of != of: // the agent ends before its leaf, with which it shares a span
		r.describe(sp, e)
		return
	default:
		r.describe(sp, e)
		if of == anAgent && !ok {
			sp.ended = at // the event with the failure's reason follows
			return
		}
	}
	r.end(sp, ok, at)
}

// end ends a span. If the span has failed, the span around it may fail for the same reason.
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

// leave ends a span whose end event, or whose failure reason, is missing.
func (r *run) leave(sp *span) {
	if !sp.ended.IsZero() {
		r.end(sp, false, sp.ended)
		return
	}
	sp.kind, sp.reason, sp.up = unfinished, "the trace does not contain its end", nil
	r.end(sp, false, r.last)
}

// abandon calls leave for all open spans of a run, innermost first.
func (r *run) abandon() {
	for _, sp := range slices.SortedFunc(maps.Values(r.open), func(a, b *span) int { return b.seq - a.seq }) {
		r.leave(sp)
	}
}

// around returns the open span for the first key that has one. If no key has an open span, it returns the root span, or nil if
// the root span is not open.
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
	case aTurn, aTool, anAttempt: // such a span is below the span of its ashlar
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

// agentKey distinguishes an agent's span from the span of its run if the pipeline itself is an agent.
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

// keyOf returns the key of an event's span. It distinguishes the turns and tool calls of an ashlar from the ashlar itself.
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

// failure returns the kind and the reason of an event's failure. In the event of a failed call, both are in one string: "kind" or
// "kind: reason".
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

// fail records a failure of the span. If the kind is empty, it does nothing.
func (sp *span) fail(kind, reason string) {
	if kind != "" {
		sp.kind, sp.reason = kind, reason
	}
}
