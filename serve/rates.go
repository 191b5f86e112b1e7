package serve

import (
	"maps"
	"sync"
	"time"
)

// rates counts the requests of callers that have a rate limit, by caller name.
type rates struct {
	mu    sync.Mutex
	start time.Time // start of the first second that is counted; independent of clock changes
	by    map[string]*window
}

// mostWindows is the number of callers above which a caller is forgotten once it has been silent for a minute.
const mostWindows = 1000

// window counts a caller's requests in each of the last 61 seconds. This includes the current second, so 60 full seconds are
// covered.
type window struct {
	at     int64 // the current second
	counts [61]int
}

// until advances the window to the given second.
func (w *window) until(second int64) {
	for n := int64(len(w.counts)); w.at < second; w.at++ {
		if second-w.at > n {
			w.at = second - n
		}
		w.counts[(w.at+1)%n] = 0
	}
}

// take counts a request and returns 0. If the caller has sent too many requests within the last minute, it returns how long the
// caller must wait.
func (r *rates) take(who Principal, now time.Time) (wait time.Duration) {
	if who.PerMinute == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by, r.start = map[string]*window{}, now
	}
	since := now.Sub(r.start)
	second := int64(since / time.Second)
	w := r.by[who.Name]
	if w == nil {
		if len(r.by) >= mostWindows { // callers without recent requests are forgotten
			maps.DeleteFunc(r.by, func(_ string, w *window) bool { return second-w.at >= int64(len(w.counts)) })
		}
		w = &window{at: second}
		r.by[who.Name] = w
	}
	w.until(second)
	sent, n := 0, int64(len(w.counts))
	for _, one := range w.counts {
		sent += one
	}
	if sent < *who.PerMinute {
		w.counts[w.at%n]++
		return 0
	}
	for first := w.at - n + 1; first <= w.at; first++ {
		if first >= 0 && w.counts[first%n] > 0 {
			return time.Duration(first+n)*time.Second - since
		}
	}
	return time.Minute // the caller may not send any requests
}
