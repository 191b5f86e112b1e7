package repetition

import "github.com/stonelayer/stone/llm"

// Watcher feeds one text to both detectors. A nil detector is skipped. A Watcher is not
// safe for concurrent use.
type Watcher struct {
	NGram       *NGram
	Compression *Compression
	OnTrip      func(llm.RepetitionHit) // called once, at the first trip of either; may be nil

	hit *llm.RepetitionHit
}

// New returns a Watcher with both detectors at their defaults.
func New() *Watcher {
	return &Watcher{NGram: &NGram{}, Compression: &Compression{}}
}

// Write feeds bytes to the detectors. It never fails.
func (w *Watcher) Write(p []byte) (int, error) {
	if w.hit != nil {
		return len(p), nil
	}
	if w.Compression != nil {
		w.Compression.Write(p)
	}
	if w.NGram != nil {
		w.NGram.Write(p)
		w.note(w.NGram.Tripped())
	}
	return len(p), nil
}

// Tick runs the check of the compression detector. It is called every five seconds.
func (w *Watcher) Tick() {
	if w.hit == nil && w.Compression != nil {
		w.Compression.Check()
		w.note(w.Compression.Tripped())
	}
}

// Tripped returns the first hit of either detector, or nil.
func (w *Watcher) Tripped() *llm.RepetitionHit { return w.hit }

func (w *Watcher) note(hit *llm.RepetitionHit) {
	if hit == nil {
		return
	}
	w.hit = hit
	if w.OnTrip != nil {
		w.OnTrip(*hit)
	}
}
