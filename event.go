package stone

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
	"github.com/stonelayer/stone/internal/address"
	"github.com/stonelayer/stone/internal/bounds"
)

// spanned returns the nearest frame, f or one around it, that has a span. Frames of glue, of a Reduce, and of rounds, branches,
// attempts and steps have no span of their own; lanes do.
func (f *frame) spanned() *frame {
	for f.up != nil && (f.up.spec == f.spec && f.seg != visitSegment || f.seg == stepSegment || f.spec.glue || f.spec.form == reduceForm) && !f.lane() {
		f = f.up
	}
	return f
}

func (f *frame) lane() bool {
	return f.seg == indexSegment && (f.spec.form == mapForm || f.spec.form == parallelForm)
}

func (f *frame) spanID() string {
	span := &f.spanned().more().span
	n := span.Load()
	for n == 0 {
		span.CompareAndSwap(0, f.run.spans.Add(1))
		n = span.Load()
	}
	return f.run.spanPrefix + strconv.FormatUint(n, 10)
}

func (f *frame) parentSpanID() string {
	if up := f.spanned().up; up != nil {
		return up.spanID()
	}
	return f.run.parent
}

// Wants implements event.Sender.
func (f *frame) Wants(level slog.Level) bool { return f.run.stream.Wants(level) }

// Send implements event.Sender.
func (f *frame) Send(data event.Data) {
	switch d := data.(type) {
	case event.Delta:
		f.say(d)
	case event.Retracted:
		f.unsay(d)
	case event.Notice:
		f.notice(d)
	default:
		f.tell(f.spanned().spec.name, f.path(), data)
	}
}

// maxNotices is the maximum number of notices in a run, and maxNotice the maximum length of a notice in bytes.
const maxNotices, maxNotice = 100, 4 << 10

// notices collects the notices of a run.
type notices struct {
	mu  sync.Mutex
	all []event.Notice
}

// notice adds a notice to the run's result and sends it, unless the run already has maxNotices notices, or one with the same code
// at the same place.
func (f *frame) notice(n event.Notice) {
	if n.Path == "" {
		n.Path = f.path()
	}
	n.Text = bounds.Cut(n.Text, maxNotice)
	kept := &f.run.notices
	kept.mu.Lock()
	known := len(kept.all) >= maxNotices || slices.ContainsFunc(kept.all, func(k event.Notice) bool {
		return k.Code == n.Code && address.Place(k.Path) == address.Place(n.Path)
	})
	if !known {
		kept.all = append(kept.all, n)
	}
	kept.mu.Unlock()
	if !known && f.Wants(slog.LevelWarn) {
		f.tell(f.spanned().spec.name, n.Path, n)
	}
}

func (f *frame) tell(name, path string, data event.Data) {
	f.run.tell(event.Event{Path: path, Name: name, Span: f.spanID(), Parent: f.parentSpanID(), Data: data})
}

// started sends the start event of a visit and returns a function that sends its end event. If no watcher wants events, started
// returns nil.
func (f *frame) started() func(dag.DAG) {
	if f.spec.glue || f.spec.form == reduceForm || !f.Wants(slog.LevelDebug) {
		return nil
	}
	form, start := formNames[f.spec.form], f.run.now()
	f.Send(event.StepStarted{Form: form})
	return func(d dag.DAG) {
		done := event.StepDone{Form: form, Elapsed: f.run.now().Sub(start), OK: !d.InFlight()}
		if f.spec.form == leafForm {
			x := f.extra.Load()
			done.Replayed = x != nil && x.replayed
			if done.OK {
				done.Usage, done.Result = usageIn(d.Latest().Meta()), factsOf(d.Latest())
			}
		}
		f.Send(done)
	}
}

// factsOf returns up to three booleans and numbers of a short result, such as "passed=false". They indicate the outcome without
// revealing any text of the result.
func factsOf(n *dag.Node) string {
	const most, long, maxName = 3, 4 << 10, 80 // the maximum number of facts, size of the result and length of a name, in bytes
	if len(n.Content()) > long {
		return ""
	}
	v, _ := n.At()
	object, ok := v.(map[string]any)
	if !ok {
		object = map[string]any{"": v}
	}
	var facts []string
	for _, name := range slices.Sorted(maps.Keys(object)) {
		switch v := object[name].(type) {
		case bool, json.Number:
			facts = append(facts, strings.TrimPrefix(fmt.Sprintf("%s=%v", bounds.Cut(name, maxName), v), "="))
		}
	}
	return strings.Join(facts[:min(len(facts), most)], " ")
}

// usageIn returns the usage in the meta of a node that an agent or a call has produced.
func usageIn(meta map[string]string) (u budget.Usage) {
	// A missing value, or one that is not a number, counts as zero.
	u.InputTokens, _ = strconv.Atoi(meta["input-tokens"])
	u.OutputTokens, _ = strconv.Atoi(meta["output-tokens"])
	u.USD, _ = strconv.ParseFloat(meta["usd"], 64)
	return u.Sane()
}

// laneStarted is like started, but for a lane. The lost parameter of the returned function tells whether the run continues
// without the lane.
func (f *frame) laneStarted(at dag.DAG, lanes int) func(ok, lost bool) {
	if !f.Wants(slog.LevelDebug) {
		return nil
	}
	start := f.run.now()
	f.Send(event.LaneStarted{Lane: int(f.index), Lanes: lanes, Label: f.laneLabel(at)})
	return func(ok, lost bool) {
		f.Send(event.LaneEnded{Lane: int(f.index), Lanes: lanes, Elapsed: f.run.now().Sub(start), OK: ok, Lost: lost})
	}
}

// laneLabel returns a label for a lane: the name of a Parallel's branch, or text from a Map's item.
func (f *frame) laneLabel(at dag.DAG) string {
	if f.spec.form == parallelForm {
		return f.spec.children[f.index].Name()
	}
	return bounds.Label(at.Latest().Content())
}

// runStarted is like started, but for the whole run.
func (f *frame) runStarted(p Ashlar) func(dag.DAG) {
	if !f.Wants(slog.LevelInfo) {
		return nil
	}
	fingerprint, start := p.Fingerprint().String(), f.run.now()
	f.Send(event.RunStarted{Fingerprint: fingerprint, Conversation: f.run.conversation})
	return func(d dag.DAG) {
		f.Send(event.RunEnded{Fingerprint: fingerprint, Elapsed: f.run.now().Sub(start), OK: !d.InFlight()})
	}
}

// This file counts the answers that steps stream before they are accepted, so that a
// failed step can retract them. It does so only while a watcher wants deltas.

// said holds the answers that were streamed at a frame and counts those below it.
type said struct {
	voices []voice // the answers streamed at the frame itself
	live   int     // the number of answers, here and below, that are not retracted
	void   bool    // whether all answers are retracted; later deltas are then dropped
}

type voice struct {
	source  string
	attempt int
}

// words is the lock that keeps the deltas and retractions of a run in order.
type words struct{ sync.Mutex }

func (f *frame) said() *said {
	x := f.more()
	if x.said == nil {
		x.said = new(said)
	}
	return x.said
}

// void reports whether deltas at f are dropped because its answers were retracted.
func (f *frame) void() bool {
	for ; f != nil; f = f.up {
		if x := f.extra.Load(); x != nil && x.said != nil && x.said.void {
			return true
		}
	}
	return false
}

// count adds n to the number of answers, at f and all frames around it, that are not retracted.
func (f *frame) count(by int) {
	for ; f != nil; f = f.up {
		f.said().live += by
	}
}

func (f *frame) say(d event.Delta) {
	if !f.Wants(event.LevelDelta) {
		return
	}
	f.run.words.Lock()
	defer f.run.words.Unlock()
	if f.void() {
		return
	}
	s, v := f.said(), voice{d.Source, d.Attempt}
	if !slices.Contains(s.voices, v) {
		s.voices = append(s.voices, v)
		f.count(1)
	}
	f.tell(f.spanned().spec.name, f.path(), d)
}

func (f *frame) unsay(d event.Retracted) {
	f.run.words.Lock()
	defer f.run.words.Unlock()
	s := f.said()
	i := slices.Index(s.voices, voice{d.Source, d.Attempt})
	if i < 0 || f.void() {
		return
	}
	s.voices = slices.Delete(s.voices, i, i+1)
	f.count(-1)
	f.tell(f.spanned().spec.name, f.path(), d)
}

// takeBack retracts the answers that a failed leaf or attempt has streamed.
func (f *frame) takeBack(err error) {
	if f.Wants(event.LevelDelta) {
		f.Retract(failureOf(err, "").Reason)
	}
}

// Retract implements event.Sender.
func (f *frame) Retract(reason string) {
	if !f.Wants(event.LevelDelta) {
		return
	}
	f.run.words.Lock()
	defer f.run.words.Unlock()
	if f.void() {
		return
	}
	s := f.said()
	s.void = true
	if s.live > 0 {
		f.count(-s.live)
		f.tell(f.spanned().spec.name, f.path(), event.Retracted{Reason: reason})
	}
}
