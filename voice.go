package stone

import (
	"slices"
	"sync"

	"github.com/stonelayer/stone/event"
)

// This file counts the answers that steps stream before they are accepted, so that a
// failed step can retract them. It does so only while a watcher wants deltas.

// said has the answers that were streamed at a frame and below it.
type said struct {
	voices []voice // at the frame itself
	live   int     // answers, here and below, that are not retracted
	void   bool    // all are retracted, and later deltas are dropped
}

type voice struct {
	source  string
	attempt int
}

// words guards the deltas of a run and keeps them and their retractions in order.
type words struct{ sync.Mutex }

func (f *frame) said() *said {
	x := f.more()
	if x.said == nil {
		x.said = new(said)
	}
	return x.said
}

// void reports whether deltas at f are dropped.
func (f *frame) void() bool {
	for ; f != nil; f = f.up {
		if x := f.extra.Load(); x != nil && x.said != nil && x.said.void {
			return true
		}
	}
	return false
}

// count changes the number of answers that are not retracted.
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

// takeBack retracts the answers of a failed leaf or attempt.
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
