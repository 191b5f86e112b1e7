package event

import (
	"log/slog"
	"sync"
	"time"

	"github.com/stonelayer/stone/internal/bounds"
)

const (
	// progressPause is the minimum time between two events from a Reporter.
	progressPause = 100 * time.Millisecond
	// maxProgress is the maximum length of a Progress message, in bytes.
	maxProgress = 500
)

// A Reporter sends Progress events about one operation, at most ten per second, and drops all further reports. A nil Reporter
// sends nothing. It may be used by several goroutines at once.
type Reporter struct {
	place Place
	start time.Time

	mu   sync.Mutex // held while an event is sent
	sent time.Time
}

// Report returns a reporter for an operation that starts now at the place. The reporter is nil if no watcher wants events of
// level info.
func (p Place) Report() *Reporter {
	if !p.Wants(slog.LevelInfo) {
		return nil
	}
	return &Reporter{place: p, start: time.Now()}
}

// Progress reports the progress of the operation. Total is 0 if unknown. The message is cut at 500 bytes and must not contain
// secrets.
func (r *Reporter) Progress(message string, done, total float64) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if !r.sent.IsZero() && now.Sub(r.sent) < progressPause {
		return
	}
	r.sent = now
	r.place.Send(Progress{Elapsed: now.Sub(r.start), Message: bounds.Cut(message, maxProgress), Done: done, Total: total})
}
