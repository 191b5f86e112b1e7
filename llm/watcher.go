package llm

// A Watcher detects, while a model is still writing, that the model repeats itself verbatim or continues without adding anything
// new. It passes the text to both of its detectors, and skips a detector that is nil. A detector that has tripped stays tripped. A
// Watcher is not safe for concurrent use.
//
// [NGram] counts every window of 100 bytes and trips when a window occurs for the fourth time; it is exact and works byte by
// byte. [Compression] deflates the last kilobyte at every tick (five seconds) and trips if the result is below 0.18 of the
// original size at three ticks in a row. [Guard] watches a model. If Repetition is set in a provider's Config, the provider adds
// the guard:
//
//	openai.New(openai.Config{Model: "qwen3", Repetition: llm.NewWatcher})
type Watcher struct {
	NGram       *NGram
	Compression *Compression
	OnTrip      func(RepetitionHit) // called once, when the first detector trips; may be nil

	hit *RepetitionHit
}

// NewWatcher returns a Watcher in which both detectors use their defaults.
func NewWatcher() *Watcher {
	return &Watcher{NGram: &NGram{}, Compression: &Compression{}}
}

// Write passes p to the detectors. The error is always nil.
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

// Tripped returns the repetition that tripped the first detector, or nil if neither has tripped.
func (w *Watcher) Tripped() *RepetitionHit { return w.hit }

func (w *Watcher) note(hit *RepetitionHit) {
	if hit == nil {
		return
	}
	w.hit = hit
	if w.OnTrip != nil {
		w.OnTrip(*hit)
	}
}
