package stone

import (
	"slices"
	"sync"

	"github.com/stonelayer/stone/event"
)

// This file keeps the account of what is said in steps before it is accepted, so
// that what fails can take it back. It is kept only while somebody listens.

// said is what has been said at a frame and below.
type said struct {
	voices []voice // at the frame itself
	live   int     // answers, here and below, that are not retracted
	void   bool    // nothing more counts
}

type voice struct {
	source  string
	attempt int
}

// words guards what is said in a run, and keeps the order in which it is told.
type words struct{ sync.Mutex }

func (f *frame) said() *said {
	x := f.more()
	if x.said == nil {
		x.said = new(said)
	}
	return x.said
}

// void reports whether what is said at f counts no more.
func (f *frame) void() bool {
	for ; f != nil; f = f.up {
		if x := f.extra.Load(); x != nil && x.said != nil && x.said.void {
			return true
		}
	}
	return false
}

// count changes the number of answers that may have to be taken back.
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

// takeBack retracts what was said in a leaf, or an attempt, that failed.
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
