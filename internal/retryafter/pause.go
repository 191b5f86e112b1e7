package retryafter

import (
	"math/rand/v2"
	"time"
)

// Pause returns the wait after the n-th attempt: first after one, doubled with each further one up
// to most, of which a random part between a half and all counts, so that clients that failed
// together do not retry together. It is at least what the server asked for.
func Pause(n int, first, most, asked time.Duration) time.Duration {
	wait := max(0, min(first, most))
	for ; n > 1 && 0 < wait && wait < most; n-- {
		wait += min(wait, most-wait)
	}
	return max(wait/2+rand.N(wait/2+1), asked)
}
