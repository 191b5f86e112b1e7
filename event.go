package stone

import (
	"log/slog"
	"strconv"

	"github.com/stonelayer/stone/budget"
	"github.com/stonelayer/stone/dag"
	"github.com/stonelayer/stone/event"
)

// spanned returns the frame whose span f is in. Lanes have spans of their own;
// frames of glue, and those that only mark a round, a branch, an attempt or a step, have
// not.
func (f *frame) spanned() *frame {
	for f.up != nil && (f.up.spec == f.spec && f.seg != visitSegment || f.seg == stepSegment || f.spec.glue) && !f.lane() {
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
	default:
		f.tell(f.spanned().spec.name, f.path(), data)
	}
}

func (f *frame) tell(name, path string, data event.Data) {
	f.run.stream.Send(event.Event{Path: path, Name: name, Span: f.spanID(), Parent: f.parentSpanID(), Data: data})
}

// started sends the event of a visit and returns the function that sends the event of
// its end, nil if no watcher wants them.
func (f *frame) started() func(dag.DAG) {
	if f.spec.glue || !f.Wants(slog.LevelDebug) {
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
				done.Usage = usageIn(d.Latest().Meta())
			}
		}
		f.Send(done)
	}
}

// usageIn reads the usage that agents and calls note in the meta of their nodes.
func usageIn(meta map[string]string) (u budget.Usage) {
	// A missing value, or one that is not a number, counts as zero.
	u.InputTokens, _ = strconv.Atoi(meta["input-tokens"])
	u.OutputTokens, _ = strconv.Atoi(meta["output-tokens"])
	u.USD, _ = strconv.ParseFloat(meta["usd"], 64)
	return u.Sane()
}

// laneStarted is started for a lane. The parameter lost of the returned function tells
// whether the run continues without the lane.
func (f *frame) laneStarted(lanes int) func(ok, lost bool) {
	if !f.Wants(slog.LevelDebug) {
		return nil
	}
	start := f.run.now()
	f.Send(event.LaneStarted{Lane: int(f.index), Lanes: lanes})
	return func(ok, lost bool) {
		f.Send(event.LaneEnded{Lane: int(f.index), Lanes: lanes, Elapsed: f.run.now().Sub(start), OK: ok, Lost: lost})
	}
}

// runStarted is started for the run.
func (f *frame) runStarted(p Ashlar) func(dag.DAG) {
	if !f.Wants(slog.LevelInfo) {
		return nil
	}
	fingerprint, start := p.Fingerprint().String(), f.run.now()
	f.Send(event.RunStarted{Fingerprint: fingerprint})
	return func(d dag.DAG) {
		f.Send(event.RunEnded{Fingerprint: fingerprint, Elapsed: f.run.now().Sub(start), OK: !d.InFlight()})
	}
}

// failed sends the event of a failure.
func (f *frame) failed(failure *Failure) {
	if f.Wants(slog.LevelError) {
		f.tell(f.spec.name, failure.Path, event.StepFailed{Kind: string(failure.Kind), Reason: failure.Reason})
	}
}

// triedInVain sends the event of an attempt after which a leaf is tried again.
func (f *frame) triedInVain(attempt int, err error) {
	if f.Wants(slog.LevelWarn) {
		failure := failureOf(err, f.path())
		f.tell(f.spec.name, failure.Path, event.AttemptFailed{Attempt: attempt, Kind: string(failure.Kind), Reason: failure.Reason})
	}
}
