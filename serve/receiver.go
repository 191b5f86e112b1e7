package serve

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/stonelayer/stone/internal/webhook"
)

// A receiver is what this server has learned of the receiver of a webhook, or of a run. While it is down, one
// notice at a time is tried, with growing pauses. The others wait without a write: notices that
// have runs, and notices that can be made again from the runs they report.
type receiver struct {
	mu     sync.Mutex
	failed int           // attempts since the last one that was answered
	pause  time.Duration // before the next one, while it is down
	next   time.Time     // when that may be
	probe  string        // the run of the notice that is tried
	last   time.Time     // of the failed attempts
	behind time.Time     // when the first run ended whose notice was not made
}

// receiver returns what is known of a receiver of the hook by its name, which is empty for a Webhook.
func (h *hook) receiver(name string) *receiver {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.receivers[name]
	if r == nil {
		r = &receiver{}
		h.receivers[name] = r
	}
	return r
}

// missed returns the receivers that are up and whose notices were not made, and since when. It forgets
// that, and what else is of no use any more.
func (h *hook) missed() (since time.Time, up []*receiver) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, r := range h.receivers {
		if behind, any := r.missed(); any {
			if up = append(up, r); since.IsZero() || behind.Before(since) {
				since = behind
			}
		} else if r.useless() {
			delete(h.receivers, name)
		}
	}
	return since, up
}

// useless reports whether nothing is known of a receiver, or only what is older than any notice that waits.
func (r *receiver) useless() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed == 0 && r.behind.IsZero() || r.failed > 0 && time.Since(r.last) > retryFor
}

const (
	downAfter = 3 // failed attempts
	maxProbe  = 5 * time.Minute
)

// waits reports whether notices wait.
func (r *receiver) waits() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed >= downAfter && time.Now().Before(r.next)
}

// admits reports whether the notice that a run sends may be tried now.
func (r *receiver) admits(run string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed < downAfter || r.probe == run {
		return true
	}
	now := time.Now()
	if now.Before(r.next) {
		return false
	}
	r.probe, r.next = run, now.Add(r.pause)
	r.pause = min(2*r.pause, maxProbe)
	return true
}

// misses notes that a notice about a run that ended at a time was not made.
func (r *receiver) misses(ended time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.behind.IsZero() || ended.Before(r.behind) {
		r.behind = ended
	}
}

// tried notes how the attempt of a run ended; first is the first pause. It reports whether the receiver
// was down and is not any more.
func (r *receiver) tried(run string, err error, first time.Duration) (up bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.probe == run {
		r.probe = ""
	}
	if err == nil || answered(err) {
		up = r.failed >= downAfter
		r.failed, r.pause = 0, 0
		return up
	}
	r.last = time.Now()
	if r.failed++; r.failed == downAfter {
		r.pause = first
		r.next = time.Now().Add(first)
	}
	return false
}

// answered reports whether a receiver read the notice and did not want it.
func answered(err error) bool {
	switch status := webhook.StatusError(0); {
	case !errors.As(err, &status):
		return false
	default:
		return status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge || status == http.StatusUnprocessableEntity
	}
}

// missed returns since when notices were not made that can be made now, and forgets it.
func (r *receiver) missed() (since time.Time, any bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.behind.IsZero() || r.failed >= downAfter {
		return time.Time{}, false
	}
	since, r.behind = r.behind, time.Time{}
	return since, true
}
