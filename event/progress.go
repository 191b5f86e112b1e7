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

// A Reporter sends Progress events about one operation. It sends at most ten events per second and drops all other reports. A nil
// Reporter sends nothing. It may be used by several goroutines at once.
type Reporter struct {
	place Place
	start time.Time

	mu   sync.Mutex // held while an event is sent
	sent time.Time
}

// Report returns a Reporter for an operation that starts now at the place. If no watcher wants events of level info, it returns
// nil.
func (p Place) Report() *Reporter {
	if !p.Wants(slog.LevelInfo) {
		return nil
	}
	return &Reporter{place: p, start: time.Now()}
}

// Progress sends a Progress event unless the last one was less than a tenth of a second ago. Total is 0 if unknown. The message
// is cut at 500 bytes and must not contain secrets.
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
