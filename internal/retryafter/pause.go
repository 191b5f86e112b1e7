package retryafter

import (
	"context"
	"math/rand/v2"
	"time"
)

// Pause returns the time to wait after attempt n, counted from 1. The backoff is first, doubled with each further attempt, at
// most most. Pause picks a random duration between half of the backoff and all of it, so that clients that failed together do not
// retry together. It returns at least asked, the wait that the server requested; 0 means none.
func Pause(n int, first, most, asked time.Duration) time.Duration {
	wait := max(0, min(first, most))
	for ; n > 1 && 0 < wait && wait < most; n-- {
		wait += min(wait, most-wait)
	}
	return max(wait/2+rand.N(wait/2+1), asked)
}

// Sleep waits until the time has passed or ctx is done; then it returns ctx's cause.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
