package serve

import (
	"maps"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/stonelayer/stone/serve/api"
)

// rates counts the requests of callers that have a rate, by their names.
type rates struct {
	mu sync.Mutex
	by map[string]*bucket
}

// mostBuckets is how many callers are remembered before those are forgotten that were silent for a minute.
const mostBuckets = 1000

// bucket holds the requests that a caller may still send. It fills up within a minute.
type bucket struct {
	left float64
	at   time.Time
}

// take counts a request. If the caller has sent too many, it returns how long to wait.
func (r *rates) take(who Principal, now time.Time) (wait time.Duration) {
	if who.PerMinute == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[string]*bucket{}
	}
	most := float64(max(*who.PerMinute, 0))
	b := r.by[who.Name]
	if b == nil {
		if len(r.by) >= mostBuckets { // full ones are like none
			maps.DeleteFunc(r.by, func(_ string, b *bucket) bool { return now.Sub(b.at) >= time.Minute })
		}
		b = &bucket{most, now}
		r.by[who.Name] = b
	}
	b.left = min(most, b.left+now.Sub(b.at).Minutes()*most)
	b.at = now
	if b.left < 1 {
		return time.Duration((1 - b.left) / max(most, 1) * float64(time.Minute))
	}
	b.left--
	return 0
}

// tooMany refuses a request of a caller that has sent too many.
func tooMany(w http.ResponseWriter, wait time.Duration) error {
	seconds := int(math.Ceil(wait.Seconds()))
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	return problem(api.TooMuch, http.StatusTooManyRequests, "too many requests: send the next one in %d s", seconds)
}
